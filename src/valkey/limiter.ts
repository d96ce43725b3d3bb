import { z } from "zod";
import {
  type RateLimiter,
  type RateLimitState,
  type RateLimitSubject,
  tighter,
  WINDOW_SECONDS,
} from "../limits/token-bucket.ts";
import { script } from "./connection.ts";
import source from "./take.lua" with { type: "text" };
import type { Valkey } from "./valkey.ts";

/** `RateLimiter.take` for all instances. */
export const TAKE = script(source, () => z.custom<readonly [0 | 1, number, ...number[]]>(isTaken));

/** True for 0 or 1, the time, and two numbers for each bucket, whose window has begun and not ended. Not a schema of numbers, which would take 3 µs of each request. */
function isTaken(reply: unknown): boolean {
  if (!Array.isArray(reply) || reply.length < 2 || reply[0] > 1) return false;
  const now = reply[1];
  return reply.every(
    (each, at) =>
      Number.isInteger(each) &&
      each >= 0 &&
      each <= 0xffff_ffff &&
      (at < 3 || at % 2 === 0 || (each <= now && now < each + WINDOW_SECONDS)),
  );
}

/** See `createSharedLimiter`. */
export type SharedLimiter = ReturnType<typeof createSharedLimiter>;

/** The rate limits that several instances count together; each counts its part while Valkey is down. */
export function createSharedLimiter(
  local: RateLimiter,
  valkey: Pick<Valkey, "ask" | "instances" | "isUp" | "names">,
) {
  const takeFromAll = async (subject: RateLimitSubject, tokens: number) => {
    const buckets = local.open(subject);
    const numbers = await valkey.ask(
      TAKE,
      buckets.map(({ name }) => valkey.names.limit(name)),
      [
        WINDOW_SECONDS,
        tokens,
        ...buckets.flatMap(({ limit, used, startSeconds }) => [limit, used, startSeconds]),
      ],
    );
    const [allowed, now, ...counts] = numbers ?? [0, 0];
    if (counts.length !== 2 * buckets.length) return local.take(subject, tokens, valkey.instances);
    return buckets
      .map(({ learn }, index) => {
        const [used = 0, start = 0] = counts.slice(2 * index);
        return learn(used, start, allowed === 1 ? tokens : 0, now);
      })
      .reduce(tighter);
  };
  return {
    /** As `RateLimiter.take`. This instance alone can know enough to refuse at once. */
    take(subject: RateLimitSubject, tokens: number): RateLimitState | Promise<RateLimitState> {
      const { isUp, instances } = valkey;
      const known = local.take(subject, isUp ? 0 : tokens, isUp ? 1 : instances);
      if (!isUp || tokens === 0) return known;
      return known.remaining >= tokens
        ? takeFromAll(subject, tokens)
        : { ...known, allowed: false };
    },
  };
}
