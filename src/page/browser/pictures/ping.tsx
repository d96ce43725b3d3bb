import { formatMs, roundUp } from "../../../tools/numbers.ts";
import { type PingDocument, samplesOf } from "../../../tools/ping/report.ts";
import type { Sample } from "../../../tools/ping/result.ts";
import type { View } from "./picture.ts";

/** Samples that a run that goes on shows. */
const SHOWN = 60;

/** Shares of the height: above the greatest time, and below the zero. */
const TOP = 12;
const BOTTOM = 10;

/** Share of the width for the labels of the lines. */
const RIGHT = 6;

/** The chart of the samples, and a run that goes on. */
export const pingView: View<PingDocument> = {
  figure(document, { values, all }) {
    const samples = samplesOf(document);
    const count = Math.min(SHOWN, Math.max(Number(values["count"]), samples.length));
    const { stats } = document;
    const ends = all.flatMap(({ stats: { min, max } }) => [min ?? [], max ?? []].flat());
    const range = rangeOf(Math.min(...ends), Math.max(...ends));
    return stats.received > 0 ? (
      <Chart samples={samples.slice(-SHOWN)} {...{ stats, count, range }} />
    ) : null;
  },
  maxRows: SHOWN,
  repeat: { label: "Run on, one a second", values: { count: "1" }, everyMs: 1000 },
};

interface ChartProps {
  readonly samples: readonly Sample[];
  readonly stats: PingDocument["stats"];
  readonly count: number;
  readonly range: ReturnType<typeof rangeOf>;
}

/** A dot for each reply, a cross for each loss, and lines at the least and the greatest time. */
function Chart({ samples, stats: { min, max }, count, range: { low, high } }: ChartProps) {
  const first = samples[0]?.seq ?? 1;
  const x = (seq: number) => `${((seq - first + 0.5) / count) * (100 - RIGHT)}%`;
  const y = (ms: number) => `${100 - BOTTOM - ((ms - low) / (high - low)) * (100 - TOP - BOTTOM)}%`;
  const levels = Object.entries({ min, max }).flatMap(([name, ms]) =>
    ms === null ? [] : [{ about: `level ${name}`, ms, label: `${name} ${formatMs(ms)}` }],
  );
  const ends = [low, high].map((ms) => ({
    about: "axis",
    ms,
    label: `${Number(ms.toPrecision(3))} ms`,
  }));
  return (
    <figure class="chart">
      <svg role="img" aria-label="Round-trip times of the requests in order">
        {[...ends, ...levels].map(({ about, ms, label }) => (
          <g>
            <line class={about} x1="0" x2="100%" y1={y(ms)} y2={y(ms)} />
            <text
              class={about}
              x={about === "axis" ? "0" : "100%"}
              y={y(ms)}
              dy={about === "level min" ? 15 : -5}
            >
              {label}
            </text>
          </g>
        ))}
        {samples.map((sample) =>
          "reason" in sample ? (
            <text class="cross" x={x(sample.seq)} y={y(low)} dy="0.35em">
              ×
            </text>
          ) : (
            <circle class="dot" cx={x(sample.seq)} cy={y(sample.rtt)} r="5" />
          ),
        )}
      </svg>
    </figure>
  );
}

/** The round numbers that a scale begins and ends with, so that its times use most of the height. */
function rangeOf(min: number, max: number): { readonly low: number; readonly high: number } {
  const spread = Math.max(max - min, max / 10, 0.01);
  const step = roundUp(spread);
  const low = Math.max(0, Math.floor((min - spread / 4) / step) * step);
  return { low, high: Math.ceil((max + spread / 4) / step) * step };
}
