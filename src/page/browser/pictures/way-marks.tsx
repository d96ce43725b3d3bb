/** The marks on a way: hops, the site, breaks, forks, strands, and times. */
import type { Child } from "hono/jsx/dom";
import type { Tone } from "../../../tools/report.ts";
import type { Segment } from "./segments.ts";
import { BREAK, type Placed } from "./way-layout.ts";

/** Pixels of a character, to leave out names without room. */
export const CHARACTER = 6.8;

/** The most threads that are drawn one each; more are drawn in proportion. */
export const MOST_THREADS = 16;

/** One end of a way: an address of the site, or several like ones. */
export interface End {
  /** The outcome, such as `14.2 ms`. */
  readonly text: string;
  /** The address, or how many there are. */
  readonly note: string;
  readonly tone: Tone | null;
  /** Milliseconds; null if it was not reached. */
  readonly ms: number | null;
  /** Attempts, and those that failed. */
  readonly attempts?: { readonly made: number; readonly failed: number };
}

/** True if some attempts worked and some did not. */
export const isMixed = ({ attempts }: End) =>
  attempts !== undefined && attempts.failed > 0 && attempts.failed < attempts.made;

/** Milliseconds for a short label. */
export const shortMs = (ms: number) => (ms < 100 ? ms.toFixed(1) : ms.toFixed(0));

interface RingProps extends Placed {
  y: number;
  isThin: boolean;
}

export function Ring({ hop, count, x, y, isThin }: RingProps) {
  if (hop.ip !== null) return <circle class="ring" cx={x} cy={y} r={isThin ? 2.5 : 4} />;
  return (
    <>
      <circle class="ring silent" cx={x} cy={y} r={isThin ? 2.5 : 7} />
      {!isThin && (
        <text class="axis middle" x={x} y={y + 4}>
          ?
        </text>
      )}
      {!isThin && count > 1 && (
        <text class="axis middle" x={x} y={y - 16}>
          {count} silent
        </text>
      )}
    </>
  );
}

/** A dotted line for a part that is not known, and why. */
export function Dotted(props: Record<"from" | "to" | "y", number> & { text: string }) {
  const { from, to, y, text } = props;
  const [middle, half] = [(from + to) / 2, text === "" ? 0 : (text.length * CHARACTER) / 2 + 8];
  if (half === 0 || to - from < 2 * half)
    return <line class="dotted" x1={from} x2={to} y1={y} y2={y} />;
  return (
    <>
      <line class="dotted" x1={from} x2={middle - half} y1={y} y2={y} />
      <text class="axis middle" x={middle} y={y + 4}>
        {text}
      </text>
      <line class="dotted" x1={middle + half} x2={to} y1={y} y2={y} />
    </>
  );
}

type SiteProps = Record<"x" | "y", number> & Record<"isThin" | "isReached", boolean>;

export function Site({ x, y, isThin, isReached }: SiteProps) {
  const half = isThin ? 5 : 8;
  return (
    <rect
      class={isReached ? "site" : "site open"}
      x={x - half}
      y={y - half}
      width={2 * half}
      height={2 * half}
      rx={2}
    />
  );
}

/** Two bars, paper between them, and a cross. */
function Gap({ left, right, y }: { left: number; right: number; y: number }) {
  return (
    <>
      <rect class="paper" x={left} y={y - 13} width={right - left} height={26} />
      {[left, right].map((bar) => (
        <line class="bar" x1={bar} x2={bar} y1={y - 17} y2={y + 17} />
      ))}
      <path class="cross" d={`M${(left + right) / 2 - 6} ${y - 6}l12 12m0-12l-12 12`} />
    </>
  );
}

interface BreakMarkProps {
  x: number;
  y: number;
  text: string;
  /** Pixels that the way has. */
  width: number;
}

/** A break, and the fault above it. */
export function BreakMark({ x, y, text, width }: BreakMarkProps) {
  const middle = x + BREAK / 2;
  const half = (text.length * CHARACTER) / 2 + 4;
  const at = Math.min(Math.max(middle, half), Math.max(half, width - half));
  return (
    <g class="break">
      <Gap left={x} right={x + BREAK} y={y} />
      <line class="leader" x1={middle} x2={middle} y1={y - 54} y2={y - 18} />
      <text class="told bad middle" x={at} y={y - 60}>
        {text}
      </text>
    </g>
  );
}

interface ForkProps {
  from: number;
  x: number;
  start: number;
  y: number;
  text: string;
  isWhole: boolean;
}

/** The way to another address of the site, which forks off. */
export function Fork({ from, x, start, y, text, isWhole }: ForkProps) {
  const bend = `M${from - 10} ${start}C${from + 12} ${start} ${from} ${y} ${from + 28} ${y}`;
  const [left, right] = [from + 28, Math.max(from + 64, x - 20)];
  const width = text.length * CHARACTER;
  return (
    <g class={isWhole ? "" : "break"}>
      <path class="line" d={isWhole ? `${bend}H${x}` : bend} />
      {!isWhole && (
        <>
          <Gap {...{ left, right, y }} />
          <text class="told bad" text-anchor="end" x={Math.max(x + 8, width)} y={y + 34}>
            {text}
          </text>
        </>
      )}
      <Site x={x} y={y} isThin={false} isReached={isWhole} />
    </g>
  );
}

interface StrandsProps {
  end: End;
  from: number;
  x: number;
  y: number;
  start: number;
}

/** A thread for each attempt; failed ones end before the site. */
export function Strands({ end, from, x, y, start }: StrandsProps) {
  const { made, failed } = end.attempts ?? { made: 1, failed: 0 };
  const threads = Math.min(made, MOST_THREADS);
  const lost = Math.round((threads * failed) / made);
  // Failed attempts are spread among the others.
  const isLost = (at: number) =>
    Math.floor(((at + 1) * lost) / threads) > Math.floor((at * lost) / threads);
  const yOf = (at: number) => y + (at - (threads - 1) / 2) * 7;
  const half = Math.max(8, (threads * 7) / 2 + 2);
  const cut = x - 46;
  return (
    <g class="strands">
      {Array.from({ length: threads }, (_, at) => (
        <path
          class="thread"
          d={`M${from} ${start}C${from + 20} ${start} ${from + 14} ${yOf(at)} ${from + 44} ${yOf(at)}H${isLost(at) && failed > 0 ? Math.max(cut, from + 46) : x}`}
        />
      ))}
      {Array.from({ length: threads }, (_, at) =>
        isLost(at) && failed > 0 ? (
          <path
            class="cross small"
            d={`M${Math.max(cut, from + 46) - 3.5} ${yOf(at) - 3.5}l7 7m0-7l-7 7`}
          />
        ) : null,
      )}
      {failed > 0 && failed < made && (
        <text class="told bad" text-anchor="end" x={x + 8} y={y + half + 18}>
          {failed} of {made} end here
        </text>
      )}
      <rect
        class={failed > 0 ? "site hollow" : "site"}
        x={x - 7}
        y={y - half}
        width={14}
        height={2 * half}
        rx={2}
      />
    </g>
  );
}

interface TimesProps {
  segments: readonly Segment[];
  placed: readonly Placed[];
  y: number;
}

/** The time of the last hop of each network, below it. */
export function Times({ segments, placed, y }: TimesProps) {
  const shown: Child[] = [];
  let free = 0;
  for (const { hops } of segments) {
    const last = hops.findLast(({ rtt }) => rtt !== null);
    const x = placed.find(({ hop }) => hop === last)?.x;
    if (last?.rtt == null || x === undefined || x < free) continue;
    const isFirst = shown.length === 0;
    free = x + (isFirst ? 52 : 40);
    shown.push(
      <text class="axis middle" x={Math.max(x, 22)} y={y}>
        {shortMs(last.rtt)}
        {isFirst && " ms"}
      </text>,
    );
  }
  return <>{shown}</>;
}

type DoubtProps = Record<"from" | "end" | "y", number> & { text: string };

/** A bracket over the hops that may be at fault. */
export function Doubt({ from, end, y, text }: DoubtProps) {
  return (
    <g class="warn">
      <path class="bracket" d={`M${from} ${y + 6}v-7H${end}v7`} />
      <text class="told middle" x={(from + end) / 2} y={y - 8}>
        {text}
      </text>
    </g>
  );
}
