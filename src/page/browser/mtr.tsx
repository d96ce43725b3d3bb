import { mtrVerdict } from "./mtr-verdict.ts";
import { formatMs, formatPercent, roundUp } from "./numbers.ts";
import type { Place } from "./place.ts";
import { mtrText } from "./reports.ts";
import type { Run } from "./state.ts";
import { Route, TargetTool } from "./target-tool.tsx";
import { TEXTS } from "./texts.ts";
import type { MtrHop, MtrResult } from "./types.ts";
import type { View } from "./views.tsx";
import { hopTags, Who, whoText } from "./who.tsx";

const T = TEXTS.mtr;

const OPTIONS = [
  { name: "rounds", label: T.rounds, default: "10" },
  { name: "intervalMs", label: T.interval, default: "200" },
  { name: "maxHops", label: TEXTS.trace.maxHops, default: "30" },
];

/** Loss and times of every hop, round by round. */
export function MtrTool(props: { place: Place; current: Run | null }) {
  return <TargetTool {...props} endpoint="mtr" options={OPTIONS} viewOf={viewOf} />;
}

function viewOf(current: Run | null): View {
  const result = current?.result as MtrResult | null;
  const latest = current?.parts.at(-1) as { round: number; hops: MtrHop[] } | undefined;
  const hops = result?.hops ?? latest?.hops ?? [];
  const verdict = result && mtrVerdict(result);
  const { paths = [] } = result?.details ?? {};
  return {
    status: (
      <>
        {current?.isRunning && hops.length === 0 && <p>{T.waiting}</p>}
        {verdict && <p class={`verdict ${verdict.kind}`}>{verdict.text}</p>}
      </>
    ),
    body: (
      <>
        {result && <Route ip={result.ip} details={result.details} />}
        {latest && !result && <p class="progress soft">{T.round(latest.round)}</p>}
        {hops.length > 0 && <Statistics hops={hops} />}
        {paths.length > 1 && <Ways paths={paths} />}
      </>
    ),
    text: result && (() => mtrText(result)),
  };
}

const number = (ms: number | null) => (ms === null ? "–" : formatMs(ms));

/** The numbers of a hop: what each is called, and its text. */
const COLUMNS: readonly (readonly [name: string, text: (hop: MtrHop) => string])[] = [
  [T.loss, ({ ip, loss }) => (ip === null || loss === null ? "–" : formatPercent(loss))],
  [T.sent, ({ sent }) => String(sent)],
  [T.last, ({ last }) => number(last)],
  [T.avg, ({ avg }) => number(avg)],
  [T.min, ({ min }) => number(min)],
  [T.max, ({ max }) => number(max)],
  [T.stdDev, ({ stdDev }) => number(stdDev)],
  [T.jitter, ({ jitter }) => number(jitter)],
];

function Statistics({ hops }: { hops: readonly MtrHop[] }) {
  const scale = roundUp(Math.max(0.01, ...hops.map(({ max }) => max ?? 0)));
  return (
    <table class="statistics" aria-label={T.table}>
      <thead>
        <tr>
          {[T.hop, TEXTS.trace.host, ...COLUMNS.map(([name]) => name), T.range(scale)].map(
            (name) => (
              <th scope="col">{name}</th>
            ),
          )}
        </tr>
      </thead>
      <tbody>
        {hops.map((hop) => (
          <HopRow key={hop.hop} hop={hop} scale={scale} />
        ))}
      </tbody>
    </table>
  );
}

function HopRow({ hop, scale }: { hop: MtrHop; scale: number }) {
  const { ip, hostname, loss, limited, addresses, details } = hop;
  const others = addresses.length > 1 ? addresses : [];
  const branches = others.map(({ share, ...who }) => T.share(formatPercent(share), whoText(who)));
  const isLossy = ip !== null && !limited && loss !== null && loss > 0;
  return (
    <tr class={ip === null ? "silent" : ""}>
      <td class="position">{hop.hop}</td>
      <td class="at">
        <Who ip={ip} hostname={hostname} branches={branches} tags={hopTags(details)} />
        {limited && <span class="limited">{T.limited}</span>}
      </td>
      {COLUMNS.map(([name, text]) => (
        <td class={isLossy && name === T.loss ? "number bad" : "number"} data-label={name}>
          {text(hop)}
        </td>
      ))}
      <td class="range" data-label={T.range(scale)}>
        <Range hop={hop} scale={scale} />
      </td>
    </tr>
  );
}

/** A line from the least to the greatest time, and a bar from the median to where 95 % are. */
function Range({ hop: { min, max, p50, p95 }, scale }: { hop: MtrHop; scale: number }) {
  if (min === null || max === null || p50 === null || p95 === null) return null;
  const share = (ms: number) => `${(ms / scale) * 100}%`;
  return (
    <>
      <svg aria-hidden="true">
        <rect class="track" width="100%" height="100%" rx="3" />
        <rect class="extent" x={share(min)} width={share(max - min)} y="42%" height="16%" />
        <rect class="fill" x={share(p50)} width={share(p95 - p50)} height="100%" />
        <rect class="fill" x={share(p50)} width="3" height="100%" />
      </svg>
      <span class="ends">{T.ends(formatMs(p50), formatMs(p95))}</span>
    </>
  );
}

/** The paths that the rounds took: how many each, and the hops by which they differ. */
function Ways({ paths }: { paths: MtrResult["details"]["paths"] }) {
  const length = Math.max(...paths.map(({ addresses }) => addresses.length));
  const positions = Array.from({ length }, (_, at) => at);
  const differing = positions.filter(
    (at) => new Set(paths.map(({ addresses }) => addresses[at])).size > 1,
  );
  return (
    <section class="ways">
      <h2>{T.paths(paths.length)}</h2>
      <ol>
        {paths.map(({ rounds, reached, addresses }) => (
          <li class="way">
            {T.path(rounds, reached)}
            <ul class="mono">
              {differing
                .filter((at) => at < addresses.length)
                .map((at) => (
                  <li>{T.hopOfPath(at + 1, addresses[at] ?? TEXTS.trace.silent)}</li>
                ))}
            </ul>
          </li>
        ))}
      </ol>
    </section>
  );
}
