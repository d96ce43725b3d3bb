/** Metrics, and how Prometheus reads them: the text format of OpenMetrics 1.0. */

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

/** A metric with values that are read from somewhere. */
export function metric(
  type: "gauge" | "counter",
  name: string,
  help: string,
  read: () => Reading,
): Metric {
  const suffix = type === "counter" ? "_total" : "";
  return {
    type,
    name,
    help,
    samples() {
      const reading = read();
      const values = typeof reading === "number" ? [[{}, reading] as const] : reading;
      return values.map(([labels, value]) => [suffix, labels, value] as const);
    },
  };
}

/** How often something took how many seconds, by labels. */
export class Histogram implements Metric {
  readonly type = "histogram";
  readonly name: string;
  readonly help: string;
  readonly #labelNames: readonly string[];
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, { labels: Labels; counts: number[]; sum: number }>();

  /** @param bounds the upper bounds of the buckets, ascending */
  constructor(
    name: string,
    help: string,
    labelNames: readonly string[],
    bounds: readonly number[],
  ) {
    this.name = name;
    this.help = help;
    this.#labelNames = labelNames;
    this.#bounds = bounds;
  }

  /** @param values of the labels, in their order, from a bounded number */
  observe(seconds: number, ...values: readonly string[]): void {
    const key = values.join("\n");
    let series = this.#series.get(key);
    if (series === undefined) {
      const labels = Object.fromEntries(
        this.#labelNames.map((name, index) => [name, values[index] ?? ""]),
      );
      series = { labels, counts: Array(this.#bounds.length + 1).fill(0), sum: 0 };
      this.#series.set(key, series);
    }
    let bucket = 0;
    while (seconds > (this.#bounds[bucket] ?? Number.POSITIVE_INFINITY)) bucket++;
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
    series.sum += seconds;
  }

  *samples(): Iterable<Sample> {
    for (const { labels, counts, sum } of this.#series.values()) {
      let count = 0;
      for (const [bucket, more] of counts.entries()) {
        count += more;
        yield ["_bucket", { ...labels, le: boundText(this.#bounds[bucket]) }, count];
      }
      yield ["_sum", labels, sum];
      yield ["_count", labels, count];
    }
  }
}

/** Responds with metrics as Prometheus reads them. */
export function respondMetrics(metrics: readonly Metric[]): Response {
  return new Response(`${metrics.map(textOf).join("")}# EOF\n`, {
    headers: { "Content-Type": "application/openmetrics-text; version=1.0.0; charset=utf-8" },
  });
}

function textOf(metric: Metric): string {
  const { type, name, help } = metric;
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
  for (const [suffix, labels, value] of metric.samples()) {
    // JSON escapes what OpenMetrics does.
    const pairs = Object.entries(labels).map(([label, text]) => `${label}=${JSON.stringify(text)}`);
    lines.push(`${name}${suffix}${pairs.length > 0 ? `{${pairs}}` : ""} ${value}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Bounds are floats: `1.0`. */
function boundText(bound: number | undefined): string {
  if (bound === undefined) return "+Inf";
  return Number.isInteger(bound) ? bound.toFixed(1) : String(bound);
}
