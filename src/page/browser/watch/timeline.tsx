import type { Child } from "hono/jsx/dom";
import { roundUp } from "../../../tools/numbers.ts";
import { median } from "../../../util/numbers.ts";
import { plural } from "../../../util/text.ts";
import type { WatchSeries } from "../../../watch/result.ts";
import { isBad } from "./words.ts";

type Part = WatchSeries["series"][number];

/** A change with its number on the page, and where it is open. */
export type Mark = WatchSeries["changes"][number] & {
  readonly number: number;
  readonly hash: string;
};

interface TimelineProps {
  series: readonly Part[];
  /** The oldest first. */
  marks: readonly Mark[];
  /** The length of the time that ends now. */
  spanMs: number;
  /** The id of the change that is open. */
  open: number | null;
}

/** Marks closer than this many percent of the width are one: 22 pixels of a wide screen. */
const LEAST_DISTANCE = 2.2;

/** The axis of loss goes up to this many percent at least. */
const LEAST_LOSS = 20;

const TICKS = 6;

/** A chart as wide as the figure, in percent of its width and height; the label says what its top line means. */
const track = (label: string, y: number, height: number, paths: Child) => (
  <>
    {[y, y + height].map((at) => (
      <line x1="0" x2="100%" y1={at} y2={at} />
    ))}
    <text y={y - 5}>{label}</text>
    <svg aria-hidden="true" {...{ y, height }} viewBox="0 0 100 100" preserveAspectRatio="none">
      {paths}
    </svg>
  </>
);

/**
 * The median round-trip time over a band from the least to the greatest, loss, and verdicts over a time, with a line
 * through all for each change. A gap is not bridged, and says why.
 */
export function Timeline({ series, marks, spanMs, open }: TimelineProps) {
  const startMs = Date.now() - spanMs;
  const x = (at: string) => Math.round((Date.parse(at) - startMs) / (spanMs / 1e4)) / 100;
  // A watch may run less often than once a part.
  const width =
    median(series.slice(1).map(({ at }, index) => x(at) - x(series[index]?.at ?? at))) ?? 1;
  const measured = series.filter(({ median }) => median !== null);
  const greatest = measured.map(({ max }) => max ?? 0).toSorted((a, b) => a - b);
  const scale = roundUp(greatest[Math.floor(greatest.length * 0.99)] ?? 1);
  const lossScale = Math.max(LEAST_LOSS, ...series.map(({ loss }) => loss ?? 0));
  const lines = together(measured, ({ at }, before) => x(at) - x(before.at) < width * 1.5);
  const points = (line: readonly Part[], which: "min" | "median" | "max") =>
    line.map((part) => `${x(part.at)} ${100 * (1 - Math.min(1, (part[which] ?? 0) / scale))}`);
  const band = (line: Part[]) =>
    `M${[...points(line, "max"), ...points(line, "min").reverse()].join("L")}z`;
  const verdicts = (bad: boolean) =>
    series
      .filter(({ code }) => code !== null && isBad(code) === bad)
      .map(({ at }) => `M${x(at)} 50h${width}`);
  const over = measured.filter(({ max }) => (max ?? 0) > scale);
  const lost = series.filter(({ loss }) => loss);
  const gaps = together(
    series.filter(({ gap }) => gap !== null),
    ({ gap }, before) => gap === before.gap,
  );
  return (
    <figure class="timeline">
      <svg aria-hidden="true">
        {track(`Round trip, ${scale} ms`, 44, 130, [
          <path class="band" d={lines.map(band).join("")} />,
          <path
            class="line"
            d={lines.map((line) => `M${points(line, "median").join("L")}h.1`).join("")}
          />,
          <path class="line" d={over.map(({ at }) => `M${x(at)} 0v-4`).join("")} />,
        ])}
        {track(
          `Loss, ${lossScale} %`,
          204,
          36,
          <path
            class="lost"
            d={lost
              .map(({ at, loss }) => `M${x(at)} 100v${(-100 * (loss ?? 0)) / lossScale}`)
              .join("")}
          />,
        )}
        {track("Verdict", 258, 10, [
          <path class="works" d={verdicts(false).join("")} />,
          <path class="broken" d={verdicts(true).join("")} />,
        ])}
        {gaps.map(([part]) => (
          <text class="gap" x={`${x(part.at)}%`} y="168">
            no runs: {part.gap}
          </text>
        ))}
        {Array.from({ length: TICKS }, (_, index) => {
          const tick = new Date(startMs + (spanMs * index) / TICKS).toISOString();
          return (
            <text x={`${(100 * index) / TICKS}%`} y="292">
              {spanMs <= 86_400_000 ? tick.slice(11, 16) : tick.slice(5, 10)}
            </text>
          );
        })}
        {together(marks, ({ at }, before) => x(at) - x(before.at) < LEAST_DISTANCE).map(
          (joined) => {
            const [first] = joined;
            const last = joined.at(-1) ?? first;
            const at = `${x(last.at)}%`;
            return (
              <a
                class={joined.some(({ id }) => id === open) ? "mark open" : "mark"}
                href={last.hash}
                tabindex={-1}
              >
                <line x1={at} x2={at} y1="22" y2="268" />
                <circle cx={at} cy="12" r={first === last ? 10 : 13} />
                <text x={at} y="12" dy="0.35em">
                  {first === last ? last.number : `${first.number}–${last.number}`}
                </text>
              </a>
            );
          },
        )}
      </svg>
      <figcaption>
        {plural(
          series.reduce((sum, { runs }) => sum + runs, 0),
          "run",
        )}
        , broken in {series.filter(({ code }) => code !== null && isBad(code)).length} of{" "}
        {series.length} parts of the time, loss in {lost.length}
      </figcaption>
    </figure>
  );
}

/** Values in order, in groups: each of which goes together with the one before. */
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
