import { useSyncExternalStore } from "hono/jsx/dom";
import type { View } from "../../tools/view.ts";
import { pause, systemClock } from "../../util/clock.ts";
import { call, type Limit } from "./api.ts";
import { type Bookmark, hashOf, parseBookmark, pathOf } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import type { Run } from "./run.ts";

interface State {
  readonly bookmark: Bookmark;
  /** By the hash of their bookmark, so that the back button shows a result again. */
  readonly runs: ReadonlyMap<string, Run>;
  readonly limit: Limit | null;
}

const NAMES = CALLER.tools.map(({ name }) => name);

const bookmarkHere = () => parseBookmark(location.hash, NAMES);

let state: State = { bookmark: bookmarkHere(), runs: new Map(), limit: null };
let active: AbortController | null = null;
const listeners = new Set<() => void>();

function change(part: Partial<State> = {}): void {
  state = { ...state, ...part };
  for (const listener of listeners) listener();
}

/** The state of the page; the component is drawn again when it changes. */
export function useAppState(): State {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => state,
  );
}

/** The run of a bookmark, if there was one. */
export function runOf(bookmark: Bookmark): Run | null {
  return state.runs.get(hashOf(bookmark)) ?? null;
}

/** Stops what runs. */
export function stop(): void {
  active?.abort();
  active = null;
}

/** Notices that a key was stored or forgotten. */
export function keyChanged(): void {
  change();
}

/** Notices what the service says about the limit. */
export function noteLimit(limit: Limit): void {
  change({ limit });
}

/** How a bookmark is run. */
export interface Manner {
  /** For a run that goes on until it is stopped. */
  readonly repeat?: View["repeat"];
  /** True if it replaces the last bookmark in the history, as it does while the user types. */
  readonly replaces?: boolean;
}

/** Goes to a bookmark, and runs its tool. */
export async function run(bookmark: Bookmark, { repeat, replaces }: Manner = {}): Promise<void> {
  stop();
  const controller = new AbortController();
  active = controller;
  const { signal } = controller;
  const hash = hashOf(bookmark);
  if (location.hash !== hash) history[replaces ? "replaceState" : "pushState"](null, "", hash);
  const tool = toolOf(bookmark.tool);
  const options = { ...bookmark.options, ...repeat?.values };
  const path = pathOf(tool, { ...bookmark, options });
  const repeats = repeat !== undefined;
  let own: Run = {
    ...{ path, repeats, state: "running", parts: [], result: null, problem: null },
    ...{ startedMs: Date.now(), endedMs: 0 },
  };
  change({ bookmark, runs: new Map([...state.runs, [hash, own]]) });
  const note = (part: Partial<Run>) => {
    // The same may have been started anew.
    if (state.runs.get(hash) !== own) return;
    own = { ...own, ...part };
    change({ runs: new Map([...state.runs, [hash, own]]) });
  };
  let round = 0;
  const onPart = (data: object) => {
    if (signal.aborted) return;
    // A run that repeats asks for one part at a time.
    note({ parts: [...own.parts, repeats ? { ...data, seq: round } : data] });
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
  const isBroken = own.problem?.code === null;
  const ended = signal.aborted ? "stopped" : isBroken ? "broken" : "done";
  note({ state: ended, endedMs: Date.now() });
}

// Another tab has stored or forgotten the key.
addEventListener("storage", keyChanged);

addEventListener("popstate", () => {
  const bookmark = bookmarkHere();
  if (hashOf(bookmark) === hashOf(state.bookmark)) return;
  stop();
  change({ bookmark });
});
