import type { IpAddress } from "../addr/ip.ts";
import { type BucketKey, BucketTable, WINDOW_SECONDS } from "./bucket-table.ts";

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

/** Requests a minute. */
export interface RateLimits {
  readonly anonymous: number;
  /** For an IPv6 /64; 0 for none. */
  readonly prefix: number;
}

/** Whose buckets a request counts on. */
export type RateLimitSubject =
  | { readonly kind: "address"; readonly address: IpAddress | null }
  | {
      readonly kind: "key";
      /** SHA-256 of the key in hex; its first 128 bits name the bucket. */
      readonly sha256: string;
      readonly limit: number;
    };

/** One of the buckets that a request counts on. */
interface Account {
  readonly table: BucketTable;
  readonly key: BucketKey;
  /** What newcomers share a bucket by when the table is full: the first 32 bits of IPv6, 16 of IPv4. */
  readonly network: number;
  readonly limit: number;
}

/** All peers on the unix socket that name no client share one bucket, under an address nobody has. */
const UNKNOWN_CLIENT: BucketKey = [0, 0, 0, 0];

/** IPv4 addresses lie where IPv6 has the mapped ones; RFC 4291 section 2.5.5.2. */
const MAPPED = 0xffff;

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
    const own = this.#ownAccount(subject);
    const wider = this.#prefixAccount(subject);
    if (wider === null) return take(own, own.table.begin(own.key, own.network, now), true);
    const widerBucket = wider.table.begin(wider.key, wider.network, now);
    // A /64 that has used up its tokens gets no further places in the table of addresses.
    if (!hasToken(wider, widerBucket)) return this.peek(subject);
    const ownBucket = own.table.begin(own.key, own.network, now);
    const allowed = hasToken(own, ownBucket);
    return tighter(take(own, ownBucket, allowed), take(wider, widerBucket, allowed));
  }

  /** The state as it is, without taking a token or beginning a window. */
  peek(subject: RateLimitSubject): RateLimitState {
    const now = this.nowSeconds();
    const peekAt = (account: Account): RateLimitState => {
      const bucket = account.table.find(account.key, account.network, now);
      if (bucket >= 0) return take(account, bucket, false);
      const { limit } = account;
      return { allowed: true, limit, remaining: limit, resetSeconds: now + WINDOW_SECONDS };
    };
    const own = peekAt(this.#ownAccount(subject));
    const wider = this.#prefixAccount(subject);
    return wider === null ? own : tighter(own, peekAt(wider));
  }

  #ownAccount(subject: RateLimitSubject): Account {
    if (subject.kind === "key") {
      const key = keyOfHash(subject.sha256);
      return { table: this.#keys, key, network: key[0], limit: subject.limit };
    }
    const { address } = subject;
    const table = this.#addresses;
    const limit = this.#limits.anonymous;
    if (address === null) return { table, key: UNKNOWN_CLIENT, network: 0, limit };
    if (address.version === 4) {
      return { table, key: [0, 0, MAPPED, address.word], network: address.word >>> 16, limit };
    }
    const { word0, word1, word2, word3 } = address;
    return { table, key: [word0, word1, word2, word3], network: word0, limit };
  }

  #prefixAccount(subject: RateLimitSubject): Account | null {
    const limit = this.#limits.prefix;
    if (limit === 0 || subject.kind === "key" || subject.address?.version !== 6) return null;
    const { word0, word1 } = subject.address;
    return { table: this.#prefixes, key: [word0, word1, 0, 0], network: word0, limit };
  }
}

function hasToken({ table, limit }: Account, bucket: number): boolean {
  return table.used(bucket) < limit;
}

/** The state of a bucket, after a token was taken where `wanted` and there is one. */
function take(account: Account, bucket: number, wanted: boolean): RateLimitState {
  const { table, limit } = account;
  const allowed = hasToken(account, bucket);
  if (allowed && wanted) table.takeToken(bucket);
  return {
    allowed,
    limit,
    // A key's limit can be lowered while its window lasts.
    remaining: Math.max(0, limit - table.used(bucket)),
    resetSeconds: table.endSeconds(bucket),
  };
}

/** The state of the bucket that a client will find empty first; of two alike, of the one that stays so for longer. */
function tighter(a: RateLimitState, b: RateLimitState): RateLimitState {
  const isTighter = (b.remaining - a.remaining || a.resetSeconds - b.resetSeconds) < 0;
  return { ...(isTighter ? b : a), allowed: a.allowed && b.allowed };
}

/** The first 128 bits of a SHA-256 in hex. */
function keyOfHash(sha256: string): BucketKey {
  const word = (index: number) => Number.parseInt(sha256.slice(index * 8, index * 8 + 8), 16);
  return [word(0), word(1), word(2), word(3)];
}
