import { findProgram, run } from "./run.ts";
import type { Service } from "./service.ts";

/** Series that promtool has seen. */
const seen = new Set<string>();

/**
 * The text, if promtool has nothing against it: each set of series is shown to it once, where it is installed.
 *
 * @throws Error with what it says
 */
export async function requireGoodMetrics(text: string): Promise<string> {
  const series = text.replace(/ \S+$/gm, "");
  if (seen.has(series) || findProgram("promtool") === null) return text;
  seen.add(series);
  const problems = await run(["promtool", "check", "metrics"], text);
  if (problems !== "") throw new Error(problems);
  return text;
}

/** Where the metrics of a service are, without the path. */
export function metricsUrl({ startLines }: Service): string {
  const BEGIN = "metrics are on ";
  return startLines.find((line) => line.startsWith(BEGIN))?.slice(BEGIN.length) ?? "";
}

/** The metrics of a service as Prometheus reads them. */
export async function metricsText(service: Service): Promise<string> {
  return await requireGoodMetrics(await (await fetch(`${metricsUrl(service)}/metrics`)).text());
}

/** All series of a text with their values, each as it is written: `name{label="value"}`. */
export function seriesIn(text: string): Record<string, number> {
  const lines = text.split("\n").filter((line) => /^[a-z]/.test(line));
  return Object.fromEntries(
    lines.map((line) => line.split(/ (?=\S+$)/)).map(([name, digits]) => [name, Number(digits)]),
  );
}

/** The value of a metric now: the sum of its series with these labels. */
export async function value(
  service: Service,
  name: string,
  labels: Readonly<Record<string, string | number>> = {},
): Promise<number> {
  const wanted = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
  return Object.entries(seriesIn(await metricsText(service)))
    .filter(
      ([key]) =>
        key.split("{")[0] === name &&
        wanted.every((pair) => key.includes(`{${pair}`) || key.includes(`,${pair}`)),
    )
    .reduce((sum, [, each]) => sum + each, 0);
}

/** How often a condition is asked for: each question can cost a service its metrics. */
const POLL_MS = 100;

/** Waits until a condition is true. */
export async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(POLL_MS);
}
