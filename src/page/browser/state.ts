import { useSyncExternalStore } from "hono/jsx/dom";
import { CallError, call, type Limit } from "./api.ts";
import { forgetKey, storedKey } from "./key.ts";
import { hashOf, type Place, parsePlace } from "./place.ts";
import type { Caller } from "./types.ts";

/** A run of a tool, under way or ended. */
export interface Run {
  /** The call of the API, below its base path. */
  readonly path: string;
  readonly isRunning: boolean;
  /** The events until now. */
  readonly parts: readonly object[];
  readonly result: object | null;
  readonly problem: CallError["problem"] | null;
  /** Milliseconds, as `Date.now()` has it: when it ended. */
  readonly endedMs: number;
}

interface State {
  readonly place: Place;
  /** By the hash of their place, so that the back button shows a result again. */
  readonly runs: ReadonlyMap<string, Run>;
  readonly limit: Limit | null;
  readonly hasKey: boolean;
}

/** What the service says about the caller in the page itself. */
export const CALLER: Caller = JSON.parse(
  document.querySelector<HTMLMetaElement>("meta[name=caller]")?.content ?? "{}",
);

let state: State = {
  place: parsePlace(location.hash),
  runs: new Map(),
  limit: null,
  hasKey: storedKey() !== null,
};
let active: AbortController | null = null;
const listeners = new Set<() => void>();

function change(part: Partial<State>): void {
  state = { ...state, ...part };
  for (const listener of listeners) listener();
}

function setRun(hash: string, part: Partial<Run>): void {
  const before = state.runs.get(hash);
  const runs = new Map(state.runs);
  runs.set(hash, { ...(before ?? EMPTY), ...part });
  change({ runs });
}

const EMPTY: Run = {
  path: "",
  isRunning: false,
  parts: [],
  result: null,
  problem: null,
  endedMs: 0,
};

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

/** The run at a place, if there was one. */
export function runAt(place: Place): Run | null {
  return state.runs.get(hashOf(place)) ?? null;
}

/** Stops what runs. */
export function stop(): void {
  active?.abort();
  active = null;
}

/** Notices that a key was stored or forgotten. */
export function keyChanged(): void {
  change({ hasKey: storedKey() !== null });
}

/** Notices what the service says about the limit. */
export function noteLimit(limit: Limit): void {
  change({ limit });
}

/** How a place calls the API. */
export interface Work {
  readonly path: string;
  /** Whether it has events. */
  readonly hasParts: boolean;
  /** Milliseconds from one call to the next, for a run that goes on until it is stopped. */
  readonly repeatMs?: number;
  /** Whether its place replaces the last one in the history, as while one types. */
  readonly replace?: boolean;
}

/** Goes to a place, and runs its work there. */
export async function run(
  place: Place,
  { path, hasParts, repeatMs, replace }: Work,
): Promise<void> {
  stop();
  const controller = new AbortController();
  active = controller;
  const { signal } = controller;
  const hash = hashOf(place);
  if (location.hash !== hash) history[replace ? "replaceState" : "pushState"](null, "", hash);
  change({ place });
  setRun(hash, { ...EMPTY, path, isRunning: true });
  const parts: object[] = [];
  let round = 0;
  const onPart = (data: object) => {
    if (signal.aborted) return;
    // A run that goes on asks for one part at a time.
    parts.push(repeatMs === undefined ? data : { ...data, seq: round });
    setRun(hash, { parts: [...parts] });
  };
  try {
    do {
      const startMs = Date.now();
      round++;
      const result = await call(path, signal, noteLimit, hasParts ? onPart : undefined);
      setRun(hash, { result });
      if (repeatMs !== undefined) await pause(startMs + repeatMs - Date.now(), signal);
    } while (repeatMs !== undefined && !signal.aborted);
  } catch (error) {
    if (!signal.aborted) {
      const problem = problemOf(error);
      if (problem.code === "UNAUTHORIZED") {
        forgetKey();
        keyChanged();
      }
      setRun(hash, { problem });
    }
  }
  setRun(hash, { isRunning: false, endedMs: Date.now() });
}

function problemOf(error: unknown): CallError["problem"] {
  return error instanceof CallError ? error.problem : { code: null, message: String(error) };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, Math.max(0, ms));
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

addEventListener("popstate", () => {
  const place = parsePlace(location.hash);
  if (hashOf(place) === hashOf(state.place)) return;
  stop();
  change({ place });
});
