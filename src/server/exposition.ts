/** Metrics, and how Prometheus reads them: its text format, https://prometheus.io/docs/instrumenting/exposition_formats/. */

type Labels = Readonly<Record<string, string>>;

/** The value of a metric, or its values with their labels. */
export type Reading = number | readonly (readonly [labels: Labels, value: number])[];

type Sample = readonly [suffix: string, labels: Labels, value: number];

/** A metric with its samples, read whenever it is written. */
export interface Metric {
  readonly type: "gauge" | "counter" | "histogram";
  readonly name: string;
  readonly help: string;
  samples(): Iterable<Sample>;
}

/** A value that goes up and down. */
export function gauge(name: string, help: string, read: () => Reading): Metric {
  const samples = () => samplesOf(read()).map(([labels, value]): Sample => ["", labels, value]);
  return { type: "gauge", name, help, samples };
}

/** A value that only grows; its name gets the suffix `_total`. */
export function counter(name: string, help: string, read: () => Reading): Metric {
  return { ...gauge(`${name}_total`, help, read), type: "counter" };
}

/** The values of a reading with their labels. */
export function samplesOf(reading: Reading) {
  return typeof reading === "number" ? [[{}, reading] as const] : reading;
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
          yield ["_bucket", { ...labels, le: String(bound).replace("Infinity", "+Inf") }, count];
        }
        yield ["_sum", labels, sum];
        yield ["_count", labels, count];
      }
    },
  };
}

/** Responds with metrics. */
export function respondMetrics(metrics: readonly Metric[]): Response {
  return new Response(metrics.map(textOf).join(""), {
    headers: { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" },
  });
}

function textOf({ type, name, help, samples }: Metric): string {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
  for (const [suffix, labels, value] of samples()) {
    // JSON escapes what this format does.
    const pairs = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(text)}`);
    lines.push(`${name}${suffix}${pairs.length > 0 ? `{${pairs}}` : ""} ${value}`);
  }
  return `${lines.join("\n")}\n`;
}
