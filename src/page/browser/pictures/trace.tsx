import { useState } from "hono/jsx/dom";
import type { TraceDocument } from "../../../tools/trace/report.ts";
import { capitalized, inWords } from "../../../util/text.ts";
import { bundleOf, MOST_OPEN } from "./bundle.ts";
import { Paths } from "./paths.tsx";
import type { Asked, View } from "./picture.ts";
import { tintsOf, type WayHop } from "./segments.ts";
import { ON_ONE_SCALE, type ShownBundle, Way, type WayProps } from "./way.tsx";
import { type End, shortMs } from "./way-marks.tsx";

/** A traced way to a target. */
interface TracedWay {
  readonly ip?: string | undefined;
  readonly hops: readonly WayHop[];
  readonly reached?: boolean | undefined;
  /** True if its end is not known yet, because the trace runs or was stopped. */
  readonly isOpen?: boolean;
  /** The fault at its end; null if the trace had reached its limit. */
  readonly wrong?: string | null;
}

const SILENCE = "Nothing answers behind here";

/** The fault at the end of a trace in a few words; null if it had reached its limit. */
function wrongOf({ reason, error, loop }: TraceDocument["details"]): string | null {
  if (error) return capitalized(inWords(error.name));
  if (reason === "max-hops") return null;
  return reason === "not-sent" ? "This machine could not send" : loop ? "A loop" : SILENCE;
}

interface TraceWayProps
  extends TracedWay,
    Pick<WayProps, "label" | "note" | "lies" | "first" | "least"> {
  /** The ways that are shown side by side, on one scale. */
  all: readonly TracedWay[];
  isRunning?: boolean;
  bundle?: ShownBundle | null;
}

/** The hops, the end and the break of a way. */
function trackOf(
  { ip, hops, reached, isOpen = false, wrong = SILENCE }: TracedWay,
  isRunning: boolean,
) {
  const last = hops.at(-1);
  const isSite = last !== undefined && (reached === true || last.ip === ip);
  const ms = isSite ? last.rtt : null;
  const end: End = {
    text: ms !== null ? `${shortMs(ms)} ms` : isOpen ? "" : wrong ? "not reached" : "not asked",
    note: isRunning && isOpen && !isSite ? `asking hop ${(last?.hop ?? 0) + 1} …` : "",
    tone: isOpen || isSite ? null : wrong ? "bad" : "warn",
    ms,
  };
  const before = isSite ? hops.slice(0, -1) : hops;
  const heard = before.findLast(({ ip }) => ip !== null)?.hop ?? 0;
  const isBroken = !isOpen && !isSite && wrong !== null;
  return {
    ...{ hops: before, ends: [end] as const, site: isSite ? last : undefined },
    // The end says already that it is not known.
    unknown: "",
    break: isBroken ? { after: heard, text: wrong } : null,
  };
}

/** The way to a target as far as a trace has come, and where it ends. */
export function TraceWay(props: TraceWayProps) {
  const { hops, all, isOpen = false, isRunning = false } = props;
  if (hops.length === 0) return null;
  const times = all.flatMap(({ hops }) => hops.flatMap(({ rtt }) => rtt ?? []));
  return (
    <Way
      {...{ ...props, ...trackOf(props, isRunning) }}
      isRunning={isRunning && isOpen}
      mostMs={Math.max(0.1, ...times)}
      tints={tintsOf(all.map((each) => each.hops))}
      beside={all.map((each) => trackOf(each, isRunning))}
    />
  );
}

/** The way to a target with its bundle of paths, and the list of them. */
function TracedPaths(props: { document: TraceDocument; asked: Asked<TraceDocument> }) {
  const { document, asked } = props;
  const { ip, hops, details } = document;
  const { paths = [], graph: { nodes } = { nodes: [] }, location } = details;
  const [isOpen, setOpen] = useState(false);
  const [isListed, setListed] = useState(false);
  const [alone, setAlone] = useState<number | null>(null);
  const bundle = bundleOf(paths);
  const from = location !== undefined && { from: location };
  const linkOf = (flowLabel: number) => asked.linkTo({ flowLabel: String(flowLabel), ...from });
  const onAlone = (path: number) => {
    setAlone(path === alone ? null : path);
    setOpen(bundle !== null && paths.length <= MOST_OPEN);
  };
  const onOpen = () => {
    setAlone(null);
    setOpen(!isOpen);
  };
  const onList = () => setListed(!isListed);
  const main = bundle?.main.addresses.flatMap(
    (ip, at) => nodes.find((node) => node.hop === at + 1 && node.ip === ip) ?? [],
  );
  return (
    <>
      <TraceWay
        label="IPv6"
        {...{ ip, all: asked.all.map(wayOf), hops: main ?? hops }}
        reached={bundle?.main.reached ?? details.reached}
        bundle={bundle && { ...bundle, isOpen, isListed, alone, onOpen, onList, onAlone }}
      />
      <div class="more">
        <details open={isListed} onToggle={(event: Event) => setListed(isShown(event))}>
          <summary>Hops with addresses</summary>
          <Paths {...{ paths, nodes, linkOf, alone, onAlone }} />
        </details>
      </div>
    </>
  );
}

const isShown = ({ currentTarget }: Event) => (currentTarget as HTMLDetailsElement).open;

const wayOf = ({ ip, hops, details }: TraceDocument) => ({
  ...{ ip, hops, reached: details.reached, wrong: wrongOf(details) },
  isOpen: details.verdict === undefined,
});

const tracedWay = (document: TraceDocument, { all, isRunning }: Asked<TraceDocument>) => ({
  ...{ ...wayOf(document), all: all.map(wayOf), isRunning },
});

const hasPaths = ({ details: { paths = [], graph } }: TraceDocument) =>
  graph !== undefined && paths.length > 1;

/** The way to the target above its hops; these are folded if there are several paths. */
export const traceView: View<TraceDocument> = {
  figure: (document, asked) => {
    if (hasPaths(document)) return <TracedPaths {...{ document, asked }} />;
    return asked.isBeside ? null : <TraceWay label="IPv6" {...tracedWay(document, asked)} />;
  },
  way: (document, asked, place) => (
    <TraceWay label={place} {...tracedWay(document, asked)} {...ON_ONE_SCALE} />
  ),
  insteadOfTables: (document) => (hasPaths(document) ? "" : null),
};
