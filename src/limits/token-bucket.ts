import { formatIp, type IpAddress } from "../addr/ip.ts";

/** Seconds from the first request in a bucket's window to the moment when the bucket is full again. */
export const WINDOW_SECONDS = 60;

/** Buckets of clients; with their names they take less than 20 MB. */
const MAX_BUCKETS = 65_536;

/** The parts of the table that the clients of an IPv6 /32 or IPv4 /16, and those of an IPv6 /48, can take. */
const NETWORK_PARTS = { wide: 1 / 8, site: 1 / 32 } as const;

/** The part of the table for buckets that new clients share while there is no room for them. */
const SHARED_PART = 1 / 64;

/** Seconds that the clock of this machine may be behind the one that a window was begun by. */
const BEHIND_SECONDS = 1;

/** The client whose buckets a request is charged to. */
export type RateLimitSubject =
  | { readonly kind: "address"; readonly address: IpAddress | null }
  | {
      readonly kind: "key";
      /** SHA-256 of the key in hex; its first 128 bits identify the bucket. */
      readonly sha256: string;
      readonly limit: number;
    };

/** Requests per window for an address, and for an IPv6 /64; a limit of 0 for the /64 means none. */
export interface Rates {
  readonly anonymous: number;
  readonly prefix: number;
}

/** A limit of a client: requests per window, and the name of the bucket that counts them. */
export interface Quota {
  readonly name: string;
  readonly limit: number;
  /** The networks that contain the client, the widest first; none for a key, because only the operator makes keys. */
  readonly networks: readonly string[];
}

/** The tokens that a client has used in its window. */
export interface Bucket {
  readonly name: string;
  readonly networks: readonly string[];
  used: number;
  /** The Unix second in which the window ends. */
  endSeconds: number;
  /** The next three only with Valkey: tokens that were granted without an answer, which it does not count yet. */
  uncounted: number;
  /** Tokens of requests that wait for an answer. */
  waiting: number;
  /** Tokens that other instances may have granted since the last answer. */
  unseen: number;
}

const UNUSED = { used: 0, uncounted: 0, waiting: 0, unseen: 0 };

/** A client's bucket after a request. */
export interface RateLimitState {
  readonly allowed: boolean;
  /** Requests per window. */
  readonly limit: number;
  /** Tokens left. */
  readonly remaining: number;
  /** The Unix second in which the window ends and the bucket is full again. */
  readonly resetSeconds: number;
  /** Seconds until then, at least 1. */
  readonly retryAfterSeconds: number;
}

/** The limits that a request of the client counts towards: that of its key, or those of its address and /64. */
export function quotasOf(subject: RateLimitSubject, rates: Rates): readonly Quota[] {
  if (subject.kind === "key") {
    const name = `key:${subject.sha256.slice(0, 32)}`;
    return [{ name, limit: subject.limit, networks: [] }];
  }
  const { address } = subject;
  // Clients of a unix socket that sends no address share one bucket.
  const name = `address:${address === null ? "unknown" : formatIp(address)}`;
  if (address?.version !== 6) {
    const networks = address === null ? [] : [`v4:${address.word >>> 16}`];
    return [{ name, limit: rates.anonymous, networks }];
  }
  const wide = address.word0.toString(16);
  const networks = [wide, `${wide}:${address.word1 >>> 16}`];
  const own = { name, limit: rates.anonymous, networks };
  const prefix = `prefix:${wide}:${address.word1.toString(16)}`;
  return rates.prefix === 0 ? [own] : [own, { name: prefix, limit: rates.prefix, networks }];
}

/**
 * Token buckets by name.
 *
 * A bucket is never removed during its window. If the table is full, or the client's network has taken its
 * part of the table, new clients share a bucket with others of their network. So a flood of addresses does
 * not grow the table, avoid the limit, or lock out other networks.
 */
export class BucketTable {
  readonly #size: number;
  /** In the order in which they were stored, which is about that in which their windows end. */
  readonly #buckets = new Map<string, Bucket>();
  /** Buckets of each network. */
  readonly #counts = new Map<string, number>();

  constructor(size = MAX_BUCKETS) {
    this.#size = size;
  }

  /** The bucket of a quota; if its window has not begun, a full one that is not stored yet. */
  find({ name, networks }: Quota, nowSeconds: number): Bucket {
    const own = this.#active(name, nowSeconds);
    if (own) return own;
    this.#removeEnded(nowSeconds);
    const fresh = { ...UNUSED, endSeconds: nowSeconds + WINDOW_SECONDS };
    if (this.#hasRoom(networks)) return { name, networks, ...fresh };
    const [kind] = name.split(":");
    const shared = Bun.hash.crc32(networks[0] ?? "") % Math.ceil(this.#size * SHARED_PART);
    const sharedName = `${kind}:shared:${shared}`;
    return this.#active(sharedName, nowSeconds) ?? { name: sharedName, networks: [], ...fresh };
  }

  /** Stores a bucket, so that it is found until its window ends. */
  store(bucket: Bucket): void {
    const { name, networks } = bucket;
    const before = this.#buckets.get(name);
    if (before === bucket) return;
    if (before) this.#remove(before);
    this.#buckets.set(name, bucket);
    for (const network of networks) this.#counts.set(network, this.#countOf(network) + 1);
  }

  #active(name: string, nowSeconds: number): Bucket | undefined {
    const bucket = this.#buckets.get(name);
    return bucket && isActive(bucket, nowSeconds) ? bucket : undefined;
  }

  #hasRoom(networks: readonly string[]): boolean {
    const [wide, site] = networks;
    if (wide === undefined) return true;
    const isBelow = (count: number, part: number) => count < Math.max(1, this.#size * part);
    return (
      isBelow(this.#buckets.size, 1 - 2 * SHARED_PART) &&
      isBelow(this.#countOf(wide), NETWORK_PARTS.wide) &&
      (site === undefined || isBelow(this.#countOf(site), NETWORK_PARTS.site))
    );
  }

  #countOf(network: string): number {
    return this.#counts.get(network) ?? 0;
  }

  #removeEnded(nowSeconds: number): void {
    for (const bucket of this.#buckets.values()) {
      if (isActive(bucket, nowSeconds)) return;
      this.#remove(bucket);
    }
  }

  #remove({ name, networks }: Bucket): void {
    this.#buckets.delete(name);
    for (const network of networks) {
      const left = this.#countOf(network) - 1;
      if (left > 0) this.#counts.set(network, left);
      else this.#counts.delete(network);
    }
  }
}

/** A clock that was set back ends the window instead of extending it. */
function isActive({ endSeconds }: Bucket, nowSeconds: number): boolean {
  return nowSeconds < endSeconds && nowSeconds + BEHIND_SECONDS >= endSeconds - WINDOW_SECONDS;
}

/** The state that the response's headers show: the bucket that is empty first; of two alike, the one that stays empty longer. */
export function stateOf(
  buckets: readonly {
    readonly limit: number;
    readonly left: number;
    readonly endSeconds: number;
  }[],
  allowed: boolean,
  nowSeconds: number,
): RateLimitState {
  const [first] = buckets.toSorted((a, b) => a.left - b.left || b.endSeconds - a.endSeconds);
  const { limit = 0, left = 0, endSeconds = nowSeconds } = first ?? {};
  return {
    allowed,
    limit,
    // The limit of a key can be lowered during its window.
    remaining: Math.max(0, left),
    resetSeconds: endSeconds,
    retryAfterSeconds: Math.max(1, endSeconds - nowSeconds),
  };
}

/**
 * Counts requests of clients in the memory of this instance.
 *
 * A window begins in the whole second of a client's first request, so that `resetSeconds` is exact.
 *
 * @param nowMs Unix time in milliseconds
 */
export function createRateLimiter(rates: Rates, nowMs = Date.now, size?: number) {
  const table = new BucketTable(size);
  return {
    /** Takes tokens from every bucket of the client, or none if one of them has fewer. Taking 0 starts no window. */
    take(subject: RateLimitSubject, price: number): RateLimitState {
      const nowSeconds = Math.floor(nowMs() / 1000);
      const opened = quotasOf(subject, rates).map((quota) => ({
        limit: quota.limit,
        bucket: table.find(quota, nowSeconds),
      }));
      const allowed = opened.every(
        ({ limit, bucket }) => limit - bucket.used >= Math.max(1, price),
      );
      if (allowed && price > 0) {
        for (const { bucket } of opened) {
          table.store(bucket);
          bucket.used += price;
        }
      }
      const states = opened.map(({ limit, bucket: { used, endSeconds } }) => ({
        ...{ limit, left: limit - used, endSeconds },
      }));
      return stateOf(states, allowed, nowSeconds);
    },
  };
}
