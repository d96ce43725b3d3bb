import type { IpAddress } from "../addr/ip.ts";
import { type Bucket, counted, type Rule } from "./lease.ts";

/** Seconds from the first request in a bucket's window to the moment when the bucket is full again. */
export const WINDOW_SECONDS = 60;

/** A client's bucket after a request. */
export type RateLimitState = ReturnType<BucketTable["take"]>;

/** The client whose buckets a request is charged to. */
export type RateLimitSubject =
  | { readonly kind: "address"; readonly address: IpAddress | null }
  | {
      readonly kind: "key";
      /** SHA-256 of the key in hex; its first 128 bits identify the bucket. */
      readonly sha256: string;
      readonly limit: number;
    };

/** The counts of a bucket that are others from now on. */
type Edit = (bucket: Bucket) => Partial<Bucket>;

/** An address, a prefix, or the start of a hash: 128 bits as four unsigned words. */
type BucketKey = readonly [number, number, number, number];

/** Buckets per table. A table takes 6.3 MB; it fills up at two thousand new clients per second. */
const SLOTS = 131_072;

/** Buckets that newcomers share by network while the table, or the network's part of it, is full. */
const SHARED_SLOTS = 1_024;

/** The parts of the table that new clients of an IPv6 /32 (IPv4 /16) and of an IPv6 /48 can take within a window. */
const NETWORK_PARTS = { wide: 1 / 8, site: 1 / 32 } as const;

/** Counters of the slots that networks have taken; networks with the same hash share one. */
const NETWORK_COUNTERS = 16_384;

/** Slots searched for a key, so that a lookup takes constant time under any flood. */
const MAX_SEARCHED_SLOTS = 16;

/** A slot is the four words of its key, and those of a `Bucket`; a start of 0 means that it was never used. */
const SLOT_WORDS = 12;
const START = 4;

/** Seconds that the clock of this machine may be behind the one that a window was begun by. */
const BEHIND_SECONDS = 1;

/** Clients of a unix socket that sends no address share one bucket, under an address that no client has. */
const UNKNOWN_CLIENT: BucketKey = [0, 0, 0, 0];

const UNUSED = { used: 0, held: 0, others: 0, answered: 0, asked: 0, waiting: 0 };

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

  /** Takes tokens from the key's bucket, or none if it has fewer. Taking 0 does not start a window. */
  take(key: BucketKey, limit: number, tokens: number, nowSeconds: number, rule: Rule = counted) {
    // A request that can never be granted starts no window.
    const isTaken = tokens > 0 && tokens <= limit;
    const at = isTaken ? this.#open(key, nowSeconds) : this.#find(key, nowSeconds);
    const bucket = this.#read(at, nowSeconds);
    const allowed = rule(bucket, limit).left >= Math.max(1, tokens);
    if (allowed && isTaken) {
      bucket.used += tokens;
      this.#write(at, bucket);
    }
    const resetSeconds = bucket.start + WINDOW_SECONDS;
    return {
      allowed,
      /** Requests per window. */
      limit,
      /** Tokens left at least; the limit of a key can be lowered during its window. */
      remaining: Math.max(0, rule(bucket, limit).promised),
      /** The Unix second in which the window ends and the bucket is full again. */
      resetSeconds,
      /** Seconds until then, at least 1. */
      retryAfterSeconds: resetSeconds - nowSeconds,
    };
  }

  /** True if the key's bucket has as many tokens. */
  has(key: BucketKey, limit: number, tokens: number, nowSeconds: number, rule: Rule): boolean {
    const bucket = this.#read(this.#find(key, nowSeconds), nowSeconds);
    return rule(bucket, limit).left >= Math.max(1, tokens);
  }

  /** Changes the key's bucket, after its window has started if there was none. */
  change(key: BucketKey, nowSeconds: number, edit: Edit): Bucket {
    const at = this.#open(key, nowSeconds);
    const bucket = this.#read(at, nowSeconds);
    const changed = { ...bucket, ...edit(bucket) };
    this.#write(at, changed);
    return changed;
  }

  /** The name of the key's bucket for all instances. */
  nameOf(key: BucketKey, nowSeconds: number): string {
    return this.#nameAt(this.#open(key, nowSeconds));
  }

  /** The buckets whose window has not ended, with their names. */
  *active(nowSeconds: number): Generator<[name: string, bucket: Bucket]> {
    for (let at = 0; at < this.#words.length; at += SLOT_WORDS) {
      if (this.#isActive(at, nowSeconds)) yield [this.#nameAt(at), this.#read(at, nowSeconds)];
    }
  }

  #nameAt(at: number): string {
    const key = [...this.#words.subarray(at, at + START)] as unknown as BucketKey;
    // Newcomers that share a bucket here share one there, so a flood fills Valkey no more than the table.
    return at >= this.#slots * SLOT_WORDS
      ? `network:${wideNetwork(key)}`
      : key.map((word) => word.toString(16)).join(":");
  }

  /** The bucket of a slot; an unused one if its window has ended. */
  #read(at: number, nowSeconds: number): Bucket {
    if (!this.#isActive(at, nowSeconds))
      return { ...UNUSED, start: nowSeconds, opened: nowSeconds };
    const word = (index: number) => this.#words[at + START + index] as number;
    const [start, opened, used, held] = [word(0), word(1), word(2), word(3)];
    const [others, answered, asked, waiting] = [word(4), word(5), word(6), word(7)];
    return { start, opened, used, held, others, answered, asked, waiting };
  }

  #write(at: number, bucket: Bucket): void {
    const { start, opened, used, held, others, answered, asked, waiting } = bucket;
    this.#words.set([start, opened, used, held, others, answered, asked, waiting], at + START);
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
    words.fill(0, at + START, at + SLOT_WORDS);
    words.fill(nowSeconds, at + START, at + START + 2);
    return at;
  }

  /** Where the key's bucket is; else a free slot; else the slot that its network shares. */
  #find(key: BucketKey, nowSeconds: number): number {
    // Allocated on first use: it costs milliseconds that the start must not pay.
    if (this.#words.length === 0) {
      this.#words = new Uint32Array((this.#slots + SHARED_SLOTS) * SLOT_WORDS);
    }
    const words = this.#words;
    const [word0, word1, word2, word3] = key;
    const hash = mix(mix(mix(mix(this.#seed, word0), word1), word2), word3);
    let free = -1;
    for (let step = 0; step < MAX_SEARCHED_SLOTS; step++) {
      const at = ((hash + step) & (this.#slots - 1)) * SLOT_WORDS;
      if (this.#isActive(at, nowSeconds)) {
        const isSame = words[at] === word0 && words[at + 1] === word1;
        if (isSame && words[at + 2] === word2 && words[at + 3] === word3) return at;
      } else if (free < 0) free = at;
      // No key is stored behind a slot that was never used.
      if (words[at + START] === 0) break;
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
    return nowSeconds + BEHIND_SECONDS >= start && nowSeconds < start + WINDOW_SECONDS;
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
    return [own, place("prefix", [address.word0, address.word1, 0, 0], prefix)] as const;
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
    open(subject: RateLimitSubject) {
      return bucketsOf(subject).map(({ kind, table, key, limit }) => ({
        /** The same for the same clients at every instance, and no other's. */
        name: `${kind}:${table.nameOf(key, nowSeconds())}`,
        limit,
        /** Changes it, after its window has started if there was none; returns what it is then. */
        change: (edit: Edit) => table.change(key, nowSeconds(), edit),
      }));
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
