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
export const TAKE = script(source);

/** See `createSharedLimiter`. */
export type SharedLimiter = ReturnType<typeof createSharedLimiter>;

/** The rate limits that several instances count together; each counts its part while Valkey is down. */
export function createSharedLimiter(
  local: RateLimiter,
  valkey: Pick<Valkey, "ask" | "instances" | "isUp" | "names">,
) {
  const takeFromAll = async (subject: RateLimitSubject, tokens: number) => {
    const buckets = local.open(subject);
    const reply = await valkey.ask(
      TAKE,
      buckets.map(({ name }) => valkey.names.limit(name)),
      [
        WINDOW_SECONDS,
        tokens,
        ...buckets.flatMap(({ limit, used, startSeconds }) => [limit, used, startSeconds]),
      ],
    );
    const numbers = Array.isArray(reply) ? reply.filter(Number.isSafeInteger) : [];
    const [allowed = 0, now = 0, ...counts] = numbers;
    // Also if what answers is not Valkey.
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
