import { z } from "zod";
import { namesBelow, type ValkeyAddress } from "../config/valkey-address.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import source from "./beat.lua" with { type: "text" };
import {
  createConnection,
  type Script,
  script,
  type ValkeyConnection,
  ValkeyError,
} from "./connection.ts";

/** How long a request waits for an answer, in milliseconds; then its instance decides alone. */
export const GIVE_UP_MS = 50;

/** How often an instance says that it is there and asks whether the keys have changed, in milliseconds. */
export const BEAT_MS = 500;

/** An instance that has not said so for this long is not there, in milliseconds. */
const GONE_MS = 5_000;

/** Instances that are believed, so that no count makes limits vanish. */
const MAX_INSTANCES = 100_000;

const BEAT = script(source, () => {
  const count = z.int().min(1).max(MAX_INSTANCES);
  return z.tuple([z.int().min(0), count, z.string().max(64).nullable()]);
});

/** Beats in a row that must count fewer instances: one that is there says so in this time. */
const FEWER_BEATS = GONE_MS / BEAT_MS;

/** How a call of a request ended. */
export type CallOutcome = "answered" | "given_up" | "failed";

/** See `createValkey`. */
export type Valkey = ReturnType<typeof createValkey>;

/**
 * Valkey or Redis, which several instances share. It may fail at any time, so it is up or down. While it
 * is down, `ask` returns null at once, and a timer looks if it is back.
 *
 * @param clock for tests, as `connect`
 */
export function createValkey(
  { url, prefix }: ValkeyAddress,
  log: Log,
  clock: Clock = systemClock,
  connect = () => createConnection(url, clock),
) {
  const names = namesBelow(prefix);
  const id = crypto.randomUUID();
  let connection: ValkeyConnection | null = null;
  /** Why it is down; null while it is up, and undefined before the first beat. */
  let problem: string | null | undefined;
  let stopBeats: (() => void) | null = null;
  let instances = 1;
  let beatsWithFewer = 0;
  let aheadMs = 0;

  /**
   * The result of a script; without one in time, the connection is given up.
   *
   * @throws ValkeyError
   */
  const run = async <T>(
    wanted: Script<T>,
    keys: readonly string[],
    args: readonly (string | number)[],
    limitMs = GIVE_UP_MS,
  ): Promise<T> => {
    connection ??= connect();
    const used = connection;
    try {
      return await used.run(wanted, keys, args, limitMs);
    } catch (error) {
      const isUsable = error instanceof ValkeyError && error.failure === "refused";
      if (!isUsable) used.close();
      if (!isUsable && connection === used) connection = null;
      throw error;
    }
  };
  /** Takes part in the count of the instances; returns the revision of the keys. */
  const countMe = async (): Promise<string | null> => {
    const subject = [names.instances, names.keys];
    const [nowMs, counted, revision] = await run(BEAT, subject, [id, GONE_MS]);
    aheadMs = nowMs - Date.now();
    const isFewer = counted < instances && beatsWithFewer < FEWER_BEATS;
    beatsWithFewer = isFewer ? beatsWithFewer + 1 : 0;
    if (!isFewer) instances = counted;
    return revision;
  };
  /** @param reason why it is down, null if it is up */
  const enter = (reason: string | null) => {
    if (stopBeats === null) return;
    const before = problem;
    problem = reason;
    if (reason !== null) beatsWithFewer = 0;
    if (before !== undefined && stateOf(before) === stateOf(reason)) return;
    if (reason === null) {
      log.info("Valkey answers; all instances count together", { instances });
    } else {
      const message = "Valkey does not answer, so each instance allows its part of the limits";
      log.warn(message, { reason, instances });
    }
  };
  const valkey = {
    names,
    run,
    /** Called after each call of a request. */
    onCall: undefined as ((ms: number, outcome: CallOutcome) => void) | undefined,
    get isUp() {
      return problem === null;
    },
    /** Instances that Valkey counted last, with this one; if it was away, it must count them first. */
    get instances() {
      return instances;
    },
    /** Unix time in milliseconds by Valkey's clock, as far as it is known. */
    nowMs: () => Date.now() + aheadMs,
    /**
     * Connects, and again whenever it is down, until `close`; resolves after the first attempt.
     *
     * @param onRevision is called with the revision of the keys, null if there are none, at each beat
     */
    async start(onRevision: (revision: string | null) => Promise<void>): Promise<void> {
      const beat = async () => {
        try {
          // The first call of a connection has time to connect, so it does not show how fast Valkey is.
          if (connection === null) await countMe();
          await onRevision(await countMe());
          enter(null);
        } catch (error) {
          enter(reasonOf(error));
        }
        if (stopBeats !== null) stopBeats = clock.after(BEAT_MS, beat);
      };
      stopBeats = () => {};
      await beat();
    },
    close(): void {
      stopBeats?.();
      stopBeats = null;
      connection?.close();
      connection = null;
    },
    /** The result of a script for a request; null if Valkey is down or does not answer in time. */
    async ask<T>(...call: Parameters<typeof run<T>>): Promise<T | null> {
      if (problem !== null) return null;
      const startMs = clock.nowMs();
      const ended = (outcome: CallOutcome) => valkey.onCall?.(clock.nowMs() - startMs, outcome);
      try {
        const result = await run(...call);
        ended("answered");
        return result;
      } catch (error) {
        enter(reasonOf(error));
        const isSilent = error instanceof ValkeyError && error.failure === "silent";
        ended(isSilent ? "given_up" : "failed");
        return null;
      }
    },
  };
  return valkey;
}

/** Up, away, or the code of its errors such as LOADING; the log has a line for each change. */
function stateOf(problem: string | null): string {
  return problem === null ? "up" : (/^[A-Z]{2,}\b/.exec(problem)?.[0] ?? "away");
}
