/** A bucket's window: the time after its first token was taken, at whose end it is full again. */
export const WINDOW_SECONDS = 60;

/** A key of 128 bits, as four unsigned words: an address, a prefix, or the start of a hash. */
export type BucketKey = readonly [number, number, number, number];

/**
 * Buckets in a table. At 26 bytes each it takes 3.4 MB, and it is full when two thousand new clients a
 * second come for a minute.
 */
const SLOTS = 131_072;

/** Buckets that newcomers share, by the network they come from, where the table is full. */
const SHARED_BUCKETS = 1_024;

/** How many slots are looked at for one key; a constant time, whatever anybody does. */
const MAX_PROBES = 16;

/** The slot that was never used, so that no key lies behind it. */
const NEVER = 0;

/**
 * Token buckets by key, in memory of a fixed size.
 *
 * A bucket whose window lasts is never thrown out for a newcomer: where all slots of a newcomer are
 * taken, it shares a bucket with others of its network, so that many addresses neither make the
 * table grow nor get round the limit.
 */
export class BucketTable {
  readonly #slots: number;
  #keys = new Uint32Array();
  /** A part of each key's hash: keys lie far from each other, and few have to be looked at. */
  #tags = new Uint16Array();
  #used = new Uint32Array();
  /** The Unix second in which each window began; empty until the first one begins. */
  #start = new Uint32Array();
  /** Unknown to attackers, so that they cannot choose whose slots they fill. */
  readonly #seed: number;

  /** @param slots a power of two */
  constructor(slots = SLOTS, seed = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) {
    this.#slots = slots;
    this.#seed = seed;
  }

  /** The key's bucket, its window begun anew where none lasts. */
  begin(key: BucketKey, network: number, nowSeconds: number): number {
    if (this.#start.length === 0) this.#allocate();
    let free = -1;
    const hash = this.#hash(key);
    const tag = hash >>> 16;
    for (let probe = 0; probe < MAX_PROBES; probe++) {
      const slot = (hash + probe) & (this.#slots - 1);
      const lasts = this.#lasts(slot, nowSeconds);
      if (lasts && this.#tags[slot] === tag && this.#isAt(slot, key)) return slot;
      if (!lasts && free < 0) free = slot;
      if (this.#start[slot] === NEVER) break;
    }
    if (free >= 0) {
      this.#keys.set(key, free * 4);
      this.#tags[free] = tag;
      return this.#restart(free, nowSeconds);
    }
    const shared = this.#sharedBucket(network);
    return this.#lasts(shared, nowSeconds) ? shared : this.#restart(shared, nowSeconds);
  }

  /** The key's bucket if its window lasts, else -1. */
  find(key: BucketKey, network: number, nowSeconds: number): number {
    if (this.#start.length === 0) return -1;
    const hash = this.#hash(key);
    const tag = hash >>> 16;
    let isFull = true;
    for (let probe = 0; probe < MAX_PROBES; probe++) {
      const slot = (hash + probe) & (this.#slots - 1);
      if (!this.#lasts(slot, nowSeconds)) isFull = false;
      else if (this.#tags[slot] === tag && this.#isAt(slot, key)) return slot;
      if (this.#start[slot] === NEVER) break;
    }
    if (!isFull) return -1;
    const shared = this.#sharedBucket(network);
    return this.#lasts(shared, nowSeconds) ? shared : -1;
  }

  /** Tokens taken from a bucket in its window. */
  used(bucket: number): number {
    return this.#used[bucket] as number;
  }

  /** The Unix second in which a bucket's window ends. */
  endSeconds(bucket: number): number {
    return (this.#start[bucket] as number) + WINDOW_SECONDS;
  }

  takeToken(bucket: number): void {
    this.#used[bucket] = this.used(bucket) + 1;
  }

  /** Not before it is needed: a start shall not wait for it, and many a service needs not every table. */
  #allocate(): void {
    this.#keys = new Uint32Array(this.#slots * 4);
    this.#tags = new Uint16Array(this.#slots);
    this.#used = new Uint32Array(this.#slots + SHARED_BUCKETS);
    this.#start = new Uint32Array(this.#slots + SHARED_BUCKETS);
  }

  #restart(bucket: number, nowSeconds: number): number {
    this.#used[bucket] = 0;
    this.#start[bucket] = nowSeconds;
    return bucket;
  }

  /** A clock that was set back ends the window too, instead of stretching it. */
  #lasts(bucket: number, nowSeconds: number): boolean {
    const start = this.#start[bucket] as number;
    return nowSeconds >= start && nowSeconds < start + WINDOW_SECONDS;
  }

  #isAt(slot: number, [word0, word1, word2, word3]: BucketKey): boolean {
    const at = slot * 4;
    const keys = this.#keys;
    return (
      keys[at + 3] === word3 &&
      keys[at + 2] === word2 &&
      keys[at + 1] === word1 &&
      keys[at] === word0
    );
  }

  #hash([word0, word1, word2, word3]: BucketKey): number {
    return mix(mix(mix(mix(this.#seed, word0), word1), word2), word3);
  }

  #sharedBucket(network: number): number {
    return this.#slots + (mix(this.#seed, network) & (SHARED_BUCKETS - 1));
  }
}

/** One step of MurmurHash3 with its finish, which spreads each bit over the whole word. */
function mix(state: number, word: number): number {
  let hash = Math.imul(word, 0xcc9e2d51);
  hash = state ^ Math.imul((hash << 15) | (hash >>> 17), 0x1b873593);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
