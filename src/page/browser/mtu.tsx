import { Pipe } from "./mtu-pipe.tsx";
import { mtuNotes, mtuVerdict } from "./mtu-verdict.ts";
import { Breakable } from "./parts.tsx";
import type { Place } from "./place.ts";
import { mtuText } from "./reports.ts";
import type { Run } from "./state.ts";
import { Route, TargetTool } from "./target-tool.tsx";
import { TEXTS } from "./texts.ts";
import { hopsOf } from "./trace.tsx";
import type { MtuHop, MtuResult } from "./types.ts";
import type { View } from "./views.tsx";
import { hopTags, Who } from "./who.tsx";

const T = TEXTS.mtu;

/** The largest packet that reaches a target, and where larger ones stop. */
export function MtuTool(props: { place: Place; current: Run | null }) {
  return <TargetTool {...props} endpoint="mtu" options={[]} viewOf={viewOf} />;
}

function viewOf(current: Run | null): View {
  const result = current?.result as MtuResult | null;
  const hops = result?.hops ?? hopsOf<MtuHop>(current);
  return {
    status: (
      <>
        {current?.isRunning && <p>{hops.length === 0 ? T.waiting : T.measuring}</p>}
        {result && <Answer result={result} />}
      </>
    ),
    body: (
      <>
        {result && <Route ip={result.ip} details={result.details} />}
        {hops.length > 0 && <Pipe hops={hops} result={result} />}
        {hops.length > 0 && <Hops hops={hops} result={result} />}
      </>
    ),
    text: result && (() => mtuText(result)),
  };
}

function Answer({ result }: { result: MtuResult }) {
  const { kind, text } = mtuVerdict(result);
  return (
    <>
      {result.mtu !== null && <p class="size">{T.bytes(result.mtu)}</p>}
      <p class={`verdict ${kind}`}>
        <Breakable text={text} />
      </p>
    </>
  );
}

/** Each hop with its size, and what it said, be it believed or not. */
function Hops({ hops, result }: { hops: readonly MtuHop[]; result: MtuResult | null }) {
  const notes = result ? mtuNotes(result) : [];
  const elsewhere = notes.filter(({ hop }) => !hops.some((row) => row.hop === hop));
  return (
    <>
      <ol class="hops" aria-label={TEXTS.trace.hops}>
        {hops.map(({ hop, ip, hostname, mtu, details }) => {
          const said = notes.filter((note) => note.hop === hop).map(({ text }) => text);
          return (
            <li key={hop} class={ip === null ? "hop sized silent" : "hop sized"}>
              <span class="position">{hop}</span>
              <Who ip={ip} hostname={hostname} tags={[...hopTags(details), ...said]} />
              <span class="time">
                {mtu ?? T.unknown} {mtu !== null && <span class="soft unit">{T.unit}</span>}
              </span>
            </li>
          );
        })}
      </ol>
      {elsewhere.map(({ from, text }) => (
        <p class="problem">{`${from}: ${text}`}</p>
      ))}
    </>
  );
}
