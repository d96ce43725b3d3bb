/** Metrics in the text format of Prometheus, https://prometheus.io/docs/instrumenting/exposition_formats/. */

type Labels = Readonly<Record<string, string>>;

/** A value of a metric with its labels. */
export type Sample = readonly [labels: Labels, value: number, suffix?: string];

/** The value of a metric, or its values with their labels. */
export type Reading = number | readonly Sample[];

/** A metric; its samples are read each time it is written. */
export interface Metric {
  readonly type: "gauge" | "counter" | "histogram" | "summary";
  readonly name: string;
  readonly help: string;
  samples(): Iterable<Sample>;
}

/** A value that goes up and down. */
export function gauge(name: string, help: string, read: () => Reading): Metric {
  return { type: "gauge", name, help, samples: () => samplesOf(read()) };
}

/** A value that only grows; its name gets the suffix `_total`. */
export function counter(name: string, help: string, read: () => Reading): Metric {
  return { ...gauge(`${name}_total`, help, read), type: "counter" };
}

/** The values of a reading with their labels. */
export function samplesOf(reading: Reading): readonly Sample[] {
  return typeof reading === "number" ? [[{}, reading]] : reading;
}

/**
 * A distribution of seconds, by labels.
 *
 * @param bounds the upper bounds of the buckets, ascending
 */
export function histogram(name: string, help: string, bounds: readonly number[]) {
  const newSeries = (labels: Labels) => {
    return { labels, sum: 0, count: 0, buckets: bounds.map((bound) => ({ bound, count: 0 })) };
  };
  const allSeries = new Map<string, ReturnType<typeof newSeries>>();
  return {
    ...{ type: "histogram" as const, name, help },
    /** @param labels with values from a bounded number, always in the same order */
    observe(seconds: number, labels: Labels = {}): void {
      const key = Object.values(labels).join("\n");
      const series = allSeries.getOrInsertComputed(key, () => newSeries(labels));
      series.sum += seconds;
      series.count += 1;
      for (const bucket of series.buckets) if (seconds <= bucket.bound) bucket.count += 1;
    },
    *samples(): Iterable<Sample> {
      for (const { labels, sum, count: all, buckets } of allSeries.values()) {
        for (const { bound, count } of buckets) {
          yield [{ ...labels, le: String(bound) }, count, "_bucket"];
        }
        yield [{ ...labels, le: "+Inf" }, all, "_bucket"];
        yield [labels, sum, "_sum"];
        yield [labels, all, "_count"];
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
  for (const [labels, value, suffix = ""] of samples()) {
    // This format has the escapes of JSON.
    const pairs = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(text)}`);
    lines.push(`${name}${suffix}${pairs.length > 0 ? `{${pairs}}` : ""} ${value}`);
  }
  return `${lines.join("\n")}\n`;
}
