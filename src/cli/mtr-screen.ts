import { ENOUGH } from "../tools/budget.ts";
import {
  causeNote,
  causeText,
  mergeRound,
  mtrDraft,
  mtrReport,
  outcomesIn,
} from "../tools/mtr/report.ts";
import type { MtrResult, MtrRound } from "../tools/mtr/result.ts";
import type { Column, Row, Table } from "../tools/report.ts";
import { endLines, type Line, tableLines } from "../tools/report-text.ts";
import { waitText } from "../tools/reports.ts";
import type { Question } from "../tools/services.ts";
import { plural } from "../util/text.ts";
import type { ApiAnswer, CallEndpoint } from "./call-here.ts";
import { openFullScreen } from "./full-screen.ts";
import type { Screen } from "./screen.ts";

/** Columns of a history, which has a block for each round. */
const MIN_BLOCKS = 10;
const MAX_BLOCKS = 60;
/** The other columns of its table, without causes and hosts. */
const FIXED = 20;

const BLOCKS = [..."▁▂▃▄▅▆▇█"];
const LOST = "×";
const TIMES = ["last", "best", "worst", "stdev"].map(
  (name): Column => ({ name, kind: "ms", isDetail: name === "worst" || name === "stdev" }),
);

const KEYS = "q quit p pause r reset d view n names";

/** The time of each round in milliseconds by hop; null for a lost probe. */
type History = ReadonlyMap<number, readonly (number | null)[]>;

/** A run before its first event. */
const NOTHING = {
  /** The number of the run; a run has a bound on its rounds, and the next one follows. */
  run: 1,
  /** The rows of all rounds until now. */
  latest: undefined as MtrRound | undefined,
  history: new Map() as History,
};

/** The choices of a user. */
const CHOICES = {
  isPaused: false,
  /** True if the run itself waits in the pause, which a run at a service does not. */
  isHeld: false,
  /** True to show all times instead of the history. */
  showsTimes: false,
  hidesNames: false,
  /** Lines above the first shown line. */
  scrolled: 0,
};

/** The state of the screen: the run, and the choices of its user. */
export type MtrView = Readonly<typeof NOTHING & typeof CHOICES> & { readonly target: string };

/** The history with the outcomes of a round, from the rows before and after it. */
export function withRound(history: History, before: MtrRound | undefined, round: MtrRound) {
  const added = outcomesIn(before, round).map(({ hop, rtt }) => {
    const earlier = (history.get(hop) ?? []).slice(1 - MAX_BLOCKS);
    return [hop, [...earlier, rtt]] as const;
  });
  return new Map([...history, ...added]);
}

/** The lines of the screen, as many as it has rows. */
export function mtrLines(view: MtrView, columns: number, rows: number): Line[] {
  const { target, run, latest, isPaused, isHeld } = view;
  const report = mtrReport.report(mtrDraft(target, latest));
  const rounds = `${plural(latest?.round ?? 0, "round")}${run > 1 ? ` of run ${run}` : ""}`;
  const paused = isHeld ? ", paused" : ", view paused";
  const state = `  ${rounds}${isPaused ? paused : ""}`;
  const left = Math.max(1, columns - "mtr ".length - state.length);
  const name = target.length > left ? `${target.slice(0, left - 1)}…` : target;
  const title: Line = [["bold", `mtr ${name}`], state];
  const { table, legend } = tableOf(view, report.tables[0]?.rows ?? [], columns);
  const body = latest ? tableLines(table, columns + 1) : [["waiting for the first answer"]];
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

/** The table of the screen: loss and its cause beside each other. */
function tableOf(
  { latest, history, showsTimes, hidesNames }: MtrView,
  reported: readonly Row[],
  columns: number,
) {
  const hops = latest?.hops ?? [];
  const widthOf = (texts: readonly (string | null | undefined)[]) =>
    Math.max(0, ...texts.map((text) => text?.length ?? 0));
  const hosts = hops.map(({ ip, hostname }) => (hidesNames ? ip : (hostname ?? ip)));
  const causes = hops.map(causeText);
  const room = columns - FIXED - widthOf(["cause", ...causes]) - widthOf(["no reply", ...hosts]);
  // Names do not give way to rounds that are still to come.
  const longest = Math.max(0, ...hops.map(({ hop }) => history.get(hop)?.length ?? 0));
  const width = Math.max(MIN_BLOCKS, Math.min(longest, MAX_BLOCKS, room));
  const times = hops.flatMap(({ hop }) => history.get(hop)?.slice(-width) ?? []);
  const maxMs = Math.max(0, ...times.filter((ms) => ms !== null));
  const blocks = (outcomes: readonly (number | null)[] = []) =>
    outcomes.slice(-width).map((ms) => {
      const level = Math.ceil(((ms ?? 0) / maxMs) * BLOCKS.length) - 1;
      return ms === null ? LOST : BLOCKS[Math.max(0, level)];
    });
  const rows = hops.map((hop, at): Row => {
    const { ip, loss, avg } = hop;
    const row = reported[at] as Row;
    // The column of the cause says it already.
    const notes = (row.cells.at(-1) as string[]).filter((note) => note !== causeNote(hop));
    const last = showsTimes
      ? [hop.last, hop.min, hop.max, hop.stdDev]
      : [blocks(history.get(hop.hop)).join("").padEnd(width)];
    const host = { ip, hostname: hidesNames ? null : hop.hostname };
    return { ...row, cells: [hop.hop, loss, causes[at] ?? null, avg, ...last, host, notes] };
  });
  const table: Table = {
    columns: [
      { name: "hop", kind: "position" },
      { name: "loss", kind: "percent", isToned: true },
      { name: "cause", kind: "text", isToned: true },
      { name: "avg", kind: "ms" },
      ...(showsTimes ? TIMES : [{ name: "history", kind: "text" as const }]),
      { name: "address", kind: "host" },
      { name: "", kind: "notes" },
    ],
    rows,
  };
  const scale = maxMs > 0 ? `█ ${maxMs.toFixed(2)} ms  ` : "";
  const legend: Line = [["dim", showsTimes ? "times in ms" : `${scale}${LOST} lost`]];
  return { table, legend };
}

/**
 * Shows runs one after the other on the whole terminal, until the user ends them. When a run has all of its rounds, the
 * next one begins, with its own statistics.
 *
 * @returns the last result, or a draft of it, and the error that ended it, if any
 * @throws Error if the service cannot be asked
 */
export async function runMtrScreen(
  callEndpoint: CallEndpoint,
  question: Question,
  screen: Pick<Screen, "columns" | "rows" | "text">,
  open = openFullScreen,
) {
  const { target = "" } = question.parameters;
  let live = NOTHING;
  let view: MtrView = { target, ...live, ...CHOICES };
  let isOver = false;
  let document: object | undefined;
  let answer: ApiAnswer | undefined;
  let gone = new AbortController();
  let enough = new AbortController();
  const draw = (change: Partial<MtrView> = {}) => {
    const next = { ...view, ...change };
    view = next.isPaused ? next : { ...next, ...live };
    const lines = mtrLines(view, screen.columns, screen.rows);
    full.draw(lines.map((line) => screen.text(line, screen.columns)));
  };
  /** Ends the run with its result. Ends it at once if it has none yet, or at the second call. */
  const quit = () => {
    (live.latest?.round && !isOver ? enough : gone).abort(ENOUGH);
    isOver = true;
    release();
  };
  let held: PromiseWithResolvers<void> | null = null;
  /** Lets a waiting run go on; during a pause, it waits again after its next round. */
  const release = () => {
    held?.resolve();
    held = view.isPaused ? Promise.withResolvers() : null;
  };
  const mayGoOn = () => {
    if (held !== null) draw({ isHeld: true });
    return held?.promise;
  };
  const pause = () => {
    draw({ isPaused: !view.isPaused, isHeld: false });
    release();
  };
  const keys: Readonly<Record<string, () => void>> = {
    q: quit,
    "ctrl-c": quit,
    p: pause,
    space: pause,
    r() {
      if (isOver) return;
      document = undefined;
      live = { ...NOTHING, run: 0 };
      gone.abort();
      release();
    },
    d: () => draw({ showsTimes: !view.showsTimes }),
    n: () => draw({ hidesNames: !view.hidesNames }),
    up: () => draw({ scrolled: Math.max(0, view.scrolled - 1) }),
    down() {
      const most = 2 * (view.latest?.hops.length ?? 0) + screen.rows;
      draw({ scrolled: Math.min(most, view.scrolled + 1) });
    },
  };
  const full = open((key) => keys[key]?.(), draw, quit);
  try {
    draw();
    while (!isOver) {
      [gone, enough] = [new AbortController(), new AbortController()];
      const { signal } = gone;
      const onEvent = (event: string, data: object) => {
        if (signal.aborted || waitText(event, data) !== undefined) return;
        const latest = mergeRound(live.latest, data as MtrRound);
        live = { ...live, latest, history: withRound(live.history, live.latest, latest) };
        draw();
      };
      try {
        answer = await callEndpoint(question, signal, onEvent, enough.signal, mayGoOn);
      } catch (error) {
        if (!isOver && !signal.aborted) throw error;
        answer = undefined;
      }
      if (live.latest?.round) document = mtrDraft(target, live.latest);
      if (answer?.error) break;
      if (answer) document = answer.document;
      if ((document as MtrResult | undefined)?.details.cutShort) break;
      live = { ...live, run: live.run + 1, latest: undefined };
    }
  } finally {
    full.close();
  }
  return { document, answer };
}
