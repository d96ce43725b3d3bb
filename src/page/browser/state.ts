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
  /** The runs by the hash of their bookmark, the last one at the end, so that the back button shows a result again. */
  readonly runs: ReadonlyMap<string, Run>;
  readonly limit: Limit | null;
  /** The last subject, which the other tools get too. */
  readonly subject: string;
  /** Shown in place of a result from a link or a file, while it is read or if it cannot be shown. */
  readonly notice: string | null;
  /** The place in the tab of watches; null for a tool. */
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

const drawNow = () => draw(state);

let isDue = false;

/** Draws with the next frame: events come in bursts, and drawing takes longer than an event. */
function drawSoon(): void {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    drawNow();
  });
}

function change(part: Partial<State>, show = drawNow): void {
  state = { ...state, ...part };
  show();
}

/** The state of the page; a change draws the component again. */
export function useAppState(): State {
  const [shown, show] = useState(state);
  draw = show;
  return shown;
}

/** The run of a bookmark, if there was one. */
export function runOf(bookmark: Bookmark): Run | null {
  return state.runs.get(hashOf(bookmark)) ?? null;
}

/** The options of a tool without a subject: every place that can be asked. */
const EVERYWHERE: Bookmark["options"] =
  CALLER.from.names.length > 1 ? { [CALLER.from.name]: CALLER.from.all } : {};

/** The bookmark behind the link to a tool: its last run for the typed text or the last subject, or else its form with that. */
export function placeOf(tool: ToolName, typed: string): Bookmark {
  const wanted = toolOf(tool).subject
    ? bookmarkFor(tool, typed || state.subject)
    : { tool, subject: "", options: EVERYWHERE };
  const runs = [...state.runs.values()].map(({ bookmark }) => bookmark);
  const isSame = (each: Bookmark) => each.tool === tool && each.subject === wanted.subject;
  return runs.findLast(isSame) ?? wanted;
}

/** Stops the run. */
export const stop = () => active.abort();

/** Draws the page again after a key was stored or forgotten. */
export const keyChanged = () => change({});

/** Keeps the rate limit that the service has sent. */
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
  // All questions while the user types are one entry of the history.
  const go = tool.isAskedAsTyped ? "replaceState" : "pushState";
  if (location.hash !== hash) history[go](null, "", hash);
  const options = { ...bookmark.options, ...repeat?.values };
  const path = pathOf(tool, { ...bookmark, options });
  const repeats = repeat !== undefined;
  let own: Run = { ...NEW_RUN, bookmark, path, repeats, startedMs: Date.now() };
  keep(own);
  const note = (part: Partial<Run>, show = drawNow) => {
    // The same run may have been started anew.
    if (state.runs.get(hash) !== own) return;
    own = { ...own, ...part };
    change({ runs: new Map(state.runs).set(hash, own) }, show);
  };
  let round = 0;
  const onPart = (data: object, event: string) => {
    if (signal.aborted) return;
    const waits = waitText(event, data);
    if (waits !== undefined) return note({ waits });
    // Each call of a repeated run has one part, which gets the number of the call.
    note({ parts: [...own.parts, repeats ? { ...data, seq: round } : data] }, drawSoon);
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

/** Shows the page for the address in the browser. */
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
  // The pressed element may have gone with the part that had it.
  setTimeout(() => activeElement?.isConnected || document.getElementById("subject")?.focus());
});

// Without this, a browser leaves the page for a file that is dropped on it.
window.addEventListener("dragover", (event) => event.preventDefault());
window.addEventListener("drop", (event) => {
  event.preventDefault();
  const [file] = event.dataTransfer?.files ?? [];
  if (file) void show(readFile(file));
});

goHere();
