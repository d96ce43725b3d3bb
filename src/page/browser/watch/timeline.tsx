import { roundUp } from "../../../tools/numbers.ts";
import type { Tone } from "../../../tools/report.ts";
import { toneOf } from "../../../tools/report.ts";
import { median } from "../../../util/numbers.ts";
import type { WatchSeries } from "../../../watch/result.ts";

type Part = WatchSeries["series"][number];

/** A change with its number on the page, whether it is open, and its link. */
export type Mark = WatchSeries["changes"][number] & {
  number: number;
  isOpen: boolean;
  hash: string;
};

/** The class of a mark. */
export const classOf = ({ isOpen }: Pick<Mark, "isOpen">) => (isOpen ? "mark open" : "mark");

interface TimelineProps extends Pick<WatchSeries, "series"> {
  /** The oldest first. */
  marks: readonly Mark[];
  /** Hours until now. */
  hours: number;
}

const HOUR_MS = 3_600_000;

/** Percent of the width below which marks become one: 22 pixels of a wide screen. */
const LEAST_DISTANCE = 2.2;

/** The least end of the axis of loss in percent. */
const LEAST_LOSS = 20;

/** Percent of the width behind which the text of a tick has no room. */
const LAST_TICK = 90;

/** Pixels from the top: of the charts, the end of the lines through them, and the texts below. */
const Y = { rtt: [166, 36], loss: [234, 198], verdict: 260, end: 276, below: 292 } as const;

/** SVG paths by the names of their classes, each from its pieces; empty paths are not drawn. */
export const paths = (pieces: Readonly<Record<string, readonly string[]>>) =>
  Object.entries(pieces)
    .map(([name, each]) => [name, each.join("")] as const)
    .flatMap(([name, d]) =>
      d === "" ? [] : <path class={name} d={d} vector-effect="non-scaling-stroke" />,
    );

/**
 * The median round-trip time over a band from the least to the greatest, loss, and verdicts over a time, with a line
 * through all for each change. A gap is not bridged, and says why.
 */
export function Timeline({ series, marks, hours }: TimelineProps) {
  const startMs = Date.now() - hours * HOUR_MS;
  /** Percent of the width. */
  const xOf = (ms: number) => Math.round((ms - startMs) / (hours * 360)) / 100;
  const x = ({ at }: { readonly at: string }) => xOf(Date.parse(at));
  const y = ([base, top]: typeof Y.rtt | typeof Y.loss, value: number | null, most: number) =>
    base - (base - top) * Math.min(1, (value ?? 0) / most);
  // A watch may run less often than once a part.
  const width = median(series.slice(1).map((part, at) => x(part) - x(series[at] ?? part))) ?? 1;
  const measured = series.filter(({ median }) => median !== null);
  const greatest = measured.map(({ max }) => max ?? 0).toSorted((a, b) => a - b);
  const rttMost = roundUp(greatest[Math.floor(greatest.length * 0.99)] ?? 1);
  const lossMost = Math.max(LEAST_LOSS, ...series.map(({ loss }) => loss ?? 0));
  const points = (line: readonly Part[], which: "min" | "median" | "max") =>
    line.map((part) => `${x(part)} ${y(Y.rtt, part[which], rttMost)}`);
  const lines = together(measured, (part, before) => x(part) - x(before) < width * 1.5);
  const over = measured.filter(({ max }) => (max ?? 0) > rttMost);
  const lost = series.filter(({ loss }) => loss);
  const gaps = series.filter(({ gap }) => gap !== null);
  const stretch = (part: Part) => `M${x(part)} ${Y.verdict}h${width}`;
  const having = (tone: Tone) => series.filter(({ code }) => code && toneOf(code) === tone);
  const labels = [
    ["name", Y.rtt[1], "Round trip"],
    ["end", Y.rtt[1], `${rttMost} ms`],
    ["end", (Y.rtt[0] + Y.rtt[1]) / 2, `${rttMost / 2}`],
    ["end", Y.rtt[0], "0"],
    ["name", Y.loss[1], "Loss"],
    ["end", Y.loss[1], `${lossMost} %`],
    ["end", Y.loss[0], "0"],
    ["name", Y.verdict, "Verdict"],
  ] as const;
  // Every 4 hours of a day; for longer times, about seven midnights.
  const stepMs = Math.max(4, Math.round(hours / 168) * 24) * HOUR_MS;
  const ticks = Array.from({ length: (hours * HOUR_MS) / stepMs }, (_, index) => {
    return (Math.ceil(startMs / stepMs) + index) * stepMs;
  }).filter((ms) => xOf(ms) < LAST_TICK);
  const texts = [
    ...labels.map(([name, at, text]) => [name, 0, at, text] as const),
    ...ticks.map((ms, at) => {
      // Where there is little room, every other tick has its text.
      const name = at % 2 === 0 ? "tick" : "tick odd";
      return [name, xOf(ms), Y.below, tickText(ms, stepMs / HOUR_MS)] as const;
    }),
    ...together(gaps, (part, before) => part.gap === before.gap).map(([part]) => {
      return [x(part) < 50 ? "gap" : "gap end", x(part), 50, `no runs: ${part.gap}`] as const;
    }),
  ];
  return (
    <figure class="timeline">
      <svg aria-hidden="true" height="300">
        <svg
          class="lines"
          aria-hidden="true"
          viewBox="0 0 100 276"
          height="276"
          preserveAspectRatio="none"
        >
          {paths({
            base: [
              ...labels.map(([name, at]) => (name === "end" ? `M0 ${at}h100` : "")),
              ...ticks.map((ms) => `M${xOf(ms)} ${Y.end}v-5`),
            ],
            band: lines.map(
              (line) => `M${[...points(line, "max"), ...points(line, "min").reverse()].join("L")}z`,
            ),
            line: [
              ...lines.map((line) => `M${points(line, "median").join("L")}h.1`),
              ...over.map((part) => `M${x(part)} ${Y.rtt[1]}v-4`),
            ],
            bad: lost.map((part) => `M${x(part)} ${Y.loss[0]}V${y(Y.loss, part.loss, lossMost)}`),
            good: having("good").map(stretch),
            "warn thick": having("warn").map(stretch),
            "bad thick": having("bad").map(stretch),
            soft: gaps.map((part) => `M${x(part)} ${Y.verdict}h${width / 2}`),
          })}
        </svg>
        {texts.map(([name, at, y, text]) => (
          <text class={`tiny ${name}`} x={`${at}%`} y={y}>
            {text}
          </text>
        ))}
        {together(marks, (mark, before) => x(mark) - x(before) < LEAST_DISTANCE).map((joined) => {
          const [first, last = first] = [joined[0], joined.at(-1)];
          const at = `${x(last)}%`;
          const isOpen = joined.some((each) => each.isOpen);
          return (
            <a class={classOf({ isOpen })} href={last.hash} tabindex={-1}>
              <line x1={at} x2={at} y1="22" y2={Y.end} />
              <Circle
                x={at}
                text={first === last ? `${last.number}` : `${first.number}–${last.number}`}
              />
            </a>
          );
        })}
      </svg>
      <figcaption class="unseen">
        Broken in {having("bad").length} of {series.length} parts of the time, loss in {lost.length}
      </figcaption>
    </figure>
  );
}

/** The number of a change, or the first and last of several, in a circle. */
export const Circle = ({ x, text }: { x: string; text: string }) => (
  <>
    <circle cx={x} cy="12" r={text.length > 2 ? 13 : 10} />
    <text class="tiny count" x={x} y="12">
      {text}
    </text>
  </>
);

/** The text of a tick, in UTC: a time, a day of the week, or a day of the year. */
function tickText(ms: number, stepHours: number) {
  const day = { day: "numeric", [stepHours > 24 ? "month" : "weekday"]: "short" } as const;
  const format = stepHours < 24 ? ({ timeStyle: "short" } as const) : day;
  return new Date(ms).toLocaleString("en-GB", { timeZone: "UTC", ...format });
}

/** Values in order, in groups; each value of a group is near the one before. */
function together<Value>(
  values: readonly Value[],
  isNear: (value: Value, before: Value) => boolean,
) {
  const groups: [Value, ...Value[]][] = [];
  for (const value of values) {
    const group = groups.at(-1);
    if (group && isNear(value, group.at(-1) ?? group[0])) group.push(value);
    else groups.push([value]);
  }
  return groups;
}
