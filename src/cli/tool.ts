import { FROM, type Question } from "../api/endpoint.ts";
import type { ApiError } from "../api/errors.ts";
import type { Fact } from "../tools/report.ts";
import { endLines, type Line, reportLines, tableLines, tablesLines } from "../tools/report-text.ts";
import { reporterOf } from "../tools/reports.ts";
import { type Summary, summaryTable } from "../tools/summary.ts";
import type { Tool } from "../tools/table.ts";
import type { ApiAnswer, CallEndpoint } from "./call-here.ts";
import type { Format } from "./formats.ts";
import { interruptedDocument } from "./interrupted.ts";
import { runMtrScreen } from "./mtr-screen.ts";
import { Screen } from "./screen.ts";

/** The error if `--format` meets the answer of several locations. */
export const ONE_LOCATION = "--format can show only one location; name one with --from";

/** How an answer is printed. */
export interface Output {
  /** The API's document instead of lines. */
  readonly json: boolean;
  /** With `json`, one event a line (NDJSON). */
  readonly stream: boolean;
  /** The format of another program instead of lines. */
  readonly format?: Format | undefined;
  /** The whole terminal, until the user ends it; true for work in this process, which can end with its result. */
  readonly fullScreen?: { readonly isHere: boolean } | undefined;
}

/** The answer of a location, or its error. */
interface Outcome {
  readonly location: string;
  readonly result?: object;
  readonly error?: Pick<ApiError["body"]["error"], "message" | "details">;
}

/** Exit statuses of a tool. */
const STATUS = { answered: 0, unanswered: 1, wrongUsage: 2 } as const;

/**
 * Asks a question, prints the answer as it comes, and returns the exit status. SIGINT ends the work and
 * shows what there is; a reader that goes away ends it too.
 *
 * @throws Error if the service cannot be asked
 */
export async function runTool(
  tool: Tool,
  callEndpoint: CallEndpoint,
  question: Question,
  { json, stream, format, fullScreen }: Output,
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  const interrupt = new AbortController();
  const end = () => interrupt.abort();
  const screen = new Screen(environment, json || format !== undefined, end);
  // Only the answer shows if `from` means one location or several.
  let view = FROM in question.parameters ? null : toolView(tool, question, screen);
  const viewOf = (isOfSeveral: boolean) => {
    view ??= isOfSeveral ? severalView(tool, screen) : toolView(tool, question, screen);
    return view;
  };
  const complain = ({ json: document, error }: ApiAnswer) => {
    if (error === null) return STATUS.unanswered;
    const shown = json ? undefined : reportOf(tool, JSON.parse(document));
    if (shown) screen.print(...reportLines(shown, screen.columns));
    if (!json) screen.complain(error.message);
    // A text that is not an address answers the question of what it is.
    const isWrong = error.code.startsWith("INVALID_") && tool.name !== "validate";
    return isWrong ? STATUS.wrongUsage : STATUS.unanswered;
  };
  if (fullScreen) {
    const { document, answer } = await runMtrScreen(
      callEndpoint,
      question,
      screen,
      fullScreen.isHere,
    );
    const shown = document && reporterOf(tool.name).report(document as never);
    if (shown) screen.print(...reportLines(shown, screen.columns));
    const status = answer ? complain(answer) : statusOf(shown?.isAnswered === true);
    await screen.flush();
    return status;
  }
  process.once("SIGINT", end);
  const startMs = Date.now();
  const events: object[] = [];
  const writeEvent = (name: string, data: string) =>
    screen.writeJson(`{"event":${JSON.stringify(name)},"data":${data}}`);
  const onEvent = (name: string, data: object) => {
    if (json && stream) writeEvent(name, JSON.stringify(data));
    if (viewOf(name === "summary").isOfSeveral) return;
    // Rounds of a day would fill the memory.
    const { merge } = reporterOf(tool.name);
    if (merge && format === undefined) events.splice(0, 1, merge(events[0], data));
    else events.push(data);
    viewOf(false).show(events);
  };
  try {
    const answer = await callEndpoint(question, interrupt.signal, onEvent);
    const { json: document, error } = answer;
    if (json && stream) writeEvent(error === null ? "result" : "error", document);
    else if (json) screen.writeJson(document);
    if (error === null) {
      const result = JSON.parse(document);
      const isOfSeveral = "locations" in result;
      if (format && isOfSeveral) {
        screen.complain(ONE_LOCATION);
        return STATUS.wrongUsage;
      }
      if (format) screen.writeJson(format(result, { events, startMs, endMs: Date.now() }));
      return statusOf(viewOf(isOfSeveral).end(result, events));
    }
    return complain(answer);
  } catch (error) {
    if (!interrupt.signal.aborted) throw error;
    return statusOf(viewOf(false).end(null, events));
  } finally {
    await screen.flush();
  }
}

const statusOf = (isAnswered: boolean) => (isAnswered ? STATUS.answered : STATUS.unanswered);

/** How a tool shows its events and its result, which is null if it was interrupted. */
interface View {
  /** True if it needs no events. */
  readonly isOfSeveral?: boolean;
  show(events: readonly object[]): void;
  /** Returns whether the question is answered. */
  end(result: object | null, events: readonly object[]): boolean;
}

/** The report of a result, or of an error that says more than its message. */
function reportOf({ name }: Tool, { result, error }: Omit<Outcome, "location">) {
  const { report, explain } = reporterOf(name);
  const document = result ?? (error && explain?.(error.details));
  return document && report(document);
}

/** The report of a tool: its table, which a terminal changes while the tool runs, then its end. */
function toolView(tool: Tool, { endpoint, parameters }: Question, screen: Screen): View {
  const { report, ...reporter } = reporterOf(tool.name);
  // The replies of resolvers are tables of their own, which do not grow.
  const draft = tool.name === "dns" ? undefined : reporter.draft;
  const [subject = ""] = Object.keys(endpoint.parameters).map((name) => parameters[name] ?? "");
  const isListed = tool.name === "ping";
  let listed = 0;
  const title = (facts: readonly Fact[] = []): Line => {
    const known = facts.map(({ name, value }) => `${name.toLowerCase()} ${value}`);
    return [["dim", [`${tool.name} ${subject}`, ...known].join(", ")]];
  };
  const isInPlace = !isListed && screen.isTerminal;
  if (draft !== undefined) isInPlace ? screen.show([title()]) : screen.print(title());
  return {
    show(events) {
      if (draft === undefined) return;
      // A ping can have many rows, and none changes.
      const { tables, facts } = report(draft(subject, isListed ? events.slice(-1) : events));
      const [table] = tables;
      if (table === undefined) return;
      const lines = tableLines(table, screen.columns);
      if (isListed) screen.print(...lines.slice(listed++ === 0 ? 0 : 1));
      else screen.show([title(facts), ...lines]);
    },
    end(result, events) {
      const document = result ?? interruptedDocument(tool.name, subject, events);
      if (document === undefined) return false;
      const shown = report(document);
      const interrupted: Line[] = result === null ? [[["yellow", "interrupted"]]] : [];
      const [first, ...others] = shown.tables;
      if (draft === undefined) screen.print(...reportLines(shown, screen.columns));
      else {
        const lines = first?.rows.length && !isListed ? tableLines(first, screen.columns) : [];
        if (lines.length > 0) screen.finish(isInPlace ? [title(), ...lines] : lines);
        const { columns } = screen;
        const below = [...tablesLines(others, columns), ...endLines(shown, columns)];
        screen.print([], ...below, ...interrupted);
      }
      return shown.isAnswered;
    },
  };
}

/** The comparison of several locations, and their reports below each other. */
function severalView(tool: Tool, screen: Screen): View {
  return {
    isOfSeveral: true,
    show() {},
    end(result) {
      if (result === null) return false;
      const { locations, details } = result as {
        readonly locations: readonly Outcome[];
        readonly details: Summary;
      };
      screen.print(...tablesLines([summaryTable(details)], screen.columns));
      const areAnswered = locations.map((outcome) => {
        const { location, result, error } = outcome;
        const shown = reportOf(tool, outcome);
        screen.print([["bold", location]]);
        if (shown !== undefined) screen.print(...reportLines(shown, screen.columns));
        if (error !== undefined) screen.print([["red", error.message]]);
        screen.print([]);
        return result !== undefined && shown?.isAnswered === true;
      });
      return areAnswered.length > 0 && areAnswered.every(Boolean);
    },
  };
}
