import type { Question } from "../api/endpoint.ts";
import { ENOUGH } from "../icmp/run-budget.ts";
import type { MtrResult, MtrRound } from "../tools/mtr/endpoint.ts";
import { mergeRound, mtrReport } from "../tools/mtr/report.ts";
import type { Column, Row, Table } from "../tools/report.ts";
import { endLines, type Line, tableLines } from "../tools/report-text.ts";
import { plural } from "../util/text.ts";
import type { ApiAnswer, CallEndpoint } from "./call-here.ts";
import { FullScreen } from "./full-screen.ts";
import { draftOf } from "./interrupted.ts";
import type { Screen } from "./screen.ts";

/** Outcomes kept of each hop: more than a screen has columns. */
const MAX_HISTORY = 500;

/** Columns of a history, and those that a table with it has without its host. */
const MIN_BLOCKS = 10;
const MAX_BLOCKS = 60;
const FIXED = 27;

/** The least width for which a host is in the line of its hop. */
const MIN_WIDTH = 70;

const BLOCKS = [..."▁▂▃▄▅▆▇█"];
const LOST = "×";
const TIMES = ["last", "best", "worst", "stdev"].map(
  (name): Column => ({ name, kind: "ms", isDetail: true }),
);

const KEYS = "q quit p pause r reset d view n names";

/** The state of the screen: the run, and the choices of its user. */
export interface MtrView {
  readonly target: string;
  /** Which of several runs; a service bounds the rounds of each. */
  readonly run: number;
  /** All that is known of the run; undefined before its first event. */
  readonly known: MtrRound | undefined;
  /** By hop: the time of each round in milliseconds, null where it was lost. */
  readonly history: ReadonlyMap<number, readonly (number | null)[]>;
  readonly isPaused: boolean;
  /** All times instead of the history. */
  readonly showsTimes: boolean;
  readonly hidesNames: boolean;
  /** Lines above the first that is shown. */
  readonly scrolled: number;
}

/** Adds the outcomes of a round to the history of each hop, from the rows before and behind it. */
export function addHistory(
  history: Map<number, (number | null)[]>,
  before: MtrRound | undefined,
  { hops }: MtrRound,
): void {
  for (const { hop, sent, received, last } of hops) {
    const known = before?.hops.find((row) => row.hop === hop);
    if (sent <= (known?.sent ?? 0)) continue;
    const outcomes = history.getOrInsertComputed(hop, () => []);
    outcomes.push(received > (known?.received ?? 0) ? last : null);
    if (outcomes.length > MAX_HISTORY) outcomes.shift();
  }
}

/** The lines of the screen, as many as it has rows. */
export function mtrLines(view: MtrView, columns: number, rows: number): Line[] {
  const { target, run, known, isPaused } = view;
  const report = mtrReport.report(draftOf(target, known));
  const rounds = `${plural(known?.round ?? 0, "round")}${run > 1 ? ` of run ${run}` : ""}`;
  const state = `  ${rounds}${isPaused ? ", view paused" : ""}`;
  const left = Math.max(1, columns - "mtr ".length - state.length);
  const name = target.length > left ? `${target.slice(0, left - 1)}…` : target;
  const title: Line = [["bold", `mtr ${name}`], state];
  const { table, legend } = tableOf(view, report.tables[0]?.rows ?? [], columns);
  const body = known ? tableLines(table, columns + 1) : [["waiting for the first answer"]];
  const end = [[], ...endLines({ ...report, title: "", facts: [] }, columns + 1), legend];
  // On a very small screen, the verdict scrolls too.
  const isFixed = rows - 2 - end.length >= Math.min(body.length, 4);
  const [moving, fixed] = isFixed ? [body, end] : [[...body, ...end], []];
  const room = Math.max(1, rows - 2 - fixed.length);
  const top = Math.max(0, Math.min(view.scrolled, moving.length - room));
  const shown = moving.slice(top, top + room);
  const below = moving.length - top - shown.length;
  const more = top + below === 0 ? "" : ` ↑${top} ↓${below}`;
  return [title, ...shown, ...fixed, [["dim", `${KEYS}${more}`]]];
}

/** The table of the screen: loss and its cause beside each other, and the host below its row if it is narrow. */
function tableOf(
  { known, history, showsTimes, hidesNames }: MtrView,
  reported: readonly Row[],
  columns: number,
): { table: Table; legend: Line } {
  const hops = known?.hops ?? [];
  const isNarrow = columns < MIN_WIDTH;
  const hostOf = ({ ip, hostname }: (typeof hops)[number]) => {
    const fits = hostname !== null && hostname.length < columns - 1;
    return { ip, hostname: hidesNames || (isNarrow && !fits) ? null : hostname };
  };
  const widest = Math.max(0, ...hops.map((hop) => hostOf(hop).ip?.length ?? 0));
  const room = columns - FIXED - (isNarrow ? 0 : widest + 2);
  const width = Math.max(MIN_BLOCKS, Math.min(MAX_BLOCKS, room));
  const times = hops.flatMap(({ hop }) => history.get(hop)?.slice(-width) ?? []);
  const maxMs = Math.max(0, ...times.filter((ms) => ms !== null));
  const blocks = (outcomes: readonly (number | null)[] = []) =>
    outcomes.slice(-width).map((ms) => {
      const level = Math.ceil(((ms ?? 0) / maxMs) * BLOCKS.length) - 1;
      return ms === null ? LOST : BLOCKS[Math.max(0, level)];
    });
  const rows = hops.map((hop, at): Row => {
    const { cells, tone } = reported[at] as Row;
    const host = hostOf(hop);
    // The word in the column of the cause says it.
    const notes = (cells.at(-1) as string[]).slice(
      hop.ip !== null && hop.cause && hop.cause !== "path" ? 1 : 0,
    );
    const inNotes = isNarrow ? [host.hostname ?? host.ip ?? "no reply"] : [];
    const last = showsTimes
      ? [hop.last, hop.min, hop.max, hop.stdDev]
      : [blocks(history.get(hop.hop)).join("").padEnd(width)];
    const found = [hop.hop, hop.loss, hop.cause, hop.avg, ...last];
    return {
      cells: [...found, ...(isNarrow ? [] : [host]), [...inNotes, ...notes]],
      ...(tone && { tone }),
    };
  });
  const table: Table = {
    columns: [
      { name: "hop", kind: "position" },
      { name: "loss", kind: "percent", isToned: true },
      { name: "cause", kind: "text", isToned: true },
      { name: "avg", kind: "ms" },
      ...(showsTimes ? TIMES : [{ name: "history", kind: "text" as const }]),
      ...(isNarrow ? [] : [{ name: "address", kind: "host" as const }]),
      { name: "", kind: "notes" },
    ],
    rows,
  };
  const scale = maxMs > 0 ? `█ ${maxMs.toFixed(2)} ms  ` : "";
  return {
    table,
    legend: showsTimes ? [["dim", "times in ms"]] : [["dim", `${scale}${LOST} lost`]],
  };
}

/**
 * Shows runs one after the other on the whole terminal, until the user ends it. Here a run has no end; a
 * service bounds its rounds, so the next run begins behind it, with its own statistics.
 *
 * @param isHere true if the call can end a run early, with its result
 * @returns the last result, or what was known, and the error that ended it, if any
 * @throws Error if the service cannot be asked
 */
export async function runMtrScreen(
  callEndpoint: CallEndpoint,
  question: Question,
  screen: Pick<Screen, "columns" | "rows" | "text">,
  isHere: boolean,
  open: (
    ...handlers: ConstructorParameters<typeof FullScreen>
  ) => Pick<FullScreen, "draw" | "close"> = (...handlers) => new FullScreen(...handlers),
) {
  const { target = "" } = question.parameters;
  let view: MtrView = {
    target,
    run: 1,
    known: undefined,
    history: new Map(),
    isPaused: false,
    showsTimes: false,
    hidesNames: false,
    scrolled: 0,
  };
  let history = new Map<number, (number | null)[]>();
  let known: MtrRound | undefined;
  let isOver = false;
  let document: object | undefined;
  let answer: ApiAnswer | undefined;
  let gone = new AbortController();
  let enough = new AbortController();
  const draw = (change: Partial<MtrView> = {}) => {
    view = { ...view, ...change };
    const { columns } = screen;
    const lines = mtrLines(view, columns, screen.rows);
    full?.draw(lines.map((line) => screen.text(line, columns)));
  };
  const news = () => (view.isPaused ? {} : { known, history });
  /** Ends the run with its result, or at once if it has none yet, or was asked to before. */
  const quit = () => {
    if (isHere && known?.round && !isOver) enough.abort(ENOUGH);
    else gone.abort();
    isOver = true;
  };
  const reset = () => {
    history = new Map();
    known = undefined;
    document = undefined;
    view = { ...view, run: 0 };
    gone.abort();
  };
  const onKey = (key: string) => {
    const step = key.length < 3 ? 0 : key.endsWith("A") ? -1 : key.endsWith("B") ? 1 : 0;
    if (step) {
      const most = 2 * (view.known?.hops.length ?? 0) + screen.rows;
      draw({ scrolled: Math.max(0, Math.min(most, view.scrolled + step)) });
    } else if (key === "q" || key === "\x03" || key === "\x1c") quit();
    else if (key === "p" || key === " ") {
      view = { ...view, isPaused: !view.isPaused };
      draw(news());
    } else if (key === "r" && !isOver) reset();
    else if (key === "d") draw({ showsTimes: !view.showsTimes });
    else if (key === "n") draw({ hidesNames: !view.hidesNames });
  };
  let full: Pick<FullScreen, "draw" | "close"> | undefined;
  full = open(onKey, () => draw(), quit);
  try {
    draw();
    while (!isOver) {
      known = undefined as MtrRound | undefined;
      gone = new AbortController();
      enough = new AbortController();
      const { signal } = gone;
      const onEvent = (_: string, data: object) => {
        if (signal.aborted) return;
        const merged = mergeRound(known, data as MtrRound);
        addHistory(history, known, merged);
        known = merged;
        draw(news());
      };
      try {
        answer = await callEndpoint(question, signal, onEvent, enough.signal);
      } catch (error) {
        if (!signal.aborted) throw error;
        answer = undefined;
      }
      if (known?.round) document = draftOf(target, known);
      if (answer?.error) break;
      if (answer) document = JSON.parse(answer.json);
      if ((document as MtrResult | undefined)?.details.cutShort) break;
      view = { ...view, run: view.run + 1 };
    }
  } finally {
    full.close();
  }
  return { document, answer: answer?.error ? answer : undefined };
}
