import type { Question } from "../http/endpoint.ts";
import type { Ask } from "./ask.ts";
import type { Format } from "./formats.ts";
import { Screen } from "./screen.ts";

/** How an answer is printed. */
export interface Output {
  /** The API's document instead of lines. */
  readonly json?: boolean;
  /** With `json`, one event a line (NDJSON). */
  readonly stream?: boolean;
  /** The format of another program instead of lines. */
  readonly format?: Format;
}

/** What a tool shows of its answer, on a screen. */
export interface View {
  /** Shows a part of the answer as it comes, by the name of its event. */
  event?(data: unknown, name: string): void;
  /**
   * Shows the result, or the summary of what there is if the run was interrupted (null).
   *
   * @returns whether the question is answered
   */
  end(result: unknown): boolean;
}

/** Exit statuses of a tool. */
const STATUS = { answered: 0, unanswered: 1, wrongUsage: 2 } as const;

/**
 * Asks a question, prints the answer as it comes, and returns the exit status. SIGINT ends the work and
 * shows what there is; a reader that goes away ends it too.
 *
 * @param isTextAsked whether a text that cannot be read answers the question, and is not wrong usage
 * @throws Error if the service cannot be asked
 */
export async function runTool(
  ask: Ask,
  question: Question,
  makeView: (screen: Screen) => View,
  { json = false, stream = false, format }: Output,
  environment: NodeJS.ProcessEnv,
  isTextAsked = false,
): Promise<number> {
  const interrupt = new AbortController();
  const end = () => interrupt.abort();
  process.once("SIGINT", end);
  const screen = new Screen(environment, json || format !== undefined, end);
  const view = makeView(screen);
  const startMs = Date.now();
  const events: unknown[] = [];
  const writeEvent = (name: string, data: string) =>
    screen.write(`{"event":${JSON.stringify(name)},"data":${data}}\n`);
  try {
    const { json: document, error } = await ask(question, interrupt.signal, (name, data) => {
      if (json && stream) writeEvent(name, JSON.stringify(data));
      if (format !== undefined) events.push(data);
      view.event?.(data, name);
    });
    if (json && stream) writeEvent(error === null ? "result" : "error", document);
    else if (json) screen.write(`${document}\n`);
    if (error === null) {
      const result = JSON.parse(document);
      if (format) screen.write(`${format(result, { events, startMs, endMs: Date.now() })}\n`);
      return statusOf(view.end(result));
    }
    if (!json) screen.complain(error.message);
    const isWrong = error.code.startsWith("INVALID_") && !isTextAsked;
    return isWrong ? STATUS.wrongUsage : STATUS.unanswered;
  } catch (error) {
    if (!interrupt.signal.aborted) throw error;
    return statusOf(view.end(null));
  } finally {
    await screen.flush();
  }
}

function statusOf(isAnswered: boolean): number {
  return isAnswered ? STATUS.answered : STATUS.unanswered;
}
