import { type Clock, systemClock } from "../util/clock.ts";
import { sharersOf } from "../util/shares.ts";

/** Different addresses that may answer at one hop, and in one run. The reason for each bound is in docs/api.md. */
export const MAX_AT_HOP = 128;
export const MAX_ADDRESSES = 1024;
/** Bytes of the events whose number grows with the answers of a network. */
export const MAX_EVENT_BYTES = 6 * 2 ** 20;
/** Milliseconds for which the runs of one client may hold the event loop in a window. */
export const MAX_WORK_MS = 2500;
export const WINDOW_MS = 10_000;
/** Milliseconds of a search for paths: longer than it takes where every router answers ten probes a second. */
export const MAX_SEARCH_MS = 11_500;

/** The reason with which `RunBudget.enough` aborts: a run that aborts for another reason has no result. */
export const ENOUGH = "enough";

/** The bounds that end a run. */
export const CUTS = {
  "addresses-at-hop": `More than ${MAX_AT_HOP} different addresses answered at a hop.`,
  addresses: `More than ${MAX_ADDRESSES} different addresses answered.`,
  events: `The events took more than ${MAX_EVENT_BYTES} bytes.`,
  search: `The search for paths took ${MAX_SEARCH_MS / 1000} s, in which not every router answered often enough.`,
  time: "Its packets waited for those of others, and the time was over.",
  work: `The caller's runs took more than ${MAX_WORK_MS} ms of work in ${WINDOW_MS} ms.`,
} as const;

/**
 * Makes a function that charges a client for work, and returns whether the client has used too much in this window. All
 * windows begin at once. The clients of one service together may use as much as two others.
 */
export function createWorkTime() {
  const spentMs = new Map<string, number>();
  let endMs = -Infinity;
  return (client: string, ms: number, nowMs: number): boolean => {
    if (nowMs >= endMs) {
      spentMs.clear();
      endMs = nowMs + WINDOW_MS;
    }
    for (const name of sharersOf(client)) spentMs.set(name, (spentMs.get(name) ?? 0) + ms);
    const limitMs = (name: string) => (name === client ? 1 : 2) * MAX_WORK_MS;
    return sharersOf(client).some((name) => (spentMs.get(name) ?? 0) > limitMs(name));
  };
}

const workTime = createWorkTime();

/** Makes the budget of one run, which is charged where data is produced. */
export function createBudget(client: string, clock: Clock = systemClock, spend = workTime) {
  const controller = new AbortController();
  const hops = new Map<number, Set<string>>();
  let addresses = 0;
  let eventBytes = 0;
  let cut: keyof typeof CUTS | undefined;
  const end = (bound: keyof typeof CUTS) => {
    cut ??= bound;
    controller.abort(ENOUGH);
    return false;
  };
  return {
    /** Aborts with `ENOUGH` when a bound is met: the run sends nothing more, and ends with what it has. */
    enough: controller.signal,
    end,
    /** The bound that was met first; undefined if there is none. */
    cutShort: () => cut && { code: cut, text: CUTS[cut] },
    /** Counts an address that answered at a hop, once. Returns false if it is one too many and must not be kept. */
    admit(hop: number, ip: string | undefined): boolean {
      const atHop = hops.getOrInsertComputed(hop, () => new Set());
      if (ip === undefined || atHop.has(ip)) return true;
      if (atHop.size === MAX_AT_HOP) return end("addresses-at-hop");
      if (addresses === MAX_ADDRESSES) return end("addresses");
      atHop.add(ip);
      addresses++;
      return true;
    },
    /** Runs a task whose work grows with the answers of a network, and charges its time. */
    work(task: () => void): void {
      const startMs = clock.nowMs();
      task();
      const nowMs = clock.nowMs();
      if (spend(client, nowMs - startMs, nowMs)) end("work");
    },
    /** Counts the bytes of an event. Returns false if they are too many and the event must not be sent. */
    tell(bytes: number): boolean {
      eventBytes += bytes;
      return eventBytes <= MAX_EVENT_BYTES || end("events");
    },
  };
}

/** The part of a budget that an engine uses. */
export type RunBudget = Pick<ReturnType<typeof createBudget>, "enough" | "admit" | "work">;

/** A budget without bounds. */
export const UNBOUNDED: RunBudget = {
  enough: new AbortController().signal,
  admit: () => true,
  work: (task) => task(),
};
