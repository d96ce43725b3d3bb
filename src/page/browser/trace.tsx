import { formatMs, roundUp } from "./numbers.ts";
import { failingPaths, Paths, PathsVerdict } from "./paths.tsx";
import type { Place } from "./place.ts";
import { traceText } from "./reports.ts";
import type { Run } from "./state.ts";
import { Route, TargetTool } from "./target-tool.tsx";
import { TEXTS } from "./texts.ts";
import type { Hop, TracePath, TraceResult } from "./types.ts";
import type { View } from "./views.tsx";
import { hopTags, Who } from "./who.tsx";

const T = TEXTS.trace;

const OPTIONS = [
  { name: "maxHops", label: T.maxHops, default: "30" },
  { name: "paths", label: TEXTS.paths.count, default: "1" },
  { name: "flowLabel", label: TEXTS.paths.flowLabel, default: "" },
];

/** The hops on the path to a target, as they answer. */
export function TraceTool(props: { place: Place; current: Run | null }) {
  const { subject } = props.place;
  return (
    <TargetTool
      {...props}
      endpoint="traceroute"
      options={OPTIONS}
      viewOf={(run) => viewOf(subject, run)}
    />
  );
}

function viewOf(target: string, current: Run | null): View {
  const result = current?.result as TraceResult | null;
  const hops = result?.hops ?? hopsOf<Hop>(current);
  const found = pathsFound(current);
  const { paths = [], graph, location } = result?.details ?? {};
  return {
    status: (
      <>
        {current?.isRunning && hops.length === 0 && <p>{T.waiting}</p>}
        {result && <Ending result={result} />}
      </>
    ),
    body: (
      <>
        {current?.isRunning && found > 1 && <p class="progress soft">{TEXTS.paths.until(found)}</p>}
        {graph && paths.length > 1 ? (
          <Paths
            key={paths[0]?.flowLabel}
            target={target}
            from={location}
            paths={paths}
            graph={graph}
          />
        ) : (
          hops.length > 0 && <Hops hops={hops} />
        )}
      </>
    ),
    text: result && (() => traceText(result)),
  };
}

/** How many paths were found until now. */
function pathsFound(current: Run | null): number {
  const parts = (current?.parts ?? []) as readonly (Hop | TracePath)[];
  return new Set(parts.flatMap((part) => ("flowLabel" in part ? [part.flowLabel] : []))).size;
}

/** The hops until now; a part replaces an earlier one of the same hop. */
export function hopsOf<Row extends { readonly hop: number }>(current: Run | null): Row[] {
  const hops: Row[] = [];
  for (const part of current?.parts ?? []) {
    if ("hop" in part) hops[(part as Row).hop - 1] = part as Row;
  }
  return hops.filter(() => true);
}

/** Why the trace ended. */
function Ending({ result }: { result: TraceResult }) {
  const { ip, details } = result;
  const { reached, reason, error, otherSource, refused = [] } = details;
  return (
    <>
      {failingPaths(details).length === 0 && (
        <p class={reached ? "verdict good" : "verdict bad"}>
          {T.reasons[reason]} {error && T.error(error.name, error.from, error.fromTarget)}{" "}
          {otherSource && T.otherSource(otherSource)}
        </p>
      )}
      <PathsVerdict details={details} />
      {refused.map(({ hop, errno }) => (
        <p class="problem">{T.refused(hop, errno)}</p>
      ))}
      <Route ip={ip} details={details} />
    </>
  );
}

function Hops({ hops }: { hops: readonly Hop[] }) {
  const scale = roundUp(Math.max(0.01, ...hops.map(({ rtt }) => rtt ?? 0)));
  return (
    <ol class="hops" aria-label={T.hops}>
      {hops.map((hop) => (
        <HopRow key={hop.hop} hop={hop} scale={scale} />
      ))}
    </ol>
  );
}

function HopRow({ hop, scale }: { hop: Hop; scale: number }) {
  const { ip, hostname, rtt, details } = hop;
  const branches = details?.addresses?.filter((address) => address !== ip) ?? [];
  return (
    <li class={ip === null ? "hop silent" : "hop"}>
      <span class="position">{hop.hop}</span>
      <Who ip={ip} hostname={hostname} branches={branches} tags={hopTags(details)} />
      {rtt !== null && <Time rtt={rtt} scale={scale} />}
    </li>
  );
}

function Time({ rtt, scale }: { rtt: number; scale: number }) {
  return (
    <>
      <span class="bar">
        <svg aria-hidden="true">
          <rect class="track" width="100%" height="100%" rx="3" />
          <rect class="fill" width={`${(rtt / scale) * 100}%`} height="100%" rx="3" />
        </svg>
      </span>
      <span class="time">
        {formatMs(rtt)} <span class="soft">{TEXTS.ms}</span>
      </span>
    </>
  );
}
