import { formatMs, roundUp } from "./numbers.ts";
import { statsOf } from "./samples.ts";
import { TEXTS } from "./texts.ts";
import type { Sample } from "./types.ts";

/** Shares of the height: above the greatest time, and below the zero. */
const TOP = 12;
const BOTTOM = 10;

/** A dot for each reply, a cross for each loss, and lines at the least, mean and greatest time. */
export function PingChart({ samples, count }: { samples: readonly Sample[]; count: number }) {
  const { min, mean, max } = statsOf(samples);
  const { low, high } = rangeOf(min ?? 0, max ?? 1);
  const first = samples[0]?.seq ?? 1;
  const x = (seq: number) => `${((seq - first + 0.5) / count) * 100}%`;
  const shareOf = (ms: number) => ms / (high - low);
  const y = (ms: number) => `${100 - BOTTOM - shareOf(ms - low) * (100 - TOP - BOTTOM)}%`;
  // The mean has a label if there is room between the others.
  const isCrowded = (ms: number) => shareOf(Math.min((max ?? 0) - ms, ms - (min ?? 0))) < 0.1;
  const lines = [
    ["min", min],
    ["mean", mean],
    ["max", max],
  ] as const;
  return (
    <figure class="chart">
      <svg role="img" aria-label={TEXTS.ping.chart}>
        {[low, high].map((ms) => (
          <g>
            <line class="axis" x1="0" x2="100%" y1={y(ms)} y2={y(ms)} />
            <text x="0" y={y(ms)} dy="-5">
              {Number(ms.toPrecision(3))} {TEXTS.ms}
            </text>
          </g>
        ))}
        {lines.map(([name, ms]) =>
          ms === null ? null : (
            <g>
              <line class={`level ${name}`} x1="0" x2="100%" y1={y(ms)} y2={y(ms)} />
              {(name !== "mean" || !isCrowded(ms)) && (
                <text x="100%" y={y(ms)} dy={name === "min" ? 15 : -5} text-anchor="end">
                  {TEXTS.ping[name]} {formatMs(ms)}
                </text>
              )}
            </g>
          ),
        )}
        {samples.map((sample) =>
          "reason" in sample ? (
            <Cross x={x(sample.seq)} y={y(low)} />
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

function Cross({ x, y }: { x: string; y: string }) {
  return (
    <svg x={x} y={y} class="cross" overflow="visible" aria-hidden="true">
      <path d="M-5-5L5 5M5-5L-5 5" />
    </svg>
  );
}
