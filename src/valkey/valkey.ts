import { type Clock, systemClock } from "../util/clock.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { namesBelow, type ValkeyAddress } from "./address.ts";
import { Connection, type Script, script, ValkeyError } from "./connection.ts";

/** How long a request waits for an answer, in milliseconds; then its instance decides alone. */
export const GIVE_UP_MS = 50;

/** How often an instance says that it is there and asks whether the keys have changed, in milliseconds. */
export const BEAT_MS = 500;

/** An instance that has not said so for this long is not there, in milliseconds. */
const GONE_MS = 5_000;

/** Counts this instance, and returns the time, the number of instances, and the revision of the keys. */
const BEAT = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {now, redis.call('ZCARD', KEYS[1]), redis.call('HGET', KEYS[2], 'revision')}
`);

/** Beats in a row that must count fewer instances: one that is there says so in this time. */
const FEWER_BEATS = GONE_MS / BEAT_MS;

/** How a call of a request ended. */
export type CallOutcome = "answered" | "given_up" | "failed";

/** What a test supplies. */
export interface ValkeyOptions {
  readonly clock?: Clock;
  readonly connect?: (url: string) => Connection;
}

/**
 * The engine that several instances share: Valkey or Redis. It may fail at any time, so it is up or
 * down. While it is down, `ask` returns null at once, and a timer looks whether it is back.
 */
export class Valkey {
  readonly names: ReturnType<typeof namesBelow>;
  readonly #url: string;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #connect: (url: string) => Connection;
  readonly #id = crypto.randomUUID();
  #connection: Connection | null = null;
  /** Why it is down; null while it is up, and undefined before the first beat. */
  #problem: string | null | undefined;
  #stopBeats: (() => void) | null = null;
  #instances = 1;
  #beatsWithFewer = 0;
  #aheadMs = 0;
  /** Hears of each call of a request. */
  onCall: ((ms: number, outcome: CallOutcome) => void) | undefined;

  constructor({ url, prefix }: ValkeyAddress, log: Log, options: ValkeyOptions = {}) {
    const { clock = systemClock, connect = (to) => new Connection(to, clock) } = options;
    this.names = namesBelow(prefix);
    this.#url = url;
    this.#log = log;
    this.#clock = clock;
    this.#connect = connect;
  }

  get isUp(): boolean {
    return this.#problem === null;
  }

  /** Instances that the engine counted last, with this one; an engine that was away must count them first. */
  get instances(): number {
    return this.#instances;
  }

  /** Unix time in milliseconds by the engine's clock, as far as it is known. */
  readonly nowMs = (): number => Date.now() + this.#aheadMs;

  /**
   * Connects, and again whenever it is down, until `close`; resolves after the first attempt.
   *
   * @param onRevision is called with the revision of the keys, null if there are none, at each beat
   */
  async start(onRevision: (revision: string | null) => Promise<void>): Promise<void> {
    const again = async () => {
      await this.#beat(onRevision);
      if (this.#stopBeats !== null) this.#stopBeats = this.#clock.after(BEAT_MS, again);
    };
    this.#stopBeats = () => {};
    await again();
  }

  close(): void {
    this.#stopBeats?.();
    this.#stopBeats = null;
    this.#connection?.close();
    this.#connection = null;
  }

  /** The result of a script for a request; null if the engine is down or does not answer in time. */
  async ask(
    wanted: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    if (!this.isUp) return null;
    const startMs = this.#clock.nowMs();
    const ended = (outcome: CallOutcome) => this.onCall?.(this.#clock.nowMs() - startMs, outcome);
    try {
      const result = await this.run(wanted, keys, args);
      ended("answered");
      return result;
    } catch (error) {
      this.#enter(reasonOf(error));
      const isSilent = error instanceof ValkeyError && error.failure === "silent";
      ended(isSilent ? "given_up" : "failed");
      return null;
    }
  }

  /**
   * The result of a script; without one in time, the connection is given up.
   *
   * @throws ValkeyError
   */
  async run(
    wanted: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    limitMs = GIVE_UP_MS,
  ): Promise<unknown> {
    this.#connection ??= this.#connect(this.#url);
    const connection = this.#connection;
    try {
      return await connection.run(wanted, keys, args, limitMs);
    } catch (error) {
      const isUsable = error instanceof ValkeyError && error.failure === "refused";
      if (!isUsable) connection.close();
      if (!isUsable && this.#connection === connection) this.#connection = null;
      throw error;
    }
  }

  async #beat(onRevision: (revision: string | null) => Promise<void>): Promise<void> {
    try {
      // The first call of a connection has time to connect, so it does not show how fast the engine is.
      if (this.#connection === null) await this.#countMe();
      await onRevision(await this.#countMe());
      this.#enter(null);
    } catch (error) {
      this.#enter(reasonOf(error));
    }
  }

  /** Takes part in the count of the instances; returns the revision of the keys. */
  async #countMe(): Promise<string | null> {
    const { instances: counted, keys } = this.names;
    const reply = await this.run(BEAT, [counted, keys], [this.#id, GONE_MS]);
    const [nowMs, instances, revision] = reply as [number, number, string | null];
    if (!Number.isSafeInteger(nowMs) || !Number.isSafeInteger(instances))
      throw new ValkeyError("its answer is not one of Valkey", "refused");
    this.#aheadMs = nowMs - Date.now();
    const isFewer = instances < this.#instances && this.#beatsWithFewer < FEWER_BEATS;
    this.#beatsWithFewer = isFewer ? this.#beatsWithFewer + 1 : 0;
    if (!isFewer) this.#instances = instances;
    return revision;
  }

  /** @param problem why it is down, null if it is up */
  #enter(problem: string | null): void {
    if (this.#stopBeats === null) return;
    const before = this.#problem;
    this.#problem = problem;
    if (problem !== null) this.#beatsWithFewer = 0;
    if (before !== undefined && stateOf(before) === stateOf(problem)) return;
    const instances = this.#instances;
    if (problem === null) {
      this.#log.info("Valkey answers; all instances count together", { instances });
    } else {
      this.#log.warn("Valkey does not answer, so each instance allows its part of the limits", {
        reason: problem,
        instances,
      });
    }
  }
}

/** Up, away, or the code of its errors such as LOADING; the log has a line for each change. */
function stateOf(problem: string | null): string {
  return problem === null ? "up" : (/^[A-Z]{2,}\b/.exec(problem)?.[0] ?? "away");
}
