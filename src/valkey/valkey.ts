import { z } from "zod";
import { namesBelow, type ValkeyAddress } from "../config/valkey-address.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import beatSource from "./beat.lua" with { type: "text" };
import { createConnection, type RunScript, script, ValkeyError } from "./connection.ts";

/** How long a request waits for an answer, in milliseconds; then its instance decides alone. */
export const GIVE_UP_MS = 50;

/** How often an instance says that it is there and asks whether the keys have changed, in milliseconds. */
export const BEAT_MS = 500;

/** An instance that has not said so for this long is not there, in milliseconds. */
const GONE_MS = 5_000;

/** Among how many an instance that Valkey has not counted yet divides, because there may be others. */
const ASSUMED_INSTANCES = 20;

/** Instances that are believed, so that no count makes limits vanish. */
const MAX_INSTANCES = 100_000;

const BEAT = script(beatSource, () => {
  const count = z.int().min(1).max(MAX_INSTANCES);
  return z.tuple([z.int().min(0), count, z.string().max(64)]);
});

/** How a call of a request ended. */
export type CallOutcome = "answered" | "given_up" | "failed";

/** See `createValkey`. */
export type Valkey = ReturnType<typeof createValkey>;

/**
 * Valkey or Redis, which several instances share. It may fail at any time, so it is up or down, and a beat finds
 * which. While it is down, or an answer is late, no request waits for it.
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
  /** Why it is down; null while it is up, and undefined before the first beat. */
  let problem: string | null | undefined;
  let stopBeats: (() => void) | null = null;
  let instances: number | null = null;
  let aheadMs = Date.now() - clock.nowMs();

  /** Makes Valkey down because of the error of a call; an error that is an answer leaves the connection open. */
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
  /** Takes part in the count of the instances; returns the version of the keys. */
  const countMe = async (): Promise<string> => {
    const keys = [names.instances, ...names.keys];
    const [nowMs, counted, version] = await run(BEAT, keys, [id, GONE_MS]);
    aheadMs = nowMs - clock.nowMs();
    instances = counted;
    return version;
  };
  /** @param reason why it is down, null if it is up */
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
    const used = connection;
    if (problem !== null || used === null || used.isLate()) return null;
    const startMs = clock.nowMs();
    let outcome: CallOutcome = "answered";
    try {
      return await used.run(wanted, keys, args, GIVE_UP_MS);
    } catch (error) {
      // A beat finds whether that was a pause.
      const isSilent = error instanceof ValkeyError && error.failure === "silent";
      outcome = isSilent ? "given_up" : "failed";
      if (!isSilent && used === connection) fail(error);
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
    /** Instances that Valkey counted last, with this one; if it was away, it must count them first. */
    get instances() {
      return instances ?? ASSUMED_INSTANCES;
    },
    /** Unix time in milliseconds by Valkey's clock, as far as it is known. */
    nowMs: () => clock.nowMs() + aheadMs,
    /**
     * Connects, and again whenever it is down, until `close`; resolves after the first attempt.
     *
     * @param onVersion is called with the version of the keys at each beat
     */
    async start(onVersion: (version: string) => Promise<void>): Promise<void> {
      const beat = async () => {
        try {
          // The first call of a connection has time to connect, so it does not show how fast Valkey is.
          if (connection === null) await countMe();
          await onVersion(await countMe());
          // Unless the call of a request has failed meanwhile.
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

/** Up, away, or the code of its errors such as LOADING; the log has a line for each change. */
function stateOf(problem: string | null): string {
  return problem === null ? "up" : (/^[A-Z]{2,}\b/.exec(problem)?.[0] ?? "away");
}
