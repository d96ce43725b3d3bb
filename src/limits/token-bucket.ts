import type { IpAddress } from "../addr/ip.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";

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

/** A bucket that is about to be counted over all instances. */
export interface OpenBucket {
  /** The same for the same clients at every instance, and no other's. */
  readonly name: string;
  readonly limit: number;
  /** Tokens used as far as this instance knows. */
  readonly used: number;
  /** The Unix second when the window began. */
  readonly startSeconds: number;
  /** Takes over what all instances have used. */
  learn(used: number, startSeconds: number, granted: number, nowSeconds: number): RateLimitState;
}

/** An address, a prefix, or the start of a hash: 128 bits as four unsigned words. */
type BucketKey = readonly [number, number, number, number];

/** Buckets per table. A table takes 3.7 MB; it fills up at two thousand new clients per second. */
const SLOTS = 131_072;

/** Buckets that newcomers share by network while the table, or the network's part of it, is full. */
const SHARED_SLOTS = 1_024;

/** The parts of the table that new clients of an IPv6 /32 (IPv4 /16) and of an IPv6 /48 can take within a window. */
const NETWORK_PARTS = { wide: 1 / 8, site: 1 / 32 } as const;

/** Counters of the slots that networks have taken; networks with the same hash share one. */
const NETWORK_COUNTERS = 16_384;

/** Slots searched for a key, so that a lookup takes constant time under any flood. */
const MAX_SEARCHED_SLOTS = 16;

/**
 * A slot is the four words of its key, the tokens used as far as known, the Unix second when its window
 * began (0: never), and the tokens that this instance let its client use.
 */
const SLOT_WORDS = 7;
const USED = 4;
const START = 5;
const OWN = 6;

/** Clients of a unix socket that sends no address share one bucket, under an address that no client has. */
const UNKNOWN_CLIENT: BucketKey = [0, 0, 0, 0];

/** Marks IPv4 keys as IPv4-mapped addresses, RFC 4291 section 2.5.5.2. */
const MAPPED = 0xffff;

/**
 * Token buckets in a hash table of fixed size.
 *
 * A bucket is never evicted during its window. A newcomer that finds all of its slots in use, or whose
 * network has taken its part of the table, shares a bucket with other newcomers of its network. So a
 * flood of addresses does not grow the table, avoid the limit, or lock out other networks.
 */
export class BucketTable {
  readonly #slots: number;
  /** Secret, so that an attacker cannot choose which slots to fill. */
  readonly #seed: number;
  #words = new Uint32Array();
  /** Slots taken by each network since `#countedFrom`, a Unix second. */
  readonly #taken = new Uint32Array(NETWORK_COUNTERS);
  #countedFrom = 0;

  /** @param slots a power of two */
  constructor(slots = SLOTS, seed = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) {
    this.#slots = slots;
    this.#seed = seed;
  }

  /**
   * Takes tokens from the key's bucket, or none if it has fewer. Taking 0 does not start a window.
   *
   * @param instances among which the limit is divided, because they do not count together
   */
  take(key: BucketKey, limit: number, tokens: number, nowSeconds: number, instances = 1) {
    const share = instances === 1 ? limit : Math.max(1, Math.floor(limit / instances));
    // A request that can never be granted starts no window.
    const isTaken = tokens > 0 && tokens <= share;
    const at = isTaken ? this.#open(key, nowSeconds) : this.#find(key, nowSeconds);
    const words = this.#words;
    const [used, startSeconds, own] = this.#isActive(at, nowSeconds)
      ? (words.subarray(at + USED) as unknown as [number, number, number])
      : [0, nowSeconds, 0];
    const left = Math.min(limit - used, share - own);
    const allowed = left >= Math.max(1, tokens);
    if (allowed && tokens > 0) {
      words[at + USED] = used + tokens;
      words[at + OWN] = own + tokens;
    }
    return stateOf(allowed, share, allowed ? left - tokens : left, startSeconds, nowSeconds);
  }

  /** The key's bucket for the count of all instances; its window starts if there is none. */
  open(key: BucketKey, nowSeconds: number): Pick<OpenBucket, "name" | "used" | "startSeconds"> {
    const at = this.#open(key, nowSeconds);
    // Newcomers that share a bucket here share one there, so a flood fills Valkey no more than the table.
    const isShared = at >= this.#slots * SLOT_WORDS;
    return {
      name: isShared
        ? `network:${wideNetwork(key)}`
        : key.map((word) => word.toString(16)).join(":"),
      used: this.#words[at + USED] as number,
      startSeconds: this.#words[at + START] as number,
    };
  }

  /** Takes over what all instances have used, with the tokens that were granted here. */
  learn(
    key: BucketKey,
    limit: number,
    used: number,
    startSeconds: number,
    granted: number,
    nowSeconds: number,
  ): RateLimitState {
    const at = this.#open(key, nowSeconds);
    const words = this.#words;
    const own = words[at + START] === startSeconds ? (words[at + OWN] as number) : 0;
    words[at + USED] = used;
    words[at + START] = startSeconds;
    words[at + OWN] = own + granted;
    return stateOf(granted > 0, limit, limit - used, startSeconds, nowSeconds);
  }

  /** Where the key's bucket is, after its window has started if there was none. */
  #open(key: BucketKey, nowSeconds: number): number {
    let at = this.#find(key, nowSeconds);
    if (this.#isActive(at, nowSeconds)) return at;
    if (!this.#countNewcomer(key, nowSeconds)) {
      at = this.#sharedSlot(key);
      if (this.#isActive(at, nowSeconds)) return at;
    }
    const words = this.#words;
    words.set(key, at);
    words[at + USED] = 0;
    words[at + OWN] = 0;
    words[at + START] = nowSeconds;
    return at;
  }

  /** Where the key's bucket is; else a free slot; else the slot that its network shares. */
  #find(key: BucketKey, nowSeconds: number): number {
    // Allocated on first use: it costs milliseconds that the start must not pay.
    if (this.#words.length === 0) {
      this.#words = new Uint32Array((this.#slots + SHARED_SLOTS) * SLOT_WORDS);
    }
    const hash = key.reduce(mix, this.#seed);
    let free = -1;
    for (let step = 0; step < MAX_SEARCHED_SLOTS; step++) {
      const at = ((hash + step) & (this.#slots - 1)) * SLOT_WORDS;
      if (this.#isActive(at, nowSeconds)) {
        if (key.every((word, index) => this.#words[at + index] === word)) return at;
      } else if (free < 0) free = at;
      // No key is stored behind a slot that was never used.
      if (this.#words[at + START] === 0) break;
    }
    return free >= 0 ? free : this.#sharedSlot(key);
  }

  #sharedSlot(key: BucketKey): number {
    const index = mix(this.#seed, wideNetwork(key)) & (SHARED_SLOTS - 1);
    return (this.#slots + index) * SLOT_WORDS;
  }

  /** Counts a bucket that a network takes; false if the network has taken its part of the table already. */
  #countNewcomer(key: BucketKey, nowSeconds: number): boolean {
    if (nowSeconds < this.#countedFrom || nowSeconds >= this.#countedFrom + WINDOW_SECONDS) {
      this.#countedFrom = nowSeconds;
      this.#taken.fill(0);
    }
    const hash = mix(this.#seed, wideNetwork(key));
    const wide = hash & (NETWORK_COUNTERS - 1);
    const site = mix(hash, key[1] >>> 16) & (NETWORK_COUNTERS - 1);
    const has = (at: number, part: number) =>
      (this.#taken[at] as number) < Math.max(1, this.#slots * part);
    if (!has(wide, NETWORK_PARTS.wide) || !has(site, NETWORK_PARTS.site)) return false;
    (this.#taken[wide] as number) += 1;
    if (site !== wide) (this.#taken[site] as number) += 1;
    return true;
  }

  /** A clock that was set back ends the window instead of extending it. */
  #isActive(at: number, nowSeconds: number): boolean {
    const start = this.#words[at + START] as number;
    return nowSeconds >= start && nowSeconds < start + WINDOW_SECONDS;
  }
}

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
  const addresses = new BucketTable();
  const prefixes = new BucketTable();
  const keys = new BucketTable();
  return {
    /**
     * Takes tokens from every bucket of the subject, or none if one of them has fewer.
     *
     * @param instances among which the limits are divided, because they do not count together
     */
    take(subject: RateLimitSubject, tokens: number, instances = 1): RateLimitState {
      const now = Math.floor(nowMs() / 1000);
      if (subject.kind === "key") {
        return keys.take(keyOfHash(subject.sha256), subject.limit, tokens, now, instances);
      }
      const { address } = subject;
      const key = keyOfAddress(address);
      if (address?.version !== 6 || prefix === 0) {
        return addresses.take(key, anonymous, tokens, now, instances);
      }
      const prefixKey = keyOfPrefix(address);
      const wider = prefixes.take(prefixKey, prefix, 0, now, instances);
      const isEnough = wider.remaining >= Math.max(1, tokens);
      // A /64 without tokens must not fill more slots of the address table.
      const own = addresses.take(key, anonymous, isEnough ? tokens : 0, now, instances);
      const allowed = own.allowed && isEnough;
      const charged = allowed ? prefixes.take(prefixKey, prefix, tokens, now, instances) : wider;
      return { ...tighter(own, charged), allowed };
    },
    /** The buckets of a subject as this instance knows them, for the count of all instances. */
    open(subject: RateLimitSubject): readonly OpenBucket[] {
      const now = Math.floor(nowMs() / 1000);
      const open = (kind: string, table: BucketTable, key: BucketKey, limit: number) => {
        const { name, used, startSeconds } = table.open(key, now);
        const learn: OpenBucket["learn"] = (...count) => table.learn(key, limit, ...count);
        return { name: `${kind}:${name}`, limit, used, startSeconds, learn };
      };
      if (subject.kind === "key") {
        return [open("key", keys, keyOfHash(subject.sha256), subject.limit)];
      }
      const { address } = subject;
      const own = open("address", addresses, keyOfAddress(address), anonymous);
      if (address?.version !== 6 || prefix === 0) return [own];
      return [own, open("prefix", prefixes, keyOfPrefix(address), prefix)];
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
    /** Tokens left; the limit of a key can be lowered during its window. */
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

/** One step of MurmurHash3 and its finalizer, which spreads each bit over the whole word. */
function mix(state: number, word: number): number {
  let hash = Math.imul(word, 0xcc9e2d51);
  hash = state ^ Math.imul((hash << 15) | (hash >>> 17), 0x1b873593);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
