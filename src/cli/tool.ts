import { FROM } from "../api/endpoint.ts";
import type { ApiError } from "../api/errors.ts";
import type { Parameters } from "../api/parameters.ts";
import type { MtrResult } from "../tools/mtr/result.ts";
import type { Fact } from "../tools/report.ts";
import { endLines, type Line, reportLines, tableLines, tablesLines } from "../tools/report-text.ts";
import { reporterOf, type ToolName, waitText } from "../tools/reports.ts";
import type { Question } from "../tools/services.ts";
import { type Outcome, type Summary, summaryTable } from "../tools/summary.ts";
import type { Tool } from "../tools/table.ts";
import { inTheirWords } from "../util/text.ts";
import type { ApiAnswer, CallEndpoint } from "./call-here.ts";
import { runMtrScreen } from "./mtr-screen.ts";
import { createScreen, type Screen } from "./screen.ts";

/** The error if `--format` meets the answer of several locations. */
export const ONE_LOCATION = "--format can show only one location; name one with --from";

/** A message of the API in the words of the command line, which has options for parameters. */
export function inCommandWords(message: string, parameters: Parameters): string {
  const nameOf = (name: string) => {
    const { [name]: parameter } = parameters;
    const flags = parameter?.option?.flags.match(/--[a-z-]+/)?.[0];
    return flags ?? (parameter?.in === "path" ? null : parameter?.label);
  };
  return inTheirWords(message, nameOf).replaceAll("type=PTR", "-x");
}

/** How an answer is printed. */
export interface Output {
  /** True for the API's document instead of lines. */
  readonly json: boolean;
  /** True, with `json`, for one event on each line (NDJSON). */
  readonly stream: boolean;
  /** Formats the result as mtr does, instead of lines. */
  readonly format?: ((result: MtrResult) => string) | undefined;
  /** True for the whole terminal, until the user ends the run. */
  readonly isFullScreen: boolean;
}

/** The answer of a location, or its error. */
export type Answer = Outcome<Pick<ApiError["body"]["error"], "message" | "details">>;

/** The answers of several locations, and their comparison. */
interface Several {
  readonly locations: Answer[];
  readonly details: Summary;
}

/** Exit statuses of a tool. */
const STATUS = { answered: 0, unanswered: 1, wrongUsage: 2 } as const;

/** The message after SIGINT, in place of a document. */
const INTERRUPTED = "interrupted, so there is no result";

const statusOf = (isAnswered: boolean) => (isAnswered ? STATUS.answered : STATUS.unanswered);

/**
 * Asks a question, prints the answer as it comes, and returns the exit status. SIGINT ends the run, which then prints
 * the part that it has, but no document. A reader that goes away ends the run too.
 *
 * @throws Error if the service cannot be asked
 */
export async function runTool(
  { name }: Tool,
  callEndpoint: CallEndpoint,
  question: Question,
  { json, stream, format, isFullScreen }: Output,
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  const interrupt = new AbortController();
  const end = () => interrupt.abort(INTERRUPTED);
  const isDocument = json || format !== undefined;
  const screen = createScreen(environment, isDocument, () => interrupt.abort());
  const view = toolView(name, question, screen, isFullScreen);
  const complain = (document: object, { code, message }: NonNullable<ApiAnswer["error"]>) => {
    if (!json) {
      view.print(reportOf(name, document));
      screen.complain(inCommandWords(message, question.endpoint.parameters));
    }
    // A text that is not an address answers the question of what it is.
    const isWrong = code.startsWith("INVALID_") && name !== "validate";
    return isWrong ? STATUS.wrongUsage : STATUS.unanswered;
  };
  const events: object[] = [];
  let several: Several | undefined;
  const writeEvent = (event: string, data: object) =>
    screen.writeJson(JSON.stringify({ event, data }));
  const onEvent = (event: string, data: object) => {
    if (json && stream) writeEvent(event, data);
    if (event === "summary") several = { locations: [], ...several, details: data as Summary };
    if (event === "location") several?.locations.push(data as Answer);
    if (several) return;
    const wait = waitText(event, data);
    if (wait !== undefined) {
      // The table goes on below the message.
      screen.show([]);
      return screen.complain(wait);
    }
    // Merged, because the rounds of a day would fill the memory.
    const { merge } = reporterOf(name);
    if (merge) events.splice(0, 1, merge(events[0], data));
    else events.push(data);
    view.show(events);
  };
  try {
    if (isFullScreen) {
      const { document, answer } = await runMtrScreen(callEndpoint, question, screen);
      const isAnswered = document !== undefined && view.end(document);
      return answer?.error ? complain(answer.document, answer.error) : statusOf(isAnswered);
    }
    process.once("SIGINT", end);
    const { document, error } = await callEndpoint(question, interrupt.signal, onEvent);
    if (json && stream) writeEvent(error === null ? "result" : "error", document);
    else if (json) screen.writeJson(JSON.stringify(document));
    if (error !== null) return complain(document, error);
    if (format && "locations" in document) {
      screen.complain(ONE_LOCATION);
      return STATUS.wrongUsage;
    }
    if (format) screen.writeJson(format(document as unknown as MtrResult));
    return statusOf(view.end(document));
  } catch (error) {
    if (!interrupt.signal.aborted) throw error;
    if (isDocument && interrupt.signal.reason === INTERRUPTED) {
      screen.complain(INTERRUPTED);
      return STATUS.unanswered;
    }
    const partial = several ?? view.draft(events);
    const isAnswered = partial !== undefined && view.end(partial);
    screen.print([["yellow", "interrupted"]]);
    return statusOf(isAnswered);
  } finally {
    await screen.flush();
  }
}

/** The report of a result, or of an error that says more than its message. */
export function reportOf(name: ToolName, { result, error }: Omit<Answer, "location">) {
  const { report, explain } = reporterOf(name);
  const document = result ?? (error && explain?.(error.details));
  return document && report(document);
}

/** Prints the report of a tool: its table, which a terminal changes while the tool runs, then its end. */
function toolView(
  name: ToolName,
  { endpoint, parameters }: Question,
  screen: Screen,
  isAtOnce: boolean,
) {
  const { report, draft } = reporterOf(name);
  // The replies of resolvers are tables of their own, which do not grow.
  const grows = draft !== undefined && name !== "dns" && !isAtOnce;
  const [subject = ""] = Object.keys(endpoint.parameters).map((key) => parameters[key] ?? "");
  // A ping can have many rows, none of which changes.
  const isListed = name === "ping";
  const isInPlace = !isListed && screen.isTerminal;
  let isBegun = false;
  let listed = 0;
  const title = (facts: readonly Fact[] = []): Line => {
    const texts = facts.map((fact) => `${fact.name.toLowerCase()} ${fact.value}`);
    return [["dim", [`${name} ${subject}`, ...texts].join(", ")]];
  };
  const begin = () => {
    if (grows && !isBegun) isInPlace ? screen.show([title()]) : screen.print(title());
    isBegun = true;
  };
  const print = (shown: ReturnType<typeof reportOf>) => {
    if (shown) screen.print(...reportLines(shown, screen.columns));
  };
  /** Prints the comparison of several locations, and their reports below each other. */
  const endSeveral = ({ locations, details }: Several) => {
    screen.print(...tablesLines([summaryTable(details)], screen.columns));
    const areAnswered = locations.map((outcome) => {
      const { location, result, error } = outcome;
      const shown = reportOf(name, outcome);
      screen.print([["bold", location]]);
      print(shown);
      if (error !== undefined)
        screen.print([["red", inCommandWords(error.message, endpoint.parameters)]]);
      screen.print([]);
      return result !== undefined && shown?.isAnswered === true;
    });
    return areAnswered.length > 0 && areAnswered.every(Boolean);
  };
  // With `from`, only the answer shows whether there are several locations.
  if (!(FROM in parameters)) begin();
  return {
    print,
    /** The document of events; undefined if the tool has none before its result. */
    draft: (events: readonly object[]) => draft?.(subject, events),
    show(events: readonly object[]): void {
      begin();
      const shown = grows ? report(draft(subject, isListed ? events.slice(-1) : events)) : null;
      const [table] = shown?.tables ?? [];
      if (!table) return;
      const lines = tableLines(table, screen.columns);
      if (isListed) screen.print(...lines.slice(listed++ === 0 ? 0 : 1));
      else screen.show([title(shown?.facts), ...lines]);
    },
    /** Returns true if the question is answered. */
    end(document: object): boolean {
      if ("locations" in document) return endSeveral(document as Several);
      begin();
      const shown = report(document);
      const { columns } = screen;
      if (grows) {
        const [first, ...others] = shown.tables;
        const lines = first?.rows.length && !isListed ? tableLines(first, columns) : [];
        if (lines.length > 0) screen.finish(isInPlace ? [title(), ...lines] : lines);
        screen.print([], ...tablesLines(others, columns), ...endLines(shown, columns));
      } else print(shown);
      return shown.isAnswered;
    },
  };
}
