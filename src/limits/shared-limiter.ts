import { script } from "../valkey/connection.ts";
import type { Valkey } from "../valkey/valkey.ts";
import {
  type RateLimiter,
  type RateLimitState,
  type RateLimitSubject,
  tighter,
  WINDOW_SECONDS,
} from "./token-bucket.ts";

/**
 * `RateLimiter.take` for all instances: takes a token from each bucket, or none if one of them is empty.
 *
 * Each key is a bucket; its limit, its used tokens and the start of its window, as this instance knows
 * them, are three arguments. So an engine that has lost its data learns them again.
 */
export const TAKE_SCRIPT = `
local window = ${WINDOW_SECONDS}
local now = tonumber(redis.call('TIME')[1])
local function isActive(start) return now >= start and now < start + window end
local allowed = 1
local buckets = {}
for i, key in ipairs(KEYS) do
  local limit, used, start = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  if used == 0 or not isActive(start) then used, start = 0, now end
  local storedUsed, storedStart = string.match(redis.call('GET', key) or '', '(%d+) (%d+)')
  if storedUsed and isActive(tonumber(storedStart)) then
    used, start = math.max(used, tonumber(storedUsed)), tonumber(storedStart)
  end
  if used >= limit then allowed = 0 end
  buckets[i] = {used, start}
end
local reply = {allowed, now}
for i, key in ipairs(KEYS) do
  local used, start = buckets[i][1] + allowed, buckets[i][2]
  if allowed == 1 then redis.call('SET', key, used .. ' ' .. start, 'EX', start + window - now) end
  reply[2 * i + 1], reply[2 * i + 2] = used, start
end
return reply
`;

const TAKE = script(TAKE_SCRIPT);

/** The rate limits that several instances count together; each counts its part while the engine is down. */
export class SharedRateLimiter {
  readonly #local: RateLimiter;
  readonly #valkey: Pick<Valkey, "ask" | "instances" | "isUp" | "names">;

  constructor(local: RateLimiter, valkey: Pick<Valkey, "ask" | "instances" | "isUp" | "names">) {
    this.#local = local;
    this.#valkey = valkey;
  }

  /** As `RateLimiter.take`. What this instance knows can refuse at once. */
  take(subject: RateLimitSubject, tokens: 0 | 1): RateLimitState | Promise<RateLimitState> {
    const { isUp, instances } = this.#valkey;
    const known = this.#local.take(subject, isUp ? 0 : tokens, isUp ? 1 : instances);
    return isUp && tokens === 1 && known.allowed ? this.#takeFromAll(subject) : known;
  }

  async #takeFromAll(subject: RateLimitSubject): Promise<RateLimitState> {
    const buckets = this.#local.open(subject);
    const { names } = this.#valkey;
    const reply = await this.#valkey.ask(
      TAKE,
      buckets.map(({ name }) => names.limit(name)),
      buckets.flatMap(({ limit, used, startSeconds }) => [limit, used, startSeconds]),
    );
    const numbers = Array.isArray(reply) ? reply.filter(Number.isSafeInteger) : [];
    const [allowed = 0, now = 0, ...counts] = numbers;
    // Also if what answers is not Valkey.
    if (counts.length !== 2 * buckets.length)
      return this.#local.take(subject, 1, this.#valkey.instances);
    return buckets
      .map(({ learn }, index) => {
        const [used = 0, start = 0] = counts.slice(2 * index);
        return learn(used, start, allowed === 1, now);
      })
      .reduce(tighter);
  }
}
