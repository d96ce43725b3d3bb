import type { IpAddress } from "../addr/ip.ts";

/** A client's window, and so the time after which its bucket is full again. */
export const WINDOW_SECONDS = 60;

/**
 * The most buckets held in one table. A bucket takes about 200 bytes, so a full table takes 13 MB;
 * it is full when more than a thousand new addresses a second call for a minute.
 */
const MAX_BUCKETS = 65_536;

/** Buckets that newcomers share, by the network they come from, while the table is full. */
const SHARED_BUCKETS = 1_024;

/** The state of a client's bucket after a request. */
export interface RateLimitState {
  readonly allowed: boolean;
  /** Tokens that a full bucket holds: requests a window. */
  readonly limit: number;
  /** Tokens left. */
  readonly remaining: number;
  /** The Unix second in which the window ends and the bucket is full again. */
  readonly resetSeconds: number;
}

interface Bucket {
  used: number;
  /** Unix second in which the window began. */
  readonly startSeconds: number;
}

/**
 * Token buckets by key, of a bounded number.
 *
 * Buckets stand in the order in which their windows began, so those that ended are found at the
 * front, and a bucket in use is never thrown out for a newcomer: newcomers to a full table share
 * buckets by the network that they come from.
 */
export class BucketTable {
  readonly #buckets = new Map<string, Bucket>();
  readonly #shared = new Map<number, Bucket>();
  readonly #maxBuckets: number;
  /** Unknown to attackers, so that they cannot choose whose shared bucket they empty. */
  readonly #seed = BigInt(crypto.getRandomValues(new Uint32Array(1))[0] ?? 0);

  constructor(maxBuckets = MAX_BUCKETS) {
    this.#maxBuckets = maxBuckets;
  }

  /** Buckets held now, without the shared ones. */
  get size(): number {
    return this.#buckets.size;
  }

  /** The bucket of a key whose window has not ended, or null. */
  find(key: string, network: string, nowSeconds: number): Bucket | null {
    const own = this.#buckets.get(key);
    if (own !== undefined && !hasEnded(own, nowSeconds)) return own;
    if (this.#buckets.size < this.#maxBuckets) return null;
    const shared = this.#shared.get(this.#slot(network));
    return shared !== undefined && !hasEnded(shared, nowSeconds) ? shared : null;
  }

  /** Begins a window for a key that `find` has no bucket for. */
  begin(key: string, network: string, nowSeconds: number): Bucket {
    this.#buckets.delete(key);
    for (const [ended, bucket] of this.#buckets) {
      if (!hasEnded(bucket, nowSeconds)) break;
      this.#buckets.delete(ended);
    }
    const bucket = { used: 0, startSeconds: nowSeconds };
    if (this.#buckets.size < this.#maxBuckets) this.#buckets.set(key, bucket);
    else this.#shared.set(this.#slot(network), bucket);
    return bucket;
  }

  #slot(network: string): number {
    return Number(Bun.hash.wyhash(network, this.#seed) % BigInt(SHARED_BUCKETS));
  }
}

/** A clock that was set back ends the window too, instead of stretching it. */
function hasEnded(bucket: Bucket, nowSeconds: number): boolean {
  return nowSeconds >= bucket.startSeconds + WINDOW_SECONDS || nowSeconds < bucket.startSeconds;
}

/** Requests a minute. */
export interface RateLimits {
  readonly anonymous: number;
  /** For an IPv6 /64; 0 for none. */
  readonly prefix: number;
}

/** Whose buckets a request counts on. */
export type RateLimitSubject =
  | { readonly kind: "address"; readonly address: IpAddress | null }
  | { readonly kind: "key"; readonly id: string; readonly limit: number };

/** One of the buckets that a request counts on. */
interface Account {
  readonly table: BucketTable;
  readonly key: string;
  readonly network: string;
  readonly limit: number;
}

/**
 * Counts requests against each client's bucket, and each IPv6 /64's.
 *
 * A client's window begins with its first request, at that request's whole second, so that
 * `resetSeconds` is exact.
 */
export class RateLimiter {
  readonly #limits: RateLimits;
  readonly #nowMs: () => number;
  readonly #addresses = new BucketTable();
  readonly #prefixes = new BucketTable();
  readonly #keys = new BucketTable();

  /** @param nowMs Unix time in milliseconds */
  constructor(limits: RateLimits, nowMs: () => number = Date.now) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  /** The Unix second that windows are counted in. */
  nowSeconds(): number {
    return Math.floor(this.#nowMs() / 1000);
  }

  /** Takes one token from every bucket that the request counts on, or none where one is empty. */
  take(subject: RateLimitSubject): RateLimitState {
    const now = this.nowSeconds();
    const accounts = this.#accountsOf(subject);
    const buckets = accounts.map(
      ({ table, key, network }) => table.find(key, network, now) ?? table.begin(key, network, now),
    );
    const allowed = accounts.every(({ limit }, index) => (buckets[index]?.used ?? 0) < limit);
    if (allowed) for (const bucket of buckets) bucket.used += 1;
    return { ...tightest(accounts, buckets, now), allowed };
  }

  /** The state as it is, without taking a token or beginning a window. */
  peek(subject: RateLimitSubject): RateLimitState {
    const now = this.nowSeconds();
    const accounts = this.#accountsOf(subject);
    const buckets = accounts.map(({ table, key, network }) => table.find(key, network, now));
    const state = tightest(accounts, buckets, now);
    return { ...state, allowed: state.remaining > 0 };
  }

  #accountsOf(subject: RateLimitSubject): Account[] {
    if (subject.kind === "key") {
      const { id, limit } = subject;
      return [{ table: this.#keys, key: id, network: id, limit }];
    }
    const { address } = subject;
    const { anonymous, prefix } = this.#limits;
    const table = this.#addresses;
    if (address === null) return [{ table, key: "unix", network: "unix", limit: anonymous }];
    if (address.version === 4) {
      const key = String(address.word);
      return [{ table, key, network: String(address.word >>> 16), limit: anonymous }];
    }
    const { word0, word1, word2, word3 } = address;
    const network = String(word0);
    const half = `${network}:${word1}`;
    const own = { table, key: `${half}:${word2}:${word3}`, network, limit: anonymous };
    return prefix === 0
      ? [own]
      : [own, { table: this.#prefixes, key: half, network, limit: prefix }];
  }
}

/** The state of the bucket with the fewest tokens left: the one that a client will meet first. */
function tightest(
  accounts: readonly Account[],
  buckets: readonly (Bucket | null)[],
  nowSeconds: number,
): Omit<RateLimitState, "allowed"> {
  const states = accounts.map(({ limit }, index) => {
    const bucket = buckets[index] ?? { used: 0, startSeconds: nowSeconds };
    return {
      limit,
      remaining: Math.max(0, limit - bucket.used),
      resetSeconds: bucket.startSeconds + WINDOW_SECONDS,
    };
  });
  return states.reduce((a, b) => (b.remaining < a.remaining ? b : a));
}
