import { useState } from "hono/jsx/dom";
import { type ToolName, waitText } from "../../tools/reports.ts";
import { pause, systemClock } from "../../util/clock.ts";
import { call, type Limit } from "./api.ts";
import { type Bookmark, bookmarkFor, hashOf, parseBookmark, pathOf } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { LINK_PREFIX, readFile, readLink } from "./given.ts";
import type { View } from "./pictures/picture.ts";
import { NEW_RUN, type Run } from "./run.ts";
import { type WatchPlace, watchPlaceOf } from "./watch/place.ts";

interface State {
  readonly bookmark: Bookmark;
  /** By the hash of their bookmark, the last one at the end, so that the back button shows a result again. */
  readonly runs: ReadonlyMap<string, Run>;
  readonly limit: Limit | null;
  /** The last subject, which goes along to the other tools. */
  readonly subject: string;
  /** In place of a result that came with a link or a file, while it is read or if it cannot be shown. */
  readonly notice: string | null;
  /** What the tab of watches shows; null for a tool. */
  readonly watchPlace: WatchPlace | null;
}

const NAMES = CALLER.tools.map(({ name }) => name);

const bookmarkHere = () => parseBookmark(location.hash, NAMES);

const bookmark = bookmarkHere();
const { subject } = bookmark;
const watchPlace = watchPlaceOf(location.hash);
let state: State = { bookmark, runs: new Map(), limit: null, subject, notice: null, watchPlace };
let active = new AbortController();
/** Draws the page again; one component uses the state. */
let draw = (_: State) => {};

function change(part: Partial<State>): void {
  state = { ...state, ...part };
  draw(state);
}

let isDue = false;

/** Changes what is drawn with the next frame: events come in bursts, and each drawing would take longer than its event. */
function changeSoon(part: Partial<State>): void {
  state = { ...state, ...part };
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw(state);
  });
}

/** The state of the page; the component is drawn again when it changes. */
export function useAppState(): State {
  const [shown, show] = useState(state);
  draw = show;
  return shown;
}

/** The run of a bookmark, if there was one. */
export function runOf(bookmark: Bookmark): Run | null {
  return state.runs.get(hashOf(bookmark)) ?? null;
}

/** What a tool without a subject is about: every place that can be asked. */
const EVERYWHERE: Bookmark["options"] =
  CALLER.from.names.length > 1 ? { [CALLER.from.name]: CALLER.from.all } : {};

/** Where the link to a tool leads: to its last run about what is typed, or was asked last, or to a form with that. */
export function placeOf(tool: ToolName, typed: string): Bookmark {
  const wanted = toolOf(tool).subject
    ? bookmarkFor(tool, typed || state.subject)
    : { tool, subject: "", options: EVERYWHERE };
  const runs = [...state.runs.values()].map(({ bookmark }) => bookmark);
  const isSame = (each: Bookmark) => each.tool === tool && each.subject === wanted.subject;
  return runs.findLast(isSame) ?? wanted;
}

/** Stops what runs. */
export const stop = () => active.abort();

/** Notices that a key was stored or forgotten. */
export const keyChanged = () => change({});

/** Notices what the service says about the limit. */
export const noteLimit = (limit: Limit) => change({ limit });

/** Shows a run, and keeps it as the last one. */
function keep(run: Run): void {
  const { bookmark } = run;
  const hash = hashOf(bookmark);
  const runs = new Map(state.runs);
  runs.delete(hash);
  const subject = bookmark.subject || state.subject;
  change({ bookmark, subject, notice: null, watchPlace: null, runs: runs.set(hash, run) });
}

/**
 * Goes to a bookmark, and runs its tool.
 *
 * @param repeat for a run that goes on until it is stopped
 */
export async function run(bookmark: Bookmark, repeat?: View["repeat"]): Promise<void> {
  stop();
  active = new AbortController();
  const { signal } = active;
  const hash = hashOf(bookmark);
  const tool = toolOf(bookmark.tool);
  // What is asked while the user types is one entry of the history.
  const go = tool.isAskedAsTyped ? "replaceState" : "pushState";
  if (location.hash !== hash) history[go](null, "", hash);
  const options = { ...bookmark.options, ...repeat?.values };
  const path = pathOf(tool, { ...bookmark, options });
  const repeats = repeat !== undefined;
  let own: Run = { ...NEW_RUN, bookmark, path, repeats, startedMs: Date.now() };
  keep(own);
  const note = (part: Partial<Run>, show = change) => {
    // The same may have been started anew.
    if (state.runs.get(hash) !== own) return;
    own = { ...own, ...part };
    show({ runs: new Map(state.runs).set(hash, own) });
  };
  let round = 0;
  const onPart = (data: object, event: string) => {
    if (signal.aborted) return;
    const waits = waitText(event, data);
    if (waits !== undefined) return note({ waits });
    // A run that repeats asks for one part at a time.
    note({ parts: [...own.parts, repeats ? { ...data, seq: round } : data] }, changeSoon);
  };
  try {
    do {
      const startMs = Date.now();
      round++;
      const called = await call(path, signal, noteLimit, tool.hasEvents ? onPart : undefined);
      note(called);
      if (!repeat || own.problem !== null) break;
      await pause(systemClock, startMs + repeat.everyMs - Date.now(), signal);
    } while (!signal.aborted);
  } catch (error) {
    if (!signal.aborted) note({ problem: { code: null, message: String(error) } });
  }
  const isBroken = own.problem !== null && own.problem.code === null;
  note({ state: signal.aborted ? "stopped" : isBroken ? "broken" : "done" });
}

/** Shows a result that was not measured now, once it is read and checked. */
async function show(reading: Promise<Run>): Promise<void> {
  const { hash } = location;
  stop();
  change({ notice: "Reading the result" });
  try {
    const run = await reading;
    if (location.hash !== hash) return;
    // The address of a file's result is that of its question.
    if (run.given === "file") history.pushState(null, "", hashOf(run.bookmark));
    keep(run);
  } catch (error) {
    if (location.hash === hash) change({ notice: error instanceof Error ? error.message : "" });
  }
}

/** Shows what the address in the browser means. */
function goHere(): void {
  const { hash } = location;
  if (hash.startsWith(LINK_PREFIX)) return void show(readLink(hash));
  const watchPlace = watchPlaceOf(hash);
  const bookmark = bookmarkHere();
  const isShown = state.notice === null && state.watchPlace === watchPlace;
  if (hashOf(bookmark) === hashOf(state.bookmark) && isShown) return;
  stop();
  if (watchPlace) return void change({ watchPlace, notice: null });
  change({ bookmark, subject: bookmark.subject || state.subject, notice: null, watchPlace });
}

// Another tab has stored or forgotten the key.
addEventListener("storage", keyChanged);

addEventListener("popstate", () => {
  const { activeElement } = document;
  goHere();
  // What was pressed goes away with what it stood in.
  setTimeout(() => activeElement?.isConnected || document.getElementById("subject")?.focus());
});

// A browser would leave the page for a file that is dropped on it.
window.addEventListener("dragover", (event) => event.preventDefault());
window.addEventListener("drop", (event) => {
  event.preventDefault();
  const [file] = event.dataTransfer?.files ?? [];
  if (file) void show(readFile(file));
});

goHere();
