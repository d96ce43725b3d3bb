import type { IpAddress } from "../addr/ip.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import { type Bucket, counted, type Rule } from "./lease.ts";

/** Seconds from the first request in a bucket's window to the moment when the bucket is full again. */
export const WINDOW_SECONDS = 60;

/** A client's bucket after a request. */
export type RateLimitState = ReturnType<typeof stateOf>;

/** The client whose buckets a request is charged to. */
export type RateLimitSubject =
  | { readonly kind: "address"; readonly address: IpAddress | null }
  | {
      readonly kind: "key";
      /** SHA-256 of the key in hex; its first 128 bits identify the bucket. */
      readonly sha256: string;
      readonly limit: number;
    };

/** A bucket that all instances count; `name` is the same for the same clients at each, and no other's. */
export interface SharedBucket {
  readonly name: string;
  readonly limit: number;
  readonly bucket: Bucket;
}

/** An address, a prefix, or the start of a hash: 128 bits as four unsigned words. */
type BucketKey = readonly [number, number, number, number];

/** Buckets per table. A table takes up to 10 MB; it fills up at 800 new clients per second. */
const SLOTS = 49_152;

/** Buckets that newcomers share by network while the table, or the network's part of it, is full. */
const SHARED_SLOTS = 1_024;

/** The parts of the table that new clients of an IPv6 /32 (IPv4 /16) and of an IPv6 /48 can take within a window. */
const WIDE_PART = 1 / 8;
const SITE_PART = 1 / 32;

/** Seconds that the clock of this machine may be behind the one that a window was begun by. */
const BEHIND_SECONDS = 1;

/** Clients of a unix socket that sends no address share one bucket, under an address that no client has. */
const UNKNOWN_CLIENT: BucketKey = [0, 0, 0, 0];

/** The lower half of a word. */
const LOW = 0xffff;

/** Marks IPv4 keys as IPv4-mapped addresses, RFC 4291 section 2.5.5.2. */
const MAPPED = 0xffff;

/**
 * Token buckets, a fixed number at most.
 *
 * A bucket is never evicted during its window. A newcomer that finds the table full, or whose network has
 * taken its part of the table, shares a bucket with other newcomers of its network. So a flood of
 * addresses does not grow the table, avoid the limit, or lock out other networks.
 */
export class BucketTable {
  readonly #slots: number;
  /** By `textOf` or network, in the order in which their windows began. */
  readonly #buckets = new Map<string, Bucket>();
  /** Buckets that each network has taken since `#countedFrom`, a Unix second. */
  readonly #taken = new Map<number, number>();
  #countedFrom = 0;

  constructor(slots = SLOTS) {
    this.#slots = slots;
  }

  /** Takes tokens from the key's bucket, or none if it has fewer. Taking 0 does not start a window. */
  take(key: BucketKey, limit: number, tokens: number, nowSeconds: number, rule: Rule = counted) {
    // A request that can never be granted starts no window.
    const isTaken = tokens > 0 && tokens <= limit;
    const { bucket } = this.#find(key, nowSeconds, isTaken);
    const allowed = rule(bucket, limit).left >= Math.max(1, tokens);
    if (allowed && isTaken) bucket.used += tokens;
    return stateOf(allowed, limit, rule(bucket, limit).promised, bucket.start, nowSeconds);
  }

  /** True if the key's bucket has as many tokens. */
  has(key: BucketKey, limit: number, tokens: number, nowSeconds: number, rule: Rule): boolean {
    return rule(this.#find(key, nowSeconds).bucket, limit).left >= Math.max(1, tokens);
  }

  /** The key's bucket, after its window has started if there was none, and its name for all instances. */
  open(key: BucketKey, nowSeconds: number): { readonly name: string; readonly bucket: Bucket } {
    const { text, bucket } = this.#find(key, nowSeconds, true);
    return { name: nameOf(text), bucket };
  }

  /** The buckets whose window has not ended, with their names. */
  *active(nowSeconds: number): Generator<readonly [name: string, bucket: Bucket]> {
    for (const [text, bucket] of this.#buckets) {
      if (isActive(bucket, nowSeconds)) yield [nameOf(text), bucket];
    }
  }

  /** The key's bucket, or that of its network; else a new one, which is kept if it is opened. */
  #find(key: BucketKey, nowSeconds: number, isOpened = false) {
    for (const [text, bucket] of this.#buckets) {
      if (isActive(bucket, nowSeconds)) break;
      this.#buckets.delete(text);
    }
    const own = textOf(key);
    const isOwn =
      this.#current(own, nowSeconds) !== undefined ||
      (this.#buckets.size < this.#slots && (!isOpened || this.#countNewcomer(key, nowSeconds)));
    // Newcomers that share a bucket here share one there, so a flood fills Valkey no more than the table.
    const text = isOwn ? own : `network:${wideNetwork(key) % SHARED_SLOTS}`;
    const current = this.#current(text, nowSeconds);
    const bucket = current ?? unused(nowSeconds);
    if (isOpened && current === undefined) this.#buckets.set(text, bucket);
    return { text, bucket };
  }

  /** A bucket in its window; one whose window has ended is forgotten, so that its next one is the newest. */
  #current(text: string, nowSeconds: number): Bucket | undefined {
    const bucket = this.#buckets.get(text);
    if (bucket === undefined || isActive(bucket, nowSeconds)) return bucket;
    this.#buckets.delete(text);
    return undefined;
  }

  /** Counts a bucket that a network takes; false if the network has taken its part of the table already. */
  #countNewcomer(key: BucketKey, nowSeconds: number): boolean {
    if (nowSeconds < this.#countedFrom || nowSeconds >= this.#countedFrom + WINDOW_SECONDS) {
      this.#countedFrom = nowSeconds;
      this.#taken.clear();
    }
    const wide = wideNetwork(key);
    // Negative, so that no /48 is taken for a wide network.
    const site = -1 - (wide * 0x10000 + (key[1] >>> 16));
    const [ofWide = 0, ofSite = 0] = [this.#taken.get(wide), this.#taken.get(site)];
    if (ofWide >= Math.max(1, this.#slots * WIDE_PART)) return false;
    if (ofSite >= Math.max(1, this.#slots * SITE_PART)) return false;
    this.#taken.set(wide, ofWide + 1).set(site, ofSite + 1);
    return true;
  }
}

const unused = (start: number): Bucket => {
  const counts = { used: 0, held: 0, others: 0, answered: 0, asked: 0, waiting: 0 };
  return { start, opened: start, ...counts };
};

/** A key as eight characters, one for each 16 bits; digits would take twice the memory and time. */
const textOf = ([a, b, c, d]: BucketKey) => {
  const [w, x, y, z] = [a >>> 16, b >>> 16, c >>> 16, d >>> 16];
  return String.fromCharCode(w, a & LOW, x, b & LOW, y, c & LOW, z, d & LOW);
};

/** The name of a bucket for all instances. */
function nameOf(text: string): string {
  if (text.length !== 8) return text;
  const word = (at: number) => text.charCodeAt(at) * 0x10000 + text.charCodeAt(at + 1);
  return [0, 2, 4, 6].map((at) => word(at).toString(16)).join(":");
}

/** A clock that was set back ends the window instead of extending it. */
const isActive = ({ start }: Bucket, nowSeconds: number) =>
  nowSeconds + BEHIND_SECONDS >= start && nowSeconds < start + WINDOW_SECONDS;

/** See `createRateLimiter`. */
export type RateLimiter = ReturnType<typeof createRateLimiter>;

/**
 * Charges requests to the bucket of the key or address, and to that of the IPv6 /64.
 *
 * A window begins in the whole second of a client's first request, so that `resetSeconds` is exact.
 *
 * @param limits requests per window for an address and for an IPv6 /64; a prefix limit of 0 means none
 * @param nowMs Unix time in milliseconds
 */
export function createRateLimiter(
  { anonymous, prefix }: { readonly anonymous: number; readonly prefix: number },
  nowMs = Date.now,
) {
  const tables = {
    address: new BucketTable(),
    prefix: new BucketTable(),
    key: new BucketTable(),
  };
  const nowSeconds = () => Math.floor(nowMs() / 1000);
  /** The bucket of a subject, and that of its /64. */
  const bucketsOf = (subject: RateLimitSubject) => {
    const place = (kind: keyof typeof tables, key: BucketKey, limit: number) =>
      ({ kind, table: tables[kind], key, limit }) as const;
    if (subject.kind === "key") {
      return [place("key", keyOfHash(subject.sha256), subject.limit)] as const;
    }
    const { address } = subject;
    const own = place("address", keyOfAddress(address), anonymous);
    if (address?.version !== 6 || prefix === 0) return [own] as const;
    return [own, place("prefix", keyOfPrefix(address), prefix)] as const;
  };
  return {
    /**
     * Takes tokens from every bucket of the subject, or none if one of them has fewer.
     *
     * @param rule what a bucket has left
     */
    take(subject: RateLimitSubject, tokens: number, rule: Rule = counted): RateLimitState {
      const now = nowSeconds();
      const [own, wider] = bucketsOf(subject);
      // A /64 without tokens must not fill more slots of the address table.
      const isEnough = wider?.table.has(wider.key, wider.limit, tokens, now, rule) ?? true;
      const state = own.table.take(own.key, own.limit, isEnough ? tokens : 0, now, rule);
      if (wider === undefined) return state;
      const allowed = state.allowed && isEnough;
      const charged = wider.table.take(wider.key, wider.limit, allowed ? tokens : 0, now, rule);
      return { ...tighter(state, charged), allowed };
    },
    /** The buckets of a subject, to be counted over all instances. */
    open(subject: RateLimitSubject): readonly SharedBucket[] {
      return bucketsOf(subject).map(({ kind, table, key, limit }) => {
        const { name, bucket } = table.open(key, nowSeconds());
        return { name: `${kind}:${name}`, limit, bucket };
      });
    },
    /** All buckets whose window has not ended, with their names. */
    *active(): Generator<[name: string, bucket: Bucket]> {
      for (const [kind, table] of Object.entries(tables)) {
        for (const [name, bucket] of table.active(nowSeconds())) yield [`${kind}:${name}`, bucket];
      }
    },
  };
}

/** The first 32 bits of IPv6 and of hashes, 16 of IPv4. */
function wideNetwork(key: BucketKey): number {
  return key[0] === 0 ? key[3] >>> 16 : key[0];
}

/** The bucket that is empty first; of two alike, the one that stays empty longer. */
export function tighter(a: RateLimitState, b: RateLimitState): RateLimitState {
  return (b.remaining - a.remaining || a.resetSeconds - b.resetSeconds) < 0 ? b : a;
}

/** The state of a bucket with the tokens that it has left. */
function stateOf(
  allowed: boolean,
  limit: number,
  left: number,
  startSeconds: number,
  nowSeconds: number,
) {
  const resetSeconds = startSeconds + WINDOW_SECONDS;
  return {
    allowed,
    /** Requests per window. */
    limit,
    /** Tokens left at least; the limit of a key can be lowered during its window. */
    remaining: Math.max(0, left),
    /** The Unix second in which the window ends and the bucket is full again. */
    resetSeconds,
    /** Seconds until then, at least 1. */
    retryAfterSeconds: resetSeconds - nowSeconds,
  };
}

function keyOfPrefix({ word0, word1 }: Ipv6Address): BucketKey {
  return [word0, word1, 0, 0];
}

function keyOfAddress(address: IpAddress | null): BucketKey {
  if (address === null) return UNKNOWN_CLIENT;
  return address.version === 4
    ? [0, 0, MAPPED, address.word]
    : [address.word0, address.word1, address.word2, address.word3];
}

/** The first 128 bits of a SHA-256 in hex. */
function keyOfHash(sha256: string): BucketKey {
  const word = (index: number) => Number.parseInt(sha256.slice(index * 8, index * 8 + 8), 16);
  return [word(0), word(1), word(2), word(3)];
}
