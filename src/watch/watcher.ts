/** Runs the watches of the schedule, keeps their results, and tells their changes. */
import { ApiError, type ErrorCode } from "../api/errors.ts";
import { readTexts } from "../api/parameters.ts";
import type { ValueOf } from "../api/schemas.ts";
import { ALL_LOCATIONS, type Config } from "../config/settings.ts";
import { followFiles } from "../platform/followed-files.ts";
import { readOrEmpty } from "../platform/regular-file.ts";
import type { Services } from "../tools/services.ts";
import { type Clock, DAY_MS, systemClock } from "../util/clock.ts";
import { attempt, orThrow, traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { plural } from "../util/text.ts";
import { diff } from "./diff.ts";
import type { Watching } from "./endpoint.ts";
import {
  type Change,
  type History,
  isoOf,
  lossOf,
  milliseconds,
  packed,
  type Standing,
} from "./history.ts";
import { Levels, levelDifference } from "./level.ts";
import { isBadCode, measuredOf, type Run } from "./measure.ts";
import { showsMore } from "./path.ts";
import type { changeEvent, Difference, runEvent, WatchRow } from "./result.ts";
import {
  hashOf,
  parseSchedule,
  type Schedule,
  type ScheduleRules,
  type Watch,
  WatchError,
} from "./schedule.ts";

/** The client whose share of the slots the runs of watches use. */
export const OWNER = "watch";

const MONTH_MS = 30 * DAY_MS;

/** Errors that say nothing of a target. */
const OF_SERVICE: readonly ErrorCode[] = [
  ...(["TOO_MANY_PROBES", "ICMP_UNAVAILABLE", "INTERNAL_ERROR"] as const),
  ...(["LOCATION_NOT_FOUND", "LOCATION_TIMEOUT", "LOCATION_UNAVAILABLE"] as const),
];

/** The codes of a question that did not leave this machine, or reached no resolver. */
const RCODES_OF_SERVICE = ["SHORTAGE", "UNREACHABLE"];

/** An error, as documents of several locations have it. */
interface Failure {
  readonly code: string;
  readonly message: string;
  readonly details?: object;
}

const isOfService = ({ code, details = {} }: Failure) =>
  OF_SERVICE.includes(code as ErrorCode) ||
  ("rcode" in details && RCODES_OF_SERVICE.includes(`${details.rcode}`));

/** Runs that confirm a change: a router that chooses by packet seldom shows another path three times. */
const CONFIRMATIONS = { path: 2, others: 1 } as const;

/** After so many appearances in a day without a confirmation, a difference is ignored until the next day. A verdict never is. */
const MAX_FLAPS = 2;

/** Differences in the text of a change. */
const MAX_TOLD = 3;

/** Wrong lines in the log. */
const MAX_LOGGED = 10;

const GAPS = {
  stopped: "the service did not run",
  unwritten: "the history could not be written",
  internal: "an internal error, which the log has",
  running: "the run before took longer than the interval",
  slots: (limit: number) => `${plural(limit, "run")} of watches were under way, as many as may be`,
};

/** A document, or why there is none, and the milliseconds after which the run may be tried again. */
type Answer =
  | { readonly document: object }
  | { readonly reason: string; readonly retryMs?: number | undefined };

/** A watch and its state. */
interface Entry {
  readonly watch: Watch;
  standing: Standing | null;
  last: { readonly atMs: number; readonly rtt: number | null; readonly loss: number | null } | null;
  readonly levels: Levels;
  readonly flaps: Map<string, { count: number; sinceMs: number }>;
  /** When the next run is due, by the clock that does not jump. */
  dueMs: number;
  /** Why the run that is due has not begun; null if none is due. */
  waitingFor: string | null;
  isRunning: boolean;
  gap: { readonly atMs: number; readonly reason: string } | null;
  unwrittenSinceMs: number | null;
  cancel(): void;
}

/** The data of the events. */
interface Events {
  run: ValueOf<ReturnType<typeof runEvent>>;
  change: ValueOf<ReturnType<typeof changeEvent>>;
}

type Listener = Parameters<Watching["subscribe"]>[0];

/** The parts of the service that watches need. */
export interface WatcherParts {
  readonly services: Services & { readonly config: Pick<Config, "maxProbes" | "notify"> };
  readonly rules: ScheduleRules;
  readonly history: History;
  readonly log: Log;
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal;
  readonly clock?: Clock;
  /** Unix time in milliseconds, which may jump. */
  readonly nowMs?: () => number;
}

/** The key of a difference: differences of two runs are the same if also their values are, which does not matter for verdicts. */
const keyOf = ({ kind, hop, step }: Difference) => [kind, hop, step].join(" ");
const isSame = (one: Difference, other: Difference) =>
  keyOf(one) === keyOf(other) && (one.kind === "verdict" || Bun.deepEquals(one.after, other.after));

/** The outcome of a run. */
type Shown = Pick<Run, "code" | "atMs"> & { readonly text: string };

const standingOf = (
  before: Standing | null,
  { code, text, atMs }: Shown,
  document: Uint8Array,
): Standing & { document: Uint8Array } => {
  return { code, text, sinceMs: before?.code === code ? before.sinceMs : atMs, document };
};

/** Runs the watches that `apply` gets, until the service stops. */
export class Watcher implements Watching {
  readonly stopping: AbortSignal;
  /** Changes since the start by watch and kind; `flap` for changes that did not come again. */
  readonly changeCounts = new Map<string, Map<Difference["kind"] | "flap", number>>();
  readonly #parts: WatcherParts;
  readonly #clock: Clock;
  readonly #nowMs: () => number;
  /** The number of runs that `OWNER` may have at once. */
  readonly #limit: number;
  readonly #listeners = new Set<Listener>();
  readonly #queue: Entry[] = [];
  #running = 0;
  #entries: ReadonlyMap<string, Entry> = new Map();
  /** False once the file was read: watches that begin later are new, or have a new interval. */
  #isStart = true;
  #wrong: Schedule["wrong"] = [];

  constructor(parts: WatcherParts) {
    this.#parts = parts;
    const { stopping, services, clock = systemClock, nowMs = Date.now } = parts;
    [this.stopping, this.#clock, this.#nowMs] = [stopping, clock, nowMs];
    this.#limit = Math.max(1, services.config.maxProbes >> 1);
    stopping.addEventListener("abort", () => {
      for (const entry of this.#entries.values()) entry.cancel();
    });
  }

  /** Not used without a watch, so that no file is made if nothing is watched. */
  get history(): History {
    return this.#parts.history;
  }

  /** Why nothing can be kept now; null if it can, or if nothing is watched. */
  get problem(): string | null {
    return this.count === 0 ? null : this.history.problem;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Begins to follow the file of watches; a missing file has none. */
  follow(file: string): void {
    const { rules, log } = this.#parts;
    let text: string | null = null;
    const files = followFiles([file], log, {
      read: () => {
        const before = text;
        text = orThrow(
          () => readOrEmpty(file),
          (reason) => new WatchError(`cannot read the file of watches, ${file}: ${reason}`),
        );
        if (text !== before) this.apply(parseSchedule(text, rules));
        return text !== before;
      },
      onRenewed: () => log.info("the watches were read again", { watches: this.count }),
      fallback: () => "the watches of before go on",
    });
    void files.read();
    files.watch();
  }

  /** Runs the watches of a schedule in place of the earlier ones; unchanged watches go on. */
  apply({ watches, wrong }: Schedule): void {
    const { log } = this.#parts;
    this.#wrong = wrong;
    for (const { line, text } of wrong.slice(0, MAX_LOGGED))
      log.warn(`line ${line} of the watches: ${text}`);
    if (wrong.length > MAX_LOGGED) log.warn(`${wrong.length} lines of the watches are wrong`);
    const before = this.#entries;
    this.#entries = new Map(
      watches.map((watch) => {
        const entry = before.get(watch.name);
        const isAsBefore = entry?.watch.everyMs === watch.everyMs;
        return [watch.name, isAsBefore ? entry : this.#begin(watch)];
      }),
    );
    for (const [name, entry] of before) if (this.#entries.get(name) !== entry) entry.cancel();
    this.#isStart = false;
  }

  list() {
    const wrong = [...this.#wrong];
    if (this.count === 0) return { watches: [], details: { wrong, flaps: 0 } };
    const nowMs = this.#nowMs();
    const counts = this.history.counts(nowMs - DAY_MS, nowMs - MONTH_MS);
    const watches = Array.from(this.#entries.values(), ({ watch, standing, last }): WatchRow => {
      const { name, tool, target, from, everyMs } = watch;
      return {
        ...{ name, tool, target, from, everySeconds: everyMs / 1000 },
        verdict: standing && {
          ...{ code: standing.code, text: standing.text, since: isoOf(standing.sinceMs) },
        },
        last: last && { at: isoOf(last.atMs), rtt: last.rtt, loss: last.loss },
        changes: counts.get(name) ?? { day: 0, month: 0 },
      };
    });
    const { problem } = this;
    return {
      watches,
      details: {
        wrong,
        flaps: this.history.flaps(nowMs - DAY_MS),
        ...(problem !== null && { problem }),
      },
    };
  }

  day(name: string, points: number) {
    const nowMs = this.#nowMs();
    return this.history.line(name, { sinceMs: nowMs - DAY_MS, untilMs: nowMs + 1, points });
  }

  series(name: string, sinceMs: number, untilMs: number, points: number) {
    if (!this.#entries.has(name)) return null;
    const series = this.history.series(name, { sinceMs, untilMs, points });
    return { series, changes: this.history.changes(name, sinceMs, untilMs) };
  }

  change(name: string, id: number) {
    return this.count === 0 ? null : this.history.change(name, id);
  }

  readonly subscribe = (listener: Listener) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  #tell<Name extends keyof Events>(event: Name, data: Events[Name]): void {
    for (const listener of this.#listeners) listener(event, data);
  }

  #begin(watch: Watch): Entry {
    const { name, everyMs } = watch;
    const nowMs = this.#nowMs();
    const { standing, last } = this.history.standing(name);
    const entry: Entry = {
      ...{ watch, standing, flaps: new Map(), waitingFor: null, isRunning: false },
      last: last ? { atMs: last.atMs, rtt: milliseconds(last.median), loss: lossOf(last) } : null,
      levels: new Levels((kind, count) => this.history.levels(name, kind, count)),
      // The same moments of each interval, however often the service starts.
      dueMs: this.#clock.nowMs() + ((((hashOf(name) - nowMs) % everyMs) + everyMs) % everyMs),
      ...{ gap: null, unwrittenSinceMs: null, cancel() {} },
    };
    const missedMs = last ? nowMs - last.atMs - everyMs : 0;
    if (last && this.#isStart && missedMs > everyMs)
      this.#noteGap(entry, last.atMs + everyMs, GAPS.stopped, missedMs);
    this.#wait(entry);
    return entry;
  }

  #wait(entry: Entry): void {
    if (this.stopping.aborted) return;
    entry.cancel = this.#clock.after(entry.dueMs - this.#clock.nowMs(), () => this.#due(entry));
  }

  #due(entry: Entry): void {
    const { everyMs } = entry.watch;
    const missed = entry.waitingFor;
    if (missed !== null) this.#noteGap(entry, this.#nowMs() - everyMs, missed, everyMs);
    else if (entry.isRunning) entry.waitingFor = GAPS.running;
    else this.#enqueue(entry);
    const late = Math.floor((this.#clock.nowMs() - entry.dueMs) / everyMs);
    entry.dueMs += (1 + Math.max(0, late)) * everyMs;
    this.#wait(entry);
  }

  #enqueue(entry: Entry): void {
    entry.waitingFor = GAPS.slots(this.#limit);
    this.#queue.push(entry);
    this.#pump();
  }

  #pump(): void {
    while (this.#running < this.#limit && !this.stopping.aborted) {
      const entry = this.#queue.shift();
      if (entry === undefined) return;
      if (this.#entries.get(entry.watch.name) !== entry) continue;
      this.#running++;
      entry.isRunning = true;
      entry.waitingFor = null;
      void this.#run(entry)
        .catch((error) => this.#parts.log.error(`a watch failed: ${traceOf(error)}`))
        .finally(() => {
          this.#running--;
          entry.isRunning = false;
          if (entry.waitingFor === GAPS.running) this.#enqueue(entry);
          else this.#pump();
        });
    }
  }

  async #run(entry: Entry): Promise<void> {
    const first = await this.#measure(entry);
    if (first === null) return;
    const { standing } = entry;
    const base = packed.open(standing?.document ?? null);
    const differences = base === null ? [] : this.#stable(entry, diff(base, first.document));
    const [leading] = differences;
    if (base === null || leading === undefined) return this.#settle(entry, base, first);
    const times = leading.kind === "path" ? CONFIRMATIONS.path : CONFIRMATIONS.others;
    let confirmed = differences;
    let latest = first;
    for (let time = 0; time < times && confirmed.length > 0; time++) {
      const again = await this.#measure(entry);
      // Without a second run, the next regular run counts as a first one again.
      if (again === null) return;
      latest = again;
      const found = diff(base, again.document);
      confirmed = found.filter((each) => confirmed.some((other) => isSame(each, other)));
    }
    const { atMs } = first;
    if (confirmed.length === 0) {
      const flap = entry.flaps.getOrInsertComputed(keyOf(leading), () => ({
        count: 0,
        sinceMs: atMs,
      }));
      flap.count++;
      this.#keepChange(entry, atMs, [leading], { confirmed: false });
      return;
    }
    const isWorse =
      confirmed[0]?.kind === "verdict" &&
      !isBadCode(standing?.code ?? "") &&
      isBadCode(latest.code);
    const evidence = isWorse ? await this.#evidence(entry.watch) : null;
    const now = standingOf(standing, { ...latest, atMs }, packed.of(latest.document));
    const sides = { before: standing?.document ?? null, after: now.document };
    const change = { ...sides, evidence: evidence && packed.of(evidence) };
    // A change that could not be kept is found again by the next run.
    if (this.#keepChange(entry, atMs, confirmed, change, now)) entry.standing = now;
  }

  /** The differences without those that keep coming and going. */
  #stable({ flaps }: Entry, differences: readonly Difference[]): Difference[] {
    const nowMs = this.#nowMs();
    for (const [key, { sinceMs }] of flaps)
      if (Math.abs(nowMs - sinceMs) > DAY_MS) flaps.delete(key);
    return differences.filter(
      (each) => each.kind === "verdict" || (flaps.get(keyOf(each))?.count ?? 0) < MAX_FLAPS,
    );
  }

  /** Measures, and keeps the run or the gap. Returns null without a document. */
  async #measure(entry: Entry) {
    const { watch } = entry;
    const atMs = this.#nowMs();
    const beganMs = this.#clock.nowMs();
    const answer = await this.#ask(watch);
    if (this.stopping.aborted) return null;
    if ("reason" in answer) {
      const { reason, retryMs } = answer;
      const waitMs = retryMs ?? Number.POSITIVE_INFINITY;
      if (beganMs + waitMs < entry.dueMs) {
        entry.waitingFor = reason;
        this.#clock.after(waitMs, () => {
          if (entry.waitingFor === reason && !entry.isRunning) this.#enqueue(entry);
        });
      } else this.#noteGap(entry, atMs, reason, watch.everyMs);
      return null;
    }
    const { document } = answer;
    const { text, ...numbers } = measuredOf(document);
    const run = { ...numbers, atMs, durationMs: Math.round(this.#clock.nowMs() - beganMs) };
    this.#keepRun(entry, run);
    return { ...run, text, document };
  }

  async #ask({ endpoint, values }: Watch): Promise<Answer> {
    const call = { signal: this.stopping, address: null, client: OWNER, allowSeconds() {} };
    try {
      const document = (await endpoint.handle(values, call, this.#parts.services)) as object;
      const { locations } = document as { locations?: { error?: Failure }[] };
      if (locations === undefined) return { document };
      const answers = locations.filter(({ error }) => !error || !isOfService(error));
      if (answers.length > 0) return { document: { ...document, locations: answers } };
      return { reason: locations[0]?.error?.message ?? "no location answered" };
    } catch (error) {
      if (!(error instanceof ApiError)) {
        if (!this.stopping.aborted) this.#parts.log.error(`a watch failed: ${traceOf(error)}`);
        return { reason: GAPS.internal };
      }
      if (!isOfService(error)) return { document: error.body };
      const { message, details } = error;
      const { retryAfterSeconds } = details as { readonly retryAfterSeconds?: number };
      return { reason: message, retryMs: retryAfterSeconds && retryAfterSeconds * 1000 };
    }
  }

  #keepRun(entry: Entry, run: Run): void {
    const { name } = entry.watch;
    const { atMs, code } = run;
    entry.last = { atMs, rtt: milliseconds(run.median), loss: lossOf(run) };
    entry.gap = null;
    const changes = entry.levels.add(run);
    if (!this.history.addRun(name, run)) entry.unwrittenSinceMs ??= atMs;
    else {
      const sinceMs = entry.unwrittenSinceMs;
      entry.unwrittenSinceMs = null;
      if (sinceMs !== null)
        this.#noteGap(entry, sinceMs, GAPS.unwritten, Math.max(1, atMs - sinceMs));
      const { rtt, loss } = entry.last;
      this.#tell("run", { name, at: isoOf(atMs), code, rtt, loss, gap: null });
    }
    for (const change of changes) this.#keepChange(entry, atMs, [levelDifference(change)]);
  }

  /** Keeps why there was no run; successive gaps with one reason become one gap. */
  #noteGap(entry: Entry, atMs: number, reason: string, durationMs: number): void {
    const { name } = entry.watch;
    if (entry.gap?.reason !== reason || entry.gap.atMs > atMs) entry.gap = { atMs, reason };
    const begin = entry.gap.atMs;
    if (!this.history.addGap(name, begin, atMs + durationMs - begin, reason)) return;
    this.#tell("run", { name, at: isoOf(atMs), code: null, rtt: null, loss: null, gap: reason });
  }

  /** Keeps the document that the next one is compared with, and writes the state of the watch if its code is new. */
  #settle(entry: Entry, base: object | null, run: Shown & { readonly document: object }): void {
    const { standing, watch } = entry;
    // The document with more answers is kept: a router that is silent now may be replaced before it answers again.
    const isLess = base !== null && showsMore(base, run.document);
    const kept = isLess ? standing?.document : null;
    entry.standing = standingOf(standing, run, kept ?? packed.of(run.document));
    if (standing?.code !== run.code) this.history.keepStanding(watch.name, entry.standing);
  }

  #keepChange(
    entry: Entry,
    atMs: number,
    diff: readonly Difference[],
    { confirmed = true, ...sides }: Partial<Change> = {},
    standing?: Standing,
  ): boolean {
    const { name } = entry.watch;
    const { kind } = diff[0] as Difference;
    const texts = diff.slice(0, MAX_TOLD).map((each) => each.text);
    const text = texts.join(" ");
    const isToTell = confirmed && this.#parts.services.config.notify !== null;
    const change = { atMs, kind, text, confirmed, diff, ...sides, isToTell };
    const id = this.history.addChange(name, change, standing);
    if (id === null) return false;
    const counts = this.changeCounts.getOrInsertComputed(name, () => new Map());
    const counted = confirmed ? kind : "flap";
    counts.set(counted, (counts.get(counted) ?? 0) + 1);
    this.#tell("change", { name, id, at: isoOf(atMs), kind, text, confirmed });
    return true;
  }

  /** Checks of the same target from all locations that are up; null if there is nothing to check. */
  async #evidence({ target, tool, values }: Watch): Promise<object | null> {
    if (target === null || tool === "here") return null;
    const { services, rules } = this.#parts;
    const { locations } = services;
    const endpoint = rules.endpointOf("check");
    const from = locations?.isConnected && { from: ALL_LOCATIONS };
    const port = tool === "check" && { port: `${values["port"]}` };
    const parameters = attempt(() =>
      readTexts(endpoint.parameters, { name: target, ...from, ...port }),
    );
    if (parameters === undefined) return null;
    const answer = await this.#ask({ endpoint, values: parameters } as Watch);
    if ("reason" in answer) return null;
    const { locations: several } = answer.document as { locations?: object[] };
    return several ?? [{ location: locations?.own ?? null, result: answer.document }];
  }
}
