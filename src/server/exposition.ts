/** Metrics, and how Prometheus reads them: OpenMetrics 1.0, or the classic text format for those that ask for text. */
import { prefers } from "../http/request.ts";

const OPEN_METRICS = "application/openmetrics-text";

type Labels = Readonly<Record<string, string>>;

/** The value of a metric, or its values with their labels. */
export type Reading = number | readonly (readonly [labels: Labels, value: number])[];

type Sample = readonly [suffix: string, labels: Labels, value: number];

/** A metric with its samples, read whenever it is written. */
export interface Metric {
  readonly type: "gauge" | "counter" | "histogram";
  /** Without the suffix `_total` of a counter. */
  readonly name: string;
  readonly help: string;
  samples(): Iterable<Sample>;
}

/** A value that goes up and down. */
export function gauge(name: string, help: string, read: () => Reading): Metric {
  return { type: "gauge", name, help, samples: () => suffixed("", read()) };
}

/** A value that only grows. */
export function counter(name: string, help: string, read: () => Reading): Metric {
  return { type: "counter", name, help, samples: () => suffixed("_total", read()) };
}

/** The values of a reading with their labels. */
export function samplesOf(reading: Reading) {
  return typeof reading === "number" ? [[{}, reading] as const] : reading;
}

function suffixed(suffix: string, reading: Reading): Sample[] {
  return samplesOf(reading).map(([labels, value]) => [suffix, labels, value] as const);
}

/**
 * How often something took how many seconds, by labels.
 *
 * @param bounds the upper bounds of the buckets, ascending
 */
export function histogram(name: string, help: string, bounds: readonly number[]) {
  const buckets = [...bounds, Number.POSITIVE_INFINITY];
  const allSeries = new Map<string, { labels: Labels; counts: number[]; sum: number }>();
  return {
    ...{ type: "histogram" as const, name, help },
    /** @param labels with values from a bounded number, always in the same order */
    observe(seconds: number, labels: Labels = {}): void {
      const series = allSeries.getOrInsertComputed(Object.values(labels).join("\n"), () => ({
        labels,
        counts: buckets.map(() => 0),
        sum: 0,
      }));
      const bucket = buckets.findIndex((bound) => seconds <= bound);
      series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
      series.sum += seconds;
    },
    *samples(): Iterable<Sample> {
      for (const { labels, counts, sum } of allSeries.values()) {
        let count = 0;
        for (const [index, bound] of buckets.entries()) {
          count += counts[index] ?? 0;
          yield ["_bucket", { ...labels, le: boundText(bound) }, count];
        }
        yield ["_sum", labels, sum];
        yield ["_count", labels, count];
      }
    },
  };
}

/** Responds with metrics in the format that a request prefers. */
export function respondMetrics(metrics: readonly Metric[], { headers }: Request): Response {
  const isClassic = prefers(headers.get("accept"), "text/plain", OPEN_METRICS);
  const text = metrics.map((metric) => textOf(metric, isClassic)).join("");
  const type = isClassic ? "text/plain; version=0.0.4" : `${OPEN_METRICS}; version=1.0.0`;
  return new Response(isClassic ? text : `${text}# EOF\n`, {
    headers: { "Content-Type": `${type}; charset=utf-8` },
  });
}

function textOf(metric: Metric, isClassic: boolean): string {
  const { type, name, help } = metric;
  // The classic format comments on a counter by its whole name.
  const whole = isClassic && type === "counter" ? `${name}_total` : name;
  const lines = [`# HELP ${whole} ${help}`, `# TYPE ${whole} ${type}`];
  for (const [suffix, labels, value] of metric.samples()) {
    // JSON escapes what OpenMetrics does.
    const pairs = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(text)}`);
    lines.push(`${name}${suffix}${pairs.length > 0 ? `{${pairs}}` : ""} ${value}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Bounds are floats: `1.0`. */
function boundText(bound: number): string {
  if (bound === Number.POSITIVE_INFINITY) return "+Inf";
  return Number.isInteger(bound) ? bound.toFixed(1) : String(bound);
}
