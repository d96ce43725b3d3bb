import { RedisClient } from "bun";
import type { z } from "zod";
import { once } from "../api/schemas.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { errorCode, reasonOf } from "../util/errors.ts";

/** The time for a new connection, with its TLS handshake and password, in milliseconds. */
const CONNECT_MS = 1_000;

/** The reasons why a call got no result: no answer in time, no connection, or an error as the answer. */
type Failure = "silent" | "lost" | "refused";

/** A call got no result; the message has the reason, without the password. */
export class ValkeyError extends Error {
  override readonly name = "ValkeyError";
  readonly failure: Failure;

  constructor(message: string, failure: Failure) {
    super(message);
    this.failure = failure;
  }
}

/** A program in Lua, which Valkey runs without any other command in between, and the schema of its result. */
type Script<T> = Readonly<ReturnType<typeof script<T>>>;

/** Prepares a script; Valkey knows it by its SHA-1. */
export function script<T>(source: string, result: () => z.ZodType<T>) {
  const sha1 = new Bun.CryptoHasher("sha1").update(source).digest("hex");
  return { source, sha1, result: once(result) };
}

/**
 * Runs a script; throws ValkeyError.
 *
 * @typeParam Missing the value for a missing answer, if it returns one instead of throwing
 * @param limitMs the time for the answer, in milliseconds
 */
export type RunScript<Missing = never> = <T>(
  wanted: Script<T>,
  keys: readonly string[],
  args: readonly (string | number)[],
  limitMs?: number,
) => Promise<T | Missing>;

/** The part of Bun's client that is used; tests supply their own. */
export type Client = Pick<RedisClient, "send" | "close">;

/**
 * One connection to Valkey or Redis, opened by the first call. It is not repaired: a server that stops never answers the
 * calls under way, so another connection is opened after a call was given up.
 */
export function createConnection(
  url: string,
  clock: Clock = systemClock,
  client: Client = new RedisClient(url, { autoReconnect: false, connectionTimeout: CONNECT_MS }),
) {
  let isOpen = false;
  /** Calls that were given up and have no answer yet. */
  let late = 0;

  /** Rejects if the reply does not come in time. */
  const within = <T>(limitMs: number, reply: Promise<T>) => {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const giveUp = () => {
      late += 1;
      void reply.catch(() => {}).finally(() => (late -= 1));
      reject(new ValkeyError(`no answer within ${limitMs} ms`, "silent"));
    };
    // One more turn of the event loop: if the loop was blocked, the answer may be there unread.
    const cancel = clock.after(limitMs, () => clock.after(1, giveUp));
    reply.then(resolve, reject).finally(cancel);
    return promise;
  };
  /**
   * Runs a script. The first call has the time to connect instead of its limit. A result that breaks the script's
   * schema is an error too.
   */
  const run: RunScript = async (script, keys, args, limitMs = CONNECT_MS) => {
    const rest = [String(keys.length), ...keys, ...args.map(String)];
    const sent = client.send("EVALSHA", [script.sha1, ...rest]).catch((error) => {
      if (!reasonOf(error).startsWith("NOSCRIPT")) throw error;
      return client.send("EVAL", [script.source, ...rest]);
    });
    try {
      const reply = await within(isOpen ? limitMs : CONNECT_MS, sent);
      isOpen = true;
      const { success, data } = script.result().safeParse(reply);
      if (success) return data;
    } catch (error) {
      throw error instanceof ValkeyError ? error : explain(error, isOpen);
    }
    throw new ValkeyError("its answer is not one of Valkey", "refused");
  };
  return {
    run,
    /** True if a call that was given up has no answer yet; answers to later calls come after it. */
    isLate: () => late > 0,
    close: () => client.close(),
  };
}

/** The error of Bun's client for a call that failed, in our words: without its advice for programmers. */
function explain(error: unknown, wasOpen: boolean): ValkeyError {
  const message = reasonOf(error);
  const reason = message.startsWith("NOAUTH")
    ? "NOAUTH: it needs a password"
    : message.replace(/\.$/, "");
  if (errorCode(error) === "ERR_REDIS_SERVER_ERROR") return new ValkeyError(reason, "refused");
  const isPlain = /^Connection (closed|has failed)/.test(reason);
  const lost = wasOpen ? "the connection was closed" : "it cannot be reached";
  return new ValkeyError(isPlain ? lost : reason, "lost");
}
