/** `sixscope check --file`: many names, several at a time. */
import type { ErrorCode } from "../api/errors.ts";
import { integerParameter } from "../api/parameters.ts";
import { STYLES } from "../tools/report-text.ts";
import { reporterOf } from "../tools/reports.ts";
import type { Question } from "../tools/services.ts";
import { type Clock, pause, systemClock } from "../util/clock.ts";
import { reasonOf } from "../util/errors.ts";
import { shareText } from "../util/text.ts";
import type { ApiAnswer, CallEndpoint } from "./call-here.ts";
import { createScreen } from "./screen.ts";
import type { Answer } from "./tool.ts";

/** How many checks run at once. */
export const JOBS = integerParameter({
  ...{ minimum: 1, maximum: 64, default: 8, example: 8 },
  description: "Checks at once, with --file.",
  option: { flags: "--jobs" },
});

/** The codes of refusals that do not last. */
const PASSING: readonly string[] = ["RATE_LIMITED", "TOO_MANY_PROBES"] satisfies ErrorCode[];

/** Tries of a name while a service refuses it; a window of its limit has a minute. */
const MAX_TRIES = 60;

/** The names in a text: one on each line, each once, without comments behind a `#`. */
export function readNames(text: string): readonly string[] {
  const lines = text.split("\n").map((line) => (line.split("#")[0] as string).trim());
  return [...new Set(lines.filter((line) => line !== ""))];
}

/**
 * Checks names, prints a line for each as soon as it is known, and returns the exit status: 1 if one does not
 * work. It waits while a service is over its limits. SIGINT ends it, and standard error says how many names were
 * checked, because the output is not complete.
 *
 * @param json true for one document on each line instead; the document of an error has the name too
 */
export async function checkNames(
  names: readonly string[],
  callEndpoint: CallEndpoint,
  { endpoint, parameters }: Question,
  jobs: number,
  json: boolean,
  environment: NodeJS.ProcessEnv,
  clock: Clock = systemClock,
): Promise<number> {
  const interrupt = new AbortController();
  const { signal } = interrupt;
  const end = () => interrupt.abort();
  const screen = createScreen(environment, json, end);
  let areAllWorking = true;
  let done = 0;
  /** When a service takes requests again, by the clock. */
  let freeMs = 0;
  const ask = async (name: string): Promise<ApiAnswer> => {
    for (let tries = 1; ; tries++) {
      await pause(clock, freeMs - clock.nowMs(), signal);
      signal.throwIfAborted();
      const question = { endpoint, parameters: { ...parameters, name } };
      const answer = await callEndpoint(question, signal, () => {});
      if (!PASSING.includes(answer.error?.code ?? "") || tries === MAX_TRIES) return answer;
      freeMs = Math.max(freeMs, clock.nowMs() + 1000 * retryAfterSeconds(answer));
    }
  };
  const show = (name: string, { location, result, error }: Answer & { code?: string }) => {
    const report = result && reporterOf("check").report(result);
    const { tone = "bad", text = error?.message ?? "" } = report?.verdict ?? {};
    areAllWorking &&= report?.isAnswered === true;
    const place = location ? ` from ${location}` : "";
    screen.print([["bold", `${name}${place}`], "  ", [STYLES[tone], text]]);
  };
  const queue = names.values();
  const work = async () => {
    for (const name of queue) {
      try {
        const { document, error } = await ask(name);
        if (json) screen.writeJson(JSON.stringify(error ? { name, ...document } : document));
        const { locations = [error ? document : { result: document }] } = document;
        for (const outcome of locations as Answer[]) show(name, outcome);
      } catch (error) {
        areAllWorking = false;
        if (signal.aborted) return;
        screen.complain(`${name}: ${reasonOf(error)}`);
      }
      done++;
    }
  };
  const interrupted = () => {
    end();
    screen.complain(`interrupted after ${shareText(done, names.length, "name")}`);
  };
  process.once("SIGINT", interrupted);
  await Promise.all(Array.from({ length: jobs }, work));
  process.off("SIGINT", interrupted);
  await screen.flush();
  return areAllWorking ? 0 : 1;
}

function retryAfterSeconds({ document }: ApiAnswer): number {
  const { details } = document["error"] as { details: { retryAfterSeconds?: number } };
  return details.retryAfterSeconds ?? 1;
}
