import { z } from "zod";
import { namesBelow, type ValkeyAddress } from "../config/valkey-address.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import beatSource from "./beat.lua" with { type: "text" };
import { createConnection, type RunScript, script, ValkeyError } from "./connection.ts";

/** The time that a request waits for an answer, in milliseconds; then its instance decides alone. */
export const GIVE_UP_MS = 50;

/** The time between beats, in milliseconds: an instance reports its presence, and asks for the version of the keys. */
export const BEAT_MS = 500;

/** The silence after which an instance counts as gone, in milliseconds. */
const GONE_MS = 5_000;

/** The number of instances that share limits before Valkey has counted them. */
const ASSUMED_INSTANCES = 20;

/** The largest believable count of instances; a larger one would make limits vanish. */
const MAX_INSTANCES = 100_000;

const BEAT = script(beatSource, () => {
  const count = z.int().min(1).max(MAX_INSTANCES);
  return z.tuple([z.int().min(0), count, z.string().max(64)]);
});

/** The outcome of a call for a request. */
export type CallOutcome = "answered" | "given_up" | "failed";

/** See `createValkey`. */
export type Valkey = ReturnType<typeof createValkey>;

/**
 * Valkey or Redis, which several instances share. It may fail at any time: beats find out whether it is up or down.
 * While it is down, or an answer is late, no request waits for it.
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
  const id = crypto.randomUUID().slice(-12);
  let connection: ReturnType<typeof connect> | null = null;
  /** The reason why it is down; null while it is up, and undefined before the first beat. */
  let problem: string | null | undefined;
  let stopBeats: (() => void) | null = null;
  let instances: number | null = null;
  let aheadMs = Date.now() - clock.nowMs();

  /** Marks Valkey as down after the error of a call; if the error is an answer, the connection stays open. */
  const fail = (error: unknown) => {
    if (!(error instanceof ValkeyError && error.failure === "refused")) {
      connection?.close();
      connection = null;
    }
    enter(reasonOf(error));
  };
  /** The result of a script for a beat; throws ValkeyError. */
  const run: RunScript = async (wanted, keys, args, limitMs = GIVE_UP_MS) => {
    connection ??= connect();
    return await connection.run(wanted, keys, args, limitMs);
  };
  /** Adds this instance to the count; returns the version of the keys. */
  const countMe = async (): Promise<string> => {
    const keys = [names.instances, ...names.keys];
    const [nowMs, counted, version] = await run(BEAT, keys, [id, GONE_MS]);
    aheadMs = nowMs - clock.nowMs();
    instances = counted;
    return version;
  };
  /** Notes the state, and logs a change. @param reason why Valkey is down; null if it is up */
  const enter = (reason: string | null) => {
    if (stopBeats === null) return;
    const before = problem;
    problem = reason;
    if (before !== undefined && stateOf(before) === stateOf(reason)) return;
    if (reason === null) {
      log.info("Valkey answers; all instances count together", { instances });
    } else {
      const message = "Valkey does not answer, so each instance allows its part of what is left";
      log.warn(message, { reason, instances: valkey.instances });
    }
  };
  /** The result of a script for a request; null if Valkey is down or does not answer in time. */
  const ask: RunScript<null> = async (wanted, keys, args) => {
    const current = connection;
    if (problem !== null || current === null || current.isLate()) return null;
    const startMs = clock.nowMs();
    let outcome: CallOutcome = "answered";
    try {
      return await current.run(wanted, keys, args, GIVE_UP_MS);
    } catch (error) {
      // The next beat finds out whether Valkey only paused.
      const isSilent = error instanceof ValkeyError && error.failure === "silent";
      outcome = isSilent ? "given_up" : "failed";
      if (!isSilent && current === connection) fail(error);
      return null;
    } finally {
      valkey.onCall?.(clock.nowMs() - startMs, outcome);
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
    /** The instances that Valkey counted last, with this one; an assumption before its first answer. */
    get instances() {
      return instances ?? ASSUMED_INSTANCES;
    },
    /** Unix time in milliseconds by Valkey's clock, as far as it is known. */
    nowMs: () => clock.nowMs() + aheadMs,
    /**
     * Connects, and reconnects whenever Valkey is down, until `close`. Resolves after the first attempt.
     *
     * @param onVersion is called with the version of the keys at each beat
     */
    async start(onVersion: (version: string) => Promise<void>): Promise<void> {
      const beat = async () => {
        try {
          // The first call of a connection includes the time to connect, so a second call tests the speed.
          if (connection === null) await countMe();
          await onVersion(await countMe());
          // The call of a request may have failed meanwhile.
          if (connection !== null) enter(null);
        } catch (error) {
          fail(error);
        }
        if (stopBeats !== null) stopBeats = clock.after(BEAT_MS, beat);
      };
      stopBeats = () => {};
      await beat();
    },
    /** Closes the connection. Valkey forgets this instance after some seconds of silence. */
    close(): void {
      stopBeats?.();
      stopBeats = null;
      connection?.close();
      connection = null;
    },
    ask,
  };
  return valkey;
}

/** The state for the log: up, away, or the code of its errors such as LOADING. */
function stateOf(problem: string | null): string {
  return problem === null ? "up" : (/^[A-Z]{2,}\b/.exec(problem)?.[0] ?? "away");
}
