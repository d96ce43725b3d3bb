import type { Child } from "hono/jsx/dom";
import { useState } from "hono/jsx/dom";
import { formatMs } from "../../../tools/numbers.ts";
import type { Host } from "../../../tools/report.ts";
import { plural } from "../../../util/text.ts";
import type { Bundle } from "./bundle.ts";
import { Breakable } from "./parts.tsx";
import type { Break, Segment, WayHop } from "./segments.ts";

/** What passes: everything, small packets only, or what is not known. */
const LINES = {
  whole: { "stroke-width": 5 },
  thread: { "stroke-width": 2 },
  dotted: { "stroke-width": 2, "stroke-dasharray": "2 4" },
};

const HOP = { fill: "var(--paper)", stroke: "var(--ink)", "stroke-width": 2 };
const END = { ...HOP, fill: "var(--ink)" };

interface RailProps {
  /** The colour of the network; null without a band. */
  tint: number | null;
  /** True where the band of the network begins. */
  isFirst: boolean;
  mark: "here" | "hop" | "silent" | "site" | "unreached" | "break" | "bundle";
  /** What the way is, above its first row. */
  label?: string | false | undefined;
  /** True for the way beside, with small marks. */
  isThin?: boolean;
  /** Where the mark is, by default in the middle of the first line of text. */
  y?: number | string;
  /** The lines to the marks of the rows before and after it. */
  above: keyof typeof LINES | null;
  below: keyof typeof LINES | null;
}

/** A part of a way that stands, as high as its row: the band of a network, the line, and what is on it. */
export function Rail({ tint, isFirst, mark, label, isThin, y = 18, above, below }: RailProps) {
  const size = isThin ? 0.6 : 1;
  const line = { class: "line", x1: "50%", x2: "50%" };
  const text = { x: "50%", y, dy: 4, "text-anchor": "middle" };
  const disc = { cx: "50%", cy: y };
  const [side, shift] = [16 * size, -8 * size];
  const square = {
    x: "50%",
    y,
    width: side,
    height: side,
    transform: `translate(${shift} ${shift})`,
  };
  const bar = { x: -6, width: 36, height: 3, fill: "var(--bad)" };
  return (
    <svg class={tint === null ? "rail" : "rail band"} aria-hidden="true">
      {tint !== null && <rect width="100%" height="102%" fill={`var(--n${tint})`} />}
      {isFirst && <rect y="-1" width="100%" height="2" fill="var(--paper)" />}
      {above && <line {...line} {...LINES[above]} y1="-1" y2={y} />}
      {below && <line {...line} {...LINES[below]} y1={y} y2="100%" />}
      {mark === "bundle" &&
        ["30%", "50%", "70%"].map((x) => <line {...line} x1={x} x2={x} y1="0" y2="100%" />)}
      {mark === "here" && <circle {...END} {...disc} r={6 * size} />}
      {mark === "hop" && <circle {...HOP} {...disc} r={4 * size} />}
      {mark === "silent" && <circle {...HOP} {...disc} r={7 * size} />}
      {mark === "silent" && !isThin && <text {...text}>?</text>}
      {mark === "site" && <rect {...END} {...square} />}
      {mark === "unreached" && <rect {...HOP} {...square} />}
      {mark === "break" && <rect {...bar} />}
      {mark === "break" && <rect {...bar} y="100%" transform="translate(0 -4)" />}
      {mark === "break" && (
        <svg x="12" y={y} aria-hidden="true">
          <path d="M-6-6l12 12m0-12l-12 12" stroke="var(--bad)" stroke-width="3" />
        </svg>
      )}
      {label && (
        <text {...text} y="-12">
          {label}
        </text>
      )}
    </svg>
  );
}

/** What is on the rail for a hop; null is this machine. */
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

interface Way {
  readonly segments: readonly Segment[];
  /** True if the last hop is the site. */
  readonly isReached: boolean;
}

/** The rows of a way: the ends of each network, the hops around a break, and all where it is open; null is this machine. */
export function standingRows(
  { segments, isReached }: Way,
  isOpen: (network: number) => boolean,
  breakAfter = Number.NaN,
  bundleAfter = Number.NaN,
) {
  const rows = segments.flatMap(({ name, tint, hops }, network) => {
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

/** A way, and what is known of its end. */
export interface StandingWayProps extends Way {
  /** The way over IPv4, beside it. */
  ipv4?: Way;
  break?: Break;
  /** Several paths behind a hop, of which a list opens. */
  bundle?:
    | (Pick<Bundle, "near" | "threads"> & { readonly isListed: boolean; onList(): void })
    | null
    | undefined;
  /** What the way leads to, as "The site". */
  site: string;
}

/** A row: its part of the rail, what is there, a note below that, and milliseconds. */
function Item(props: { rail: RailProps; title: Child; note?: Child; ms?: number | null }) {
  const { rail, title, note, ms = null } = props;
  return (
    <li>
      <Rail {...rail} />
      <div>
        {title}
        {note && <div class="soft">{note}</div>}
      </div>
      {ms !== null && <span class="number">{formatMs(ms)}</span>}
    </li>
  );
}

/** A way from top to bottom, for narrow screens; a network is a row or two, which open. */
export function StandingWay({ ipv4, site, bundle, break: broken, ...way }: StandingWayProps) {
  const [open, setOpen] = useState<readonly number[]>([]);
  const toggle = (network: number) =>
    setOpen(open.includes(network) ? open.filter((each) => each !== network) : [...open, network]);
  const beyond = broken?.isNarrow ? "thread" : "dotted";
  const unknown = { tint: null, isFirst: false, above: beyond } as const;
  const rows = standingRows(way, (network) => open.includes(network), broken?.after, bundle?.near);
  return (
    <div class="standing">
      {ipv4 && (
        <div class="ipv4" aria-hidden="true">
          {standingRows(ipv4, () => true).map(({ hop, isLast, ...row }) => {
            const lines = { above: hop && "thread", below: isLast ? null : "thread" } as const;
            return (
              <div>
                <Rail {...row} {...lines} label={!hop && "IPv4"} y="50%" isThin />
              </div>
            );
          })}
        </div>
      )}
      <ol>
        {rows.map(({ hop, name, network, count, isLast, isFolded, ...row }) => {
          const at = hop?.hop ?? 0;
          const isBroken = at === broken?.after;
          const line: keyof typeof LINES = broken && at > broken.after ? beyond : "whole";
          const below = isLast && !isBroken ? (way.isReached ? null : "dotted") : line;
          const rail = { ...row, above: hop && line, below, label: !hop && ipv4 && "IPv6" };
          const isSite = row.mark === "site";
          const label = row.isFirst && (name ?? (hop?.ip ? "not known" : "no answer"));
          const canOpen = row.isFirst && (isFolded || open.includes(network));
          return (
            <>
              <Item
                rail={rail}
                title={isSite || !hop ? <b>{hop ? site : name}</b> : label || <Name hop={hop} />}
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
                    isSite && label
                  )
                }
                ms={hop?.rtt ?? null}
              />
              {bundle?.near === at && (
                <Item
                  rail={{
                    tint: row.tint,
                    isFirst: false,
                    mark: "bundle",
                    above: null,
                    below: null,
                  }}
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
                  rail={{ ...unknown, mark: "break", y: "50%", below: beyond }}
                  title={<b class="bad">{broken.text}</b>}
                  note={broken.isNarrow && "small ones pass"}
                />
              )}
            </>
          );
        })}
        {!way.isReached && (
          <Item
            rail={{ ...unknown, mark: "unreached", below: null }}
            title={<b>{site}</b>}
            note="not reached, so not known"
          />
        )}
      </ol>
    </div>
  );
}
