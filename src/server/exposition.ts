/** Metrics as text in the OpenMetrics format. */
import { type Counter, type Gauge, Registry } from "prom-client";

/** The value of a metric, or its values with their labels. */
export type Reading =
  | number
  | readonly (readonly [labels: Record<string, string>, value: number])[];

/** Metrics that are written together. */
export type OpenMetrics = Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>;

/** No metrics yet. */
export function openMetrics(): OpenMetrics {
  const registry: OpenMetrics = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return registry;
}

/** Adds a metric that is read whenever the others are written. */
export function addMetric(
  registry: OpenMetrics,
  Kind: typeof Gauge | typeof Counter,
  name: string,
  help: string,
  read: () => Reading,
): void {
  const readings = () => {
    const reading = read();
    return typeof reading === "number" ? [[{}, reading] as const] : reading;
  };
  new Kind({
    name,
    help,
    labelNames: [...new Set(readings().flatMap(([labels]) => Object.keys(labels)))],
    registers: [registry],
    collect() {
      this.reset();
      for (const [labels, value] of readings()) this.inc(labels, value);
    },
  });
}

/** Responds with the metrics as Prometheus reads them. */
export async function respondMetrics(registry: OpenMetrics): Promise<Response> {
  const text = await registry.metrics();
  // The bounds of buckets are floats in OpenMetrics; prom-client writes some as whole numbers.
  return new Response(text.replace(/\ble="(\d+)"/g, 'le="$1.0"'), {
    headers: { "Content-Type": registry.contentType },
  });
}
