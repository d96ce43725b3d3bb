import { formatIp, type IpAddress, networkOf } from "../addr/ip.ts";
import type { Config } from "../config/settings.ts";

/** Seconds from the first request in a bucket's window to the moment when the bucket is full again. */
export const WINDOW_SECONDS = 60;

/** Buckets in memory, less than 20 MB with their names. Half of them are for single clients, the others are shared. */
const MAX_BUCKETS = 65_536;

/** The start of the names of keys' buckets. Only the operator makes keys, so there is always room for them. */
const KEY = "key:";

/** Seconds that this machine's clock may be behind the clock that began a window. */
const BEHIND_SECONDS = 1;

/** The client whose buckets a request is charged to: an address, or a key with its limit. The first 128 bits of the key's SHA-256, which is in hex, identify its bucket. */
export type RateLimitSubject =
  | { readonly address: IpAddress | null }
  | { readonly sha256: string; readonly limit: number };

/** Requests per window for an address, and for an IPv6 /64; a limit of 0 for the /64 means none. */
type Rates = Pick<Config["rate"], "anonymous" | "prefix">;

/** The tokens that a client has used of a limit in its window. */
export interface Bucket {
  readonly name: string;
  /** Requests per window; the limit of a key can change within a window. */
  limit: number;
  /** Tokens that this instance granted and Valkey has not counted yet. */
  granted: number;
  /** Tokens that Valkey had counted at its last answer; 0 for an instance that is alone. */
  counted: number;
  /** The Unix second in which the window ends. */
  endSeconds: number;
}

/** A client's bucket after a request. */
export type RateLimitState = ReturnType<ReturnType<typeof createRateLimiter>["take"]>;

/** The limits that a request of the client counts towards: that of its key, or those of its address and /64. */
function quotasOf(subject: RateLimitSubject, rates: Rates): Pick<Bucket, "name" | "limit">[] {
  if ("sha256" in subject) {
    return [{ name: `${KEY}${subject.sha256.slice(0, 32)}`, limit: subject.limit }];
  }
  const { address } = subject;
  // Clients of a unix socket that sends no address share one bucket.
  const name = `address:${address === null ? "unknown" : formatIp(address)}`;
  const own = { name, limit: rates.anonymous };
  if (address?.version !== 6 || rates.prefix === 0) return [own];
  return [own, { name: `prefix:${networkOf(address)}`, limit: rates.prefix }];
}

/**
 * Counts requests of clients in the memory of this instance, each client in the buckets of its limits.
 *
 * A window begins in the whole second of a client's first request, so that `resetSeconds` is exact.
 *
 * A bucket is never removed during its window. While there is no room for single clients, each new client shares a
 * random bucket with others. So a flood of addresses cannot grow the table or avoid the limit, and it takes a few tokens
 * from all new clients, not all tokens from one.
 *
 * @param nowMs Unix time in milliseconds
 */
export function createRateLimiter(rates: Rates, nowMs = Date.now, size = MAX_BUCKETS) {
  /** The buckets in the order in which they were stored, which is about the order in which their windows end. */
  const stored = new Map<string, Bucket>();
  /** A secret, so that nobody can choose to share a bucket with a certain client. */
  const [seed] = crypto.getRandomValues(new Uint32Array(1));
  const half = Math.ceil(size / 2);
  const nowSeconds = () => Math.floor(nowMs() / 1000);
  const ownOrShared = (name: string) => {
    if (name.startsWith(KEY) || stored.size < half || stored.has(name)) return name;
    const [kind] = name.split(":");
    return `${kind}:shared:${Bun.hash.xxHash32(name, seed) % (half / 2)}`;
  };
  const limiter = {
    /**
     * Takes tokens from every bucket of the client, or none if one of them has fewer. Taking 0 starts no window.
     *
     * @param instances the number of instances that share the tokens that Valkey has not counted
     */
    take(subject: RateLimitSubject, price: number, instances = 1) {
      const buckets = limiter.find(subject);
      const allowed = buckets.every((each) => tokensLeft(each, instances) >= Math.max(1, price));
      for (const bucket of allowed && price > 0 ? buckets : []) {
        limiter.store(bucket);
        bucket.granted += price;
      }
      return limiter.stateOf(buckets, allowed, instances);
    },
    /** The buckets that the client's requests are charged to; a bucket whose window has not begun is not stored yet. */
    find(subject: RateLimitSubject): readonly Bucket[] {
      const now = nowSeconds();
      for (const bucket of stored.values()) {
        if (isActive(bucket, now)) break;
        stored.delete(bucket.name);
      }
      return quotasOf(subject, rates).map(({ name: own, limit }) => {
        const name = ownOrShared(own);
        const bucket = stored.get(name);
        if (bucket && isActive(bucket, now)) return Object.assign(bucket, { limit });
        return { name, limit, granted: 0, counted: 0, endSeconds: now + WINDOW_SECONDS };
      });
    },
    /** Stores a bucket, so that it is found until its window ends. */
    store(bucket: Bucket): void {
      if (stored.get(bucket.name) === bucket) return;
      // Moves the bucket to the end of the order.
      stored.delete(bucket.name);
      stored.set(bucket.name, bucket);
    },
    /** The state that the response's headers show: of the bucket with the fewest tokens left, or of the later end. */
    stateOf(buckets: readonly Bucket[], allowed: boolean, instances = 1) {
      const left = (bucket: Bucket) => tokensLeft(bucket, instances);
      const [first] = buckets.toSorted(
        (a, b) => left(a) - left(b) || b.endSeconds - a.endSeconds,
      ) as [Bucket];
      return {
        allowed,
        /** Requests per window. */
        limit: first.limit,
        /** Tokens left; the limit of a key can be lowered during its window. */
        remaining: Math.max(0, left(first)),
        /** The Unix second in which the window ends and the bucket is full again. */
        resetSeconds: first.endSeconds,
        /** Seconds until then, at least 1. */
        retryAfterSeconds: Math.max(1, first.endSeconds - nowSeconds()),
      };
    },
  };
  return limiter;
}

/** A clock that was set back ends the window instead of extending it. */
function isActive({ endSeconds }: Bucket, nowSeconds: number): boolean {
  return nowSeconds < endSeconds && nowSeconds + BEHIND_SECONDS >= endSeconds - WINDOW_SECONDS;
}

/** The tokens that one of several instances may still grant; at least one of a whole limit. */
export function tokensLeft({ limit, counted, granted }: Bucket, instances: number): number {
  const share = Math.floor((limit - counted) / instances);
  return Math.max(share, counted === 0 ? 1 : 0) - granted;
}
