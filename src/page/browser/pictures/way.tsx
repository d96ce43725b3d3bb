import { useLayoutEffect, useRef, useState } from "hono/jsx/dom";
import { hopText } from "../../../tools/report.ts";
import { plural } from "../../../util/text.ts";
import { type Bundle, halfOf, layBundle, MOST_OPEN } from "./bundle.ts";
import { type Break, type Segment, segmentsOf, type WayHop } from "./segments.ts";
import { StandingWay } from "./standing-way.tsx";
import { BREAK, LEFT, layWay, type Placed } from "./way-layout.ts";
import {
  BreakMark,
  CHARACTER,
  Dotted,
  Doubt,
  type End,
  Fork,
  isMixed,
  MOST_THREADS,
  Ring,
  Site,
  Strands,
  Times,
} from "./way-marks.tsx";

/** Pixels: the height of a band, that of a thin band for IPv4, and between the middles of two lanes. */
const BAND = 24;
const BAND4 = 14;
const LANE = 52;

/** Pixels for the outcomes, at the right of a way. */
const RESULTS = 190;

/** The lines of an address that fit there. */
const NOTE_LINES = /.{1,23}(?::|$)/g;

/** The width in pixels below which a way is drawn from top to bottom. */
const NARROW = 560;

/** The least distances of the ways of several places: to the first hop, and between two. */
export const ON_ONE_SCALE = { first: 30, least: 11 };

/** A bundle of paths, and how it is shown. */
export interface ShownBundle extends Bundle {
  readonly isOpen: boolean;
  /** True if the list of the paths is open. */
  readonly isListed: boolean;
  /** The index of the path that is shown alone. */
  readonly alone: number | null;
  onOpen(): void;
  onList(): void;
  onAlone(path: number): void;
}

/** The parts of a way that its shared scale depends on. */
interface Track {
  hops: readonly WayHop[];
  /** The ends: the line leads to the first, and forks to the others behind the last hop. */
  ends: readonly [End, ...End[]];
  break?: Break | null | undefined;
  bundle?: ShownBundle | null | undefined;
}

/** The scale of ways that are shown together. */
export interface Scale {
  /** Milliseconds at the end of the scale. */
  mostMs: number;
  tints: ReadonlyMap<string, number>;
  /** All these ways. */
  beside: readonly Track[];
  /** The least distances: to the first hop, and between two. */
  first?: number;
  least?: number;
}

export interface WayProps extends Track, Scale {
  label: string;
  /** Below the label. */
  note?: string;
  /** The site, if it answered, for its network. */
  site?: WayHop | undefined;
  /** Set if one of the hops may be at fault, with what is known. */
  doubt?: { readonly text: string } | null | undefined;
  isRunning?: boolean;
  /** Why the rest of the way is not known, in a few words. */
  unknown?: string | undefined;
  /** True for a way for comparison, which is thin. */
  isThin?: boolean;
  /** True for a way that is drawn from left to right in any width, beside the one that it is compared with. */
  lies?: boolean;
}

/** The width of an element in pixels, as it changes. */
function useWidth(guess: number) {
  const [width, setWidth] = useState(guess);
  const box = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth || guess));
    setWidth(element.clientWidth || guess);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [width, box] as const;
}

/** A way from here to the site, drawn from top to bottom if there is little room. */
export function Way(props: WayProps) {
  const { hops, isThin = false, lies = isThin } = props;
  const [room, box] = useWidth(984);
  const stands = room < NARROW && !lies && (hops.length > 0 || props.break != null);
  return (
    <section class={isThin ? "part way thin" : "part way"}>
      <h2 class="side" style={`--top:${stands || props.lies ? 0 : topOf(props) - 12}px`}>
        {props.label}
        {props.note && <small>{props.note}</small>}
      </h2>
      <figure ref={box}>
        {stands ? <Standing {...props} /> : <Lane {...props} room={room} />}
        <figcaption class="unseen">{captionOf(props)}</figcaption>
      </figure>
    </section>
  );
}

/** The way from top to bottom. */
function Standing(props: WayProps) {
  const { hops: all, tints, site: found, ends, break: broken, bundle } = props;
  const [end] = ends;
  const hops = bundle ? all.filter((hop) => !isInside(hop, bundle)) : all;
  const last = all.at(-1);
  const isReached = end.ms !== null && (!broken || broken.isNarrow === true);
  const own = { hop: (last?.hop ?? 0) + 1, ip: end.note, hostname: null, rtt: end.ms };
  const site = { ...(found ?? last), ...own };
  const segments = segmentsOf(isReached ? [...hops, site] : hops, tints);
  return (
    <StandingWay
      {...{ segments, isReached, ends, bundle, break: broken }}
      unknown={props.unknown ?? "not reached, so not known"}
    />
  );
}

/** True for a hop that a bundle replaces. */
const isInside = ({ hop }: WayHop, { near, far }: Bundle) => near < hop && hop < far;

const hasStrandsOf = ({ ends, isThin }: WayProps) => !isThin && ends.some(isMixed);

/** Pixels that an open bundle is higher than the band, on each side. */
const extraOf = (bundle: WayProps["bundle"]) =>
  bundle ? halfOf(bundle, bundle.isOpen, BAND) - BAND / 2 : 0;

/** Pixels above the line of a way, for the texts there. */
function topOf(props: WayProps): number {
  const { hops, ends, isThin, doubt, bundle, break: broken } = props;
  const names = !isThin && (hops.length > 0 || broken) ? 22 : 4;
  const top = (broken && ends.length === 1 ? 34 : 0) + (doubt ? 30 : 0) + names + extraOf(bundle);
  const first = hasStrandsOf(props) ? heightOf(ends[0], true) / 2 : 0;
  return top + Math.max((isThin ? BAND4 : BAND) / 2, first - names);
}

/** Pixels that the lane of an end takes. */
const heightOf = ({ attempts }: End, hasStrands: boolean) =>
  Math.max(LANE, (hasStrands && attempts ? Math.min(attempts.made, MOST_THREADS) : 0) * 7 + 20);

type LaneProps = WayProps & { readonly room: number };

/** A way in pixels, with `mostPerMs` pixels for a millisecond at most. */
const layTrack = (
  { hops, ends, break: broken, bundle = null }: Track,
  { room, mostMs, first, least }: LaneProps,
  mostPerMs = Infinity,
) =>
  layWay(hops, ends[0].ms, {
    ...{ mostMs, first, least, bundle, mostPerMs, width: room - RESULTS - LEFT },
    breakAfter: ends.length > 1 ? null : (broken?.after ?? null),
  });

/** The place of each part of a lane, in pixels. */
function laneOf(props: LaneProps) {
  const { hops, ends, room, bundle, beside, isThin = false } = props;
  const width = room - RESULTS;
  const forks = ends.length > 1;
  const isReached = ends[0].ms !== null;
  const mostPerMs = Math.min(...beside.map((track) => layTrack(track, props).perMs));
  const laid = layTrack(props, props, mostPerMs);
  const { end, breakAt } = laid;
  const placed = bundle ? laid.placed.filter(({ hop }) => !isInside(hop, bundle)) : laid.placed;
  const from = placed.findLast(({ hop }) => bundle && hop.hop <= bundle.near)?.x ?? LEFT;
  const to = placed.find(({ hop }) => bundle && hop.hop >= bundle.far)?.x ?? end;
  const extra = extraOf(bundle);
  const hasStrands = hasStrandsOf(props);
  const heights = ends.map((each) => heightOf(each, hasStrands));
  const half = (at: number) => (heights[at] as number) / 2;
  const band = isThin ? BAND4 : BAND;
  const y = topOf(props);
  const lanes = ends.map((_, at) => {
    if (!forks && !hasStrands) return y;
    const above = heights.slice(0, at).reduce((sum, height) => sum + height, 0);
    return y + above + (at === 0 ? 0 : half(at) - half(0));
  });
  const bottom =
    (lanes.at(-1) as number) + Math.max(band / 2 + extra, hasStrands ? half(ends.length - 1) : 0);
  const last = placed.at(-1)?.x ?? LEFT;
  return {
    ...{ width, y, band, lanes, bottom, end, breakAt, isReached, forks, hasStrands },
    ...{ all: laid.placed, placed, last },
    /** Where an open bundle begins and ends, and half of its height. */
    wide: { from, to, half: BAND / 2 + extra },
    isWide: extra > 0,
    forkAt: forks || hasStrands ? Math.min(last + 14, end - 84) : end,
    /** The top of the band behind a fork. */
    forkTop: (lanes[0] as number) - (hasStrands ? half(0) : band / 2),
    height: bottom + (forks ? 28 : hasStrands ? 20 : 0) + (hops.length > 0 ? 24 : 8),
  };
}

type LaneShape = ReturnType<typeof laneOf>;

/** The networks of a way as bands, and its hops as rings, on a scale of time. */
function Lane(props: LaneProps) {
  const { hops, room, bundle, isThin = false, isRunning = false } = props;
  const lane = laneOf(props);
  const { y, band, end, breakAt, isReached, hasStrands, placed, last, wide, isWide } = lane;
  const isNarrow = props.break?.isNarrow === true;
  const hasNames = !isThin && hops.length > 0;
  const segments = segmentsOf(hops, props.tints);
  const site = isReached && props.site ? [props.site] : [];
  const bands = segmentsOf([...hops, ...site], props.tints);
  // Behind a break, only small packets show anything.
  const lineEnd = breakAt ?? (isReached ? end : last);
  // The times at the ends of an open bundle stand beside it.
  const beside = ({ x, ...hop }: Placed) => ({
    ...hop,
    x: x + (isWide ? (x === wide.from ? -22 : x === wide.to ? 22 : 0) : 0),
  });
  const svg = (
    <svg
      class="lane"
      aria-hidden="true"
      width="100%"
      height={lane.height}
      viewBox={`0 0 ${room} ${lane.height}`}
    >
      <Bands
        {...{ segments: bands, y, band, end: end + LEFT, hasNames, breakAt }}
        {...(isWide && { wide })}
        namesEnd={lane.forks || hasStrands ? lane.forkAt : Infinity}
        placed={[...lane.all, ...site.map((hop) => ({ hop, count: 1, x: end }))]}
        isOpen={!isReached}
      />
      {(lane.forks || hasStrands) && (
        <Band
          tint={bands.at(-1)?.tint}
          {...{ from: lane.forkAt, to: end + LEFT, top: lane.forkTop }}
          height={lane.bottom - lane.forkTop}
        />
      )}
      {bundle && <line class="line" x1={LEFT} x2={wide.from} y1={y} y2={y} />}
      {bundle && <Threads {...{ bundle, y, ...wide }} />}
      <line
        class="line"
        x1={bundle ? wide.to : LEFT}
        x2={hasStrands || (lane.forks && !isReached) ? lane.forkAt : lineEnd}
        y1={y}
        y2={y}
      />
      {breakAt !== null && props.break && <Broken {...{ lane, ...props.break, at: breakAt }} />}
      {!isReached && !isNarrow && (
        <Dotted
          from={(breakAt === null ? last : breakAt + BREAK) + 12}
          to={end - 14}
          y={y}
          text={props.unknown ?? ""}
        />
      )}
      <Parted lane={lane} ends={props.ends} />
      {placed.map(({ hop, count, x }) => (
        <Ring {...{ hop, count, x, y }} isThin={isThin} />
      ))}
      {isRunning && !isReached && hops.length > 0 && <circle class="head" cx={last} cy={y} r={5} />}
      <circle class="here" cx={LEFT} cy={y} r={isThin ? 4 : 7} />
      {!hasStrands && (
        <Site {...{ x: end, y, isThin }} isReached={isReached && (breakAt === null || isNarrow)} />
      )}
      <Times {...{ segments, placed: placed.map(beside), y: y + band / 2 + 15 }} />
      {props.doubt && (
        <Doubt
          {...{ from: placed[0]?.x ?? LEFT, end, y: y - band / 2 - (hasNames ? 22 : 4) }}
          text={props.doubt.text}
        />
      )}
      <Results lane={lane} ends={props.ends} />
    </svg>
  );
  if (!bundle) return svg;
  return (
    <>
      {svg}
      <button
        type="button"
        style={`left:${(wide.from + wide.to) / 2}px`}
        aria-expanded={bundle.isOpen || bundle.isListed ? "true" : "false"}
        onClick={bundle.threads.length > MOST_OPEN ? bundle.onList : bundle.onOpen}
      >
        {bundle.isOpen ? "Close" : `${bundle.threads.length} ways ›`}
      </button>
    </>
  );
}

/** The break of a way, and the small packets that may pass it. */
function Broken({ lane, at, text, isNarrow }: { lane: LaneShape; at: number } & Break) {
  const { y, end, width } = lane;
  return (
    <>
      <BreakMark {...{ x: at, y, text, width }} />
      {isNarrow && <line class="thread" x1={at + 4} x2={end} y1={y} y2={y} />}
      {isNarrow && (
        <text class="axis" x={at + 6} y={y + 27}>
          small ones pass
        </text>
      )}
    </>
  );
}

/** The ways behind the last common hop: one to each address, or a strand for each transaction. */
function Parted({ lane, ends }: { lane: LaneShape; ends: WayProps["ends"] }) {
  const { forkAt: from, end: x, y: start, lanes, hasStrands } = lane;
  return (
    <>
      {ends.map((each, at) => {
        const y = lanes[at] as number;
        if (hasStrands) return <Strands {...{ end: each, from, x, y, start }} />;
        const text = `${each.note} ${each.text === "silent" ? "never answers" : each.text}`;
        return at > 0 && <Fork {...{ from, x, start, y, text }} isWhole={each.ms !== null} />;
      })}
    </>
  );
}

/** The outcome of each end of a way, beside it. */
function Results({ lane: { width, lanes }, ends }: { lane: LaneShape; ends: WayProps["ends"] }) {
  return (
    <>
      {ends.map(({ text, note, tone }, at) => {
        const [x, y] = [width + 28, lanes[at] as number];
        return (
          <>
            <text
              class={`result ${tone === "good" ? "" : (tone ?? "")}`}
              x={x}
              y={y + (note ? 0 : 5)}
            >
              {text}
            </text>
            {(note.match(NOTE_LINES) ?? [note]).map((line, row) => (
              <text class="axis" x={x} y={y + 17 + 15 * row}>
                {line}
              </text>
            ))}
          </>
        );
      })}
    </>
  );
}

/** The sentence of the picture. */
function captionOf({ label, hops, ends, bundle, break: broken, doubt }: WayProps): string {
  // The near side is not a network.
  const networks = segmentsOf(hops, new Map()).filter(({ tint }) => tint !== 0);
  const names = [...new Set(networks.flatMap(({ name }) => name ?? []))].join(", ");
  const through = names && ` through ${names}`;
  const way = hops.length === 0 ? "" : `: ${plural(hops.length, "hop")}${through}`;
  const next = hops.find(({ hop }) => broken && hop > broken.after)?.hop;
  const far = next === undefined ? "the site" : `hop ${next}`;
  const near = broken?.after ? hopText(hops, broken.after) : "this machine";
  const fault = broken ? ` It breaks between ${near} and ${far}: ${broken.text}.` : "";
  const nearest = bundle && (bundle.near ? hopText(hops, bundle.near) : "this machine");
  const farthest = bundle && (bundle.far > hops.length ? "the site" : hopText(hops, bundle.far));
  const ways = bundle ? ` ${bundle.threads.length} ways between ${nearest} and ${farthest}.` : "";
  const each = ends.map(({ note, text }) => [note, text].filter(Boolean).join(" "));
  const results = each.filter(Boolean).join("; ");
  return `${label}${way}.${ways}${fault}${doubt ? ` ${doubt.text}.` : ""}${results && ` ${results}.`}`;
}

interface BandsProps {
  segments: readonly Segment[];
  placed: readonly Placed[];
  y: number;
  band: number;
  end: number;
  hasNames: boolean;
  /** Where the room for names ends. */
  namesEnd: number;
  /** True if nothing is known behind the last hop. */
  isOpen: boolean;
  /** Where a break begins. */
  breakAt: number | null;
  /** An open bundle, for which the bands are higher. */
  wide?: { readonly from: number; readonly to: number; readonly half: number };
}

interface BandProps {
  /** The colour of the network, which may not be known. */
  tint: number | null | undefined;
  from: number;
  to: number;
  top: number;
  height: number;
}

function Band({ tint, from, to, top, height }: BandProps) {
  const box = { x: from, y: top, width: Math.max(0, to - from), height, rx: 3 };
  return <rect class="band" fill={tint == null ? "none" : `var(--n${tint})`} {...box} />;
}

/** The networks: bands that meet midway, with their names where there is room. */
function Bands(props: BandsProps) {
  const { segments, placed, y, band, end, hasNames, namesEnd, isOpen, breakAt, wide } = props;
  const xOf = (hop: number) => placed.findLast((each) => each.hop.hop <= hop)?.x ?? LEFT;
  const edges = segments.map(({ hops: [first] }, at) => {
    const before = segments[at - 1]?.hops.at(-1);
    if (before === undefined) return 0;
    const [from, to] = [xOf(before.hop), xOf(first.hop)];
    // Behind a break, a network begins with its second bar.
    const isAcross = breakAt !== null && from <= breakAt && breakAt < to;
    return isAcross ? breakAt + BREAK : (from + to) / 2;
  });
  const lastX = placed.at(-1)?.x ?? LEFT;
  // This machine has a band of its own if the network of the first hop is known.
  const near =
    segments[0] && segments[0].tint !== 0 ? (LEFT + xOf(segments[0].hops[0].hop)) / 2 : 0;
  const usual = { top: y - band / 2, height: band };
  return (
    <>
      {near > 0 && (
        <>
          <Band {...usual} tint={0} from={0} to={near - 1} />
          {hasNames && (
            <text class="network" x={2} y={y - band / 2 - 8}>
              Here
            </text>
          )}
        </>
      )}
      {segments.map(({ name, tint }, at) => {
        const from = Math.max(edges[at] as number, near + (at === 0 && near > 0 ? 1 : 0));
        const to = edges[at + 1] ?? (isOpen ? Math.min(lastX + 12, breakAt ?? Infinity) : end);
        const text = name ?? (tint === null ? "not known" : "");
        const [left, right] = [Math.max(from, wide?.from ?? to), Math.min(to, wide?.to ?? to)];
        const half = wide && left < right ? wide.half : band / 2;
        const isFit = text.length * CHARACTER < Math.min(to, namesEnd) - from + 4;
        return (
          <g>
            {tint !== null && (
              <Band {...usual} tint={tint} from={from + (at === 0 ? 0 : 1)} to={to - 1} />
            )}
            {tint !== null && half > band / 2 && (
              <Band tint={tint} from={left} to={right} top={y - half} height={2 * half} />
            )}
            {hasNames && isFit && (
              <text class="network" x={from + 2} y={y - half - 8}>
                {text}
              </text>
            )}
          </g>
        );
      })}
    </>
  );
}

interface ThreadsProps {
  bundle: ShownBundle;
  from: number;
  to: number;
  half: number;
  y: number;
}

/** The invisible stroke for presses on a thread, as wide as the distance to the next. */
const PRESS = { fill: "none", stroke: "transparent", "stroke-width": 9 };

/** A thread for each path of a bundle, with its own routers; a press shows one alone. */
function Threads({ bundle, ...place }: ThreadsProps) {
  const { isOpen, alone, onAlone } = bundle;
  return (
    <g class={isOpen ? "bundle" : "bundle closed"}>
      {layBundle(bundle, { ...place, isOpen }).map(({ path, d, y, end, isLost, routers }) => (
        <g
          class={`${isLost ? "lost" : ""} ${[null, path].includes(alone) ? "" : "faint"}`}
          opacity={[null, path].includes(alone) ? 1 : 0.2}
        >
          <path class="thread" d={d} />
          {routers.map((x) => (
            <circle class="ring" cx={x} cy={y} r={3} />
          ))}
          {isLost && <path class="cross small" d={`M${end - 3} ${y - 3}l6 6m0-6l-6 6`} />}
          {isOpen && (
            // biome-ignore lint/a11y/noStaticElementInteractions: the list has a button for each path.
            <path class="press" {...PRESS} d={d} onClick={() => onAlone(path)} />
          )}
        </g>
      ))}
    </g>
  );
}
