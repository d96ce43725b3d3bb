import { formatMs, roundUp } from "../../../tools/numbers.ts";
import { type PingDocument, samplesOf } from "../../../tools/ping/report.ts";
import type { View } from "./picture.ts";

/** The last samples that are shown of a run that goes on. */
const SHOWN = 60;

/** Shares of the height: above the greatest time, and below the zero. */
const TOP = 12;
const BOTTOM = 10;

/** Share of the width for the labels of the lines. */
const RIGHT = 6;

/** A dot for each reply, a cross for each loss, and lines at the least and the greatest time. The run can go on. */
export const pingView: View<PingDocument> = {
  figure(document, { values, all }) {
    const { min, max, received } = document.stats;
    if (received === 0) return null;
    const samples = samplesOf(document);
    const count = Math.min(SHOWN, Math.max(Number(values["count"]), samples.length));
    const shown = samples.slice(-SHOWN);
    const first = shown[0]?.seq ?? 1;
    const ends = all.flatMap(({ stats }) => [stats.min ?? [], stats.max ?? []].flat());
    const { low, high } = rangeOf(Math.min(...ends), Math.max(...ends));
    const x = (seq: number) => `${((seq - first + 0.5) / count) * (100 - RIGHT)}%`;
    const y = (ms: number) =>
      `${100 - BOTTOM - ((ms - low) / (high - low)) * (100 - TOP - BOTTOM)}%`;
    const line = (about: string, ms: number, label: string) => (
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
    );
    return (
      <figure class="chart">
        <svg role="img" aria-label="Round-trip times of the requests in order">
          {[low, high].map((ms) => line("axis", ms, `${Number(ms.toPrecision(3))} ms`))}
          {min !== null && line("level min", min, `min ${formatMs(min)}`)}
          {max !== null && line("level max", max, `max ${formatMs(max)}`)}
          {shown.map((sample) =>
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
  },
  maxRows: SHOWN,
  repeat: { label: "Keep pinging", values: { count: "1" }, everyMs: 1000 },
};

/** The round numbers that a scale begins and ends with, so that its times use most of the height. */
function rangeOf(min: number, max: number): { readonly low: number; readonly high: number } {
  const spread = Math.max(max - min, max / 10, 0.01);
  const step = roundUp(spread);
  const low = Math.max(0, Math.floor((min - spread / 4) / step) * step);
  return { low, high: Math.ceil((max + spread / 4) / step) * step };
}
