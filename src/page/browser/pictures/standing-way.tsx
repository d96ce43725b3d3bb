import type { Child } from "hono/jsx/dom";
import { useState } from "hono/jsx/dom";
import { formatMs } from "../../../tools/numbers.ts";
import type { Host } from "../../../tools/report.ts";
import { plural } from "../../../util/text.ts";
import type { Bundle } from "./bundle.ts";
import { Breakable } from "./parts.tsx";
import type { Break, Segment, WayHop } from "./segments.ts";
import { type End, isMixed } from "./way-marks.tsx";

/** Lines by what passes: everything, small packets only, or not known. */
const LINES = {
  whole: { "stroke-width": 5 },
  thread: { "stroke-width": 2 },
  dotted: { "stroke-width": 2, "stroke-dasharray": "2 4" },
};

const SITE = "The site";

const HOP = { fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 2 };
const END = { ...HOP, fill: "var(--ink)" };

interface RailProps {
  /** The colour of the network; null without a band. */
  tint: number | null;
  /** True where the band of the network begins. */
  isFirst: boolean;
  mark: "here" | "hop" | "silent" | "site" | "unreached" | "break" | "bundle" | "fork" | "lost";
  /** Where the mark is, by default in the middle of the first line of text. */
  y?: number | string;
  /** The lines to the marks of the rows before and after it. */
  above: keyof typeof LINES | null;
  below: keyof typeof LINES | null;
}

/** A part of a vertical way, as high as its row: the band of a network, the line, and the mark on it. */
export function Rail({ tint, isFirst, mark, y = 18, above, below }: RailProps) {
  const line = { class: "line", x1: "50%", x2: "50%" };
  const text = { x: "50%", y, dy: 4, "text-anchor": "middle" };
  const disc = { cx: "50%", cy: y };
  const square = { x: "50%", y, width: 16, height: 16, transform: "translate(-8 -8)" };
  const bar = { x: -6, width: 36, height: 3, fill: "var(--bad)" };
  return (
    <svg class={tint === null ? "rail" : "rail band"} aria-hidden="true">
      {tint !== null && <rect width="100%" height="102%" fill={`var(--n${tint})`} />}
      {isFirst && <rect y="-1" width="100%" height="2" fill="var(--paper)" />}
      {above && <line {...line} {...LINES[above]} y1="-1" y2={y} />}
      {below && <line {...line} {...LINES[below]} y1={y} y2="100%" />}
      {mark === "bundle" &&
        ["30%", "50%", "70%"].map((x) => <line {...line} x1={x} x2={x} y1="0" y2="100%" />)}
      {mark === "here" && <circle {...END} {...disc} r={6} />}
      {mark === "hop" && <circle {...HOP} {...disc} r={4} />}
      {mark === "silent" && <circle {...HOP} {...disc} r={7} />}
      {mark === "silent" && <text {...text}>?</text>}
      {mark === "site" && <rect {...END} {...square} />}
      {mark === "unreached" && <rect {...HOP} {...square} />}
      {mark === "break" && <rect {...bar} />}
      {mark === "break" && <rect {...bar} y="100%" transform="translate(0 -4)" />}
      {mark === "break" && (
        <svg x="12" y={y} aria-hidden="true">
          <path d="M-6-6l12 12m0-12l-12 12" stroke="var(--bad)" stroke-width="3" />
        </svg>
      )}
      {(mark === "fork" || mark === "lost") && (
        <path {...HOP} fill="none" d="M12-1C12 12 14 18 24 18" />
      )}
      {mark === "fork" && <rect {...END} x={19} y={13} width={10} height={10} />}
      {mark === "lost" && (
        <path d="M19 13l10 10m0-10l-10 10" stroke="var(--bad)" stroke-width="3" />
      )}
    </svg>
  );
}

/** The mark of a hop; null is this machine. */
export function markOf(hop: Host | null, isSite: boolean): RailProps["mark"] {
  return hop === null ? "here" : isSite ? "site" : hop.ip === null ? "silent" : "hop";
}

/** The name of a hop, or else its address. */
export function Name({ hop: { ip, hostname } }: { hop: Host }) {
  if (ip === null) return <span class="soft">no answer</span>;
  return (
    <span class={hostname === null ? "mono" : undefined}>
      <Breakable text={hostname ?? ip} />
    </span>
  );
}

/** The near side without hops, for a way whose first hop has a known network. */
const HERE = { name: "Here", tint: 0, hops: [] };

interface Way {
  readonly segments: readonly Segment[];
  /** True if the last hop is the site. */
  readonly isReached: boolean;
}

/** The rows of a way: the ends of each network, the hops around a break, and all hops of open networks; null is this machine. */
export function standingRows(
  { segments, isReached }: Way,
  isOpen: (network: number) => boolean,
  breakAfter = Number.NaN,
  bundleAfter = Number.NaN,
) {
  const ways = segments[0]?.tint === 0 ? segments : [HERE, ...segments];
  const rows = ways.flatMap(({ name, tint, hops }, network) => {
    const all = [...(network === 0 ? [null] : []), ...hops];
    const isAtBreak = (hop: WayHop | null) =>
      [0, 1].includes((hop?.hop ?? 0) - breakAfter) || hop?.hop === bundleAfter;
    const shown = all.filter(
      (hop, at) => at === 0 || at === all.length - 1 || isOpen(network) || isAtBreak(hop),
    );
    const about = { name, tint, network, count: hops.length, isFolded: shown.length < all.length };
    return shown.map((hop, at) => ({ ...about, hop, isFirst: at === 0 }));
  });
  return rows.map((row, at) => {
    const isLast = at === rows.length - 1;
    return { ...row, isLast, mark: markOf(row.hop, isLast && isReached) };
  });
}

/** A way and its ends. */
export interface StandingWayProps extends Way {
  /** The outcome of the way, and of the ways that fork off before its end. */
  ends: readonly [End, ...End[]];
  break?: Break | null | undefined;
  /** Several paths behind a hop, with a list that opens. */
  bundle?:
    | (Pick<Bundle, "near" | "threads"> & { readonly isListed: boolean; onList(): void })
    | null
    | undefined;
  /** Why nothing is known of its end, in a few words. */
  unknown: string;
}

/** A row: its part of the rail, a title, a note below, and milliseconds or an outcome. */
function Item(props: { rail: RailProps; title: Child; note?: Child; result?: Child }) {
  const { rail, title, note, result } = props;
  return (
    <li>
      <Rail {...rail} />
      <div>
        {title}
        {note && <div class="soft">{note}</div>}
      </div>
      {result && <span class="number">{result}</span>}
    </li>
  );
}

const resultOf = ({ text, tone }: End) => text && <b class={tone ?? ""}>{text}</b>;

/** A way from top to bottom, for narrow screens; a network has one or two rows, which open. */
export function StandingWay({ ends, unknown, bundle, break: broken, ...way }: StandingWayProps) {
  const [end, ...others] = ends;
  const [opened, setOpened] = useState<readonly number[]>([]);
  const toggle = (network: number) =>
    setOpened(
      opened.includes(network) ? opened.filter((each) => each !== network) : [...opened, network],
    );
  const beyond = broken?.isNarrow ? "thread" : "dotted";
  const open = { tint: null, isFirst: false, above: beyond } as const;
  const rows = standingRows(
    way,
    (network) => opened.includes(network),
    broken?.after,
    bundle?.near,
  );
  const forks = others.map((each) => (
    <Item
      rail={{
        ...{ tint: way.segments.at(-1)?.tint ?? null, isFirst: false },
        ...{ mark: each.ms === null || isMixed(each) ? "lost" : "fork" },
        ...{ above: way.isReached ? "whole" : null, below: way.isReached ? "whole" : null },
      }}
      title={each.note}
      result={resultOf(each)}
    />
  ));
  return (
    <div class="standing">
      <ol>
        {rows.map(({ hop, name, network, count, isLast, isFolded, ...row }) => {
          const at = hop?.hop ?? 0;
          const isBroken = at === broken?.after;
          const line: keyof typeof LINES = broken && at > broken.after ? beyond : "whole";
          const below = isLast && !isBroken ? (way.isReached ? null : "dotted") : line;
          const isSite = row.mark === "site";
          const mark = isSite && isMixed(end) ? "unreached" : row.mark;
          const rail = { ...row, mark, above: hop && line, below };
          const label = row.isFirst && (name ?? (hop?.ip ? "not known" : "no answer"));
          const canOpen = row.isFirst && (isFolded || opened.includes(network));
          return (
            <>
              {isSite && forks}
              <Item
                rail={rail}
                title={isSite || !hop ? <b>{hop ? SITE : name}</b> : label || <Name hop={hop} />}
                note={
                  canOpen ? (
                    <button
                      type="button"
                      aria-expanded={isFolded ? "false" : "true"}
                      onClick={() => toggle(network)}
                    >
                      {plural(count, "hop")} {isFolded ? "›" : "⌄"}
                    </button>
                  ) : (
                    isSite && [row.isFirst && name, end.note].filter(Boolean).join(", ")
                  )
                }
                result={isSite ? resultOf(end) : hop?.rtt != null && formatMs(hop.rtt)}
              />
              {bundle?.near === at && (
                <Item
                  rail={{ ...open, tint: row.tint, mark: "bundle", above: null, below: null }}
                  title={
                    <button
                      type="button"
                      aria-expanded={bundle.isListed ? "true" : "false"}
                      onClick={bundle.onList}
                    >
                      {bundle.threads.length} ways {bundle.isListed ? "⌄" : "›"}
                    </button>
                  }
                />
              )}
              {isBroken && (
                <Item
                  rail={{ ...open, mark: "break", y: "50%", below: beyond }}
                  title={<b class="bad">{broken.text}</b>}
                  note={broken.isNarrow && "small ones pass"}
                />
              )}
            </>
          );
        })}
        {!way.isReached && (
          <>
            {forks}
            <Item
              rail={{ ...open, mark: "unreached", below: null }}
              title={<b>{SITE}</b>}
              note={[end.note, unknown].filter(Boolean).join(", ")}
              result={resultOf(end)}
            />
          </>
        )}
      </ol>
    </div>
  );
}
