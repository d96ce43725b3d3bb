import { z } from "zod";
import { learn, leased, question, shared, tickOf, uncertain } from "../limits/lease.ts";
import {
  type RateLimiter,
  type RateLimitState,
  type RateLimitSubject,
  WINDOW_SECONDS,
} from "../limits/token-bucket.ts";
import { script } from "./connection.ts";
import source from "./take.lua" with { type: "text" };
import type { Valkey } from "./valkey.ts";

/** Asks for leases of a client's buckets. */
export const TAKE = script(source, () => z.custom<readonly [number, ...number[]]>(isAnswer));

/** A client that is spread over the instances gets at most this part of each one's share of the rest at once. */
const SPREAD_PARTS = 2;

/** True for the time, and three numbers for each bucket, whose window has begun and not ended. Not a schema of numbers, which would take 3 µs of each call. */
function isAnswer(reply: unknown): boolean {
  if (!Array.isArray(reply) || reply.length < 4 || reply.length % 3 !== 1) return false;
  const now = reply[0];
  return reply.every(
    (each, at) =>
      Number.isInteger(each) &&
      each >= 0 &&
      each <= 0xffff_ffff &&
      (at % 3 !== 1 || (each <= now && now < each + WINDOW_SECONDS)),
  );
}

/** See `createSharedLimiter`. */
export type SharedLimiter = ReturnType<typeof createSharedLimiter>;

/** The rate limits that several instances count together, by leases of tokens; see `take.lua` and `lease.ts`. */
export function createSharedLimiter(
  local: RateLimiter,
  valkey: Pick<Valkey, "ask" | "id" | "instances" | "isUp" | "names" | "nowMs" | "upMs">,
) {
  const takeAfterAsking = async (subject: RateLimitSubject, tokens: number) => {
    const { id, instances, names } = valkey;
    const asked = local.open(subject).map((bucket) => ({
      ...bucket,
      ...bucket.change(({ waiting }) => ({ waiting: waiting + tokens })),
    }));
    const tick = tickOf(valkey.nowMs());
    const keys = asked.map(({ name }) => names.limit(name));
    const questions = asked.flatMap((bucket) => [
      nameOf(id, bucket.opened),
      ...question(bucket, bucket.limit, instances, tick),
    ]);
    const args = [WINDOW_SECONDS, SPREAD_PARTS * instances, ...questions];
    // Also if it is late: what Valkey has counted for this instance can be used.
    const reply = await valkey.ask(TAKE, keys, args, ([, ...numbers]) => {
      for (const [index, { change, limit, opened }] of asked.entries()) {
        const [start = 0, held = 0, others = 0] = numbers.slice(3 * index);
        change((known) =>
          known.opened === opened ? learn(known, { start, held, others }, limit, tick) : {},
        );
      }
    });
    for (const { change } of asked) {
      change(({ waiting }) => ({ waiting: Math.max(0, waiting - tokens) }));
    }
    const rule = reply === null ? shared(valkey.instances) : leased(instances, "answered");
    return local.take(subject, tokens, rule);
  };
  return {
    /** As `RateLimiter.take`. Valkey is asked only if the lease does not do, and the bucket is not used up. */
    take(subject: RateLimitSubject, tokens: number): RateLimitState | Promise<RateLimitState> {
      const { instances, isUp } = valkey;
      if (!isUp) return local.take(subject, tokens, shared(instances));
      const state = local.take(subject, tokens, leased(instances, tickOf(valkey.nowMs())));
      if (tokens === 0 || state.allowed) return { ...state, allowed: true };
      const { remaining } = local.take(subject, 0, uncertain(tickOf(valkey.upMs)));
      return remaining >= tokens ? takeAfterAsking(subject, tokens) : state;
    },
    /** The leases that are not used up: the bucket's name, that of the instance in it, what it holds, and what it has used. */
    *unused(): Generator<readonly [key: string, name: string, held: number, used: number]> {
      for (const [name, { opened, held, used }] of local.active()) {
        if (held > used) yield [valkey.names.limit(name), nameOf(valkey.id, opened), held, used];
      }
    },
  };
}

/** The name of an instance in a bucket: one for each window, so that what is left of the last one is not used again. */
const nameOf = (id: string, opened: number) => `${id}.${opened}`;
