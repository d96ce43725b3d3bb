import { formatIp, type IpAddress } from "../addr/ip.ts";

/** Seconds from the first request in a bucket's window to the moment when the bucket is full again. */
export const WINDOW_SECONDS = 60;

/** Buckets of clients; with their names they take less than 20 MB. */
const MAX_BUCKETS = 65_536;

/** The parts of the table that the clients of an IPv6 /32 or IPv4 /16, and those of an IPv6 /48, can take. */
const NETWORK_PARTS: readonly number[] = [1 / 8, 1 / 32];

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
interface Quota {
  readonly name: string;
  readonly limit: number;
  /** The networks that contain the client, the widest first; none for a key, because only the operator makes keys. */
  readonly networks: readonly string[];
}

/** The tokens that a client has used in its window. */
export interface Bucket {
  readonly name: string;
  readonly networks: readonly string[];
  /** Tokens that this instance granted, without those that Valkey has counted. */
  granted: number;
  /** Tokens that Valkey had counted at its last answer; 0 for an instance that is alone. */
  counted: number;
  /** The Unix second in which the window ends. */
  endSeconds: number;
}

/** A bucket, and the limit of the client that uses it. */
export interface LimitedBucket {
  readonly limit: number;
  readonly bucket: Bucket;
}

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
function quotasOf(subject: RateLimitSubject, rates: Rates): readonly Quota[] {
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
 * Counts requests of clients in the memory of this instance, each client in the buckets of its limits.
 *
 * A window begins in the whole second of a client's first request, so that `resetSeconds` is exact.
 *
 * A bucket is never removed during its window. If the table is full, or the client's network has taken its
 * part of the table, new clients share a bucket with others of their network. So a flood of addresses does
 * not grow the table, avoid the limit, or lock out other networks.
 */
export class RateLimiter {
  readonly #rates: Rates;
  readonly #nowMs: () => number;
  readonly #size: number;
  /** In the order in which they were stored, which is about that in which their windows end. */
  readonly #buckets = new Map<string, Bucket>();
  /** Buckets of each network. */
  readonly #counts = new Map<string, number>();

  /** @param nowMs Unix time in milliseconds */
  constructor(rates: Rates, nowMs = Date.now, size = MAX_BUCKETS) {
    this.#rates = rates;
    this.#nowMs = nowMs;
    this.#size = size;
  }

  /**
   * Takes tokens from every bucket of the client, or none if one of them has fewer. Taking 0 starts no window.
   *
   * @param instances among how many the tokens that Valkey has not counted are divided
   */
  take(subject: RateLimitSubject, price: number, instances = 1): RateLimitState {
    const limited = this.find(subject);
    const allowed = limited.every((each) => tokensLeft(each, instances) >= Math.max(1, price));
    for (const { bucket } of allowed && price > 0 ? limited : []) {
      this.store(bucket);
      bucket.granted += price;
    }
    return this.stateOf(limited, allowed, instances);
  }

  /** The buckets that the client's requests are charged to; those whose window has not begun are not stored yet. */
  find(subject: RateLimitSubject): readonly LimitedBucket[] {
    const nowSeconds = this.#nowSeconds();
    for (const bucket of this.#buckets.values()) {
      if (isActive(bucket, nowSeconds)) break;
      this.#remove(bucket);
    }
    return quotasOf(subject, this.#rates).map((quota) => {
      const { name, networks } = this.#ownOrShared(quota);
      const stored = this.#buckets.get(name);
      const endSeconds = nowSeconds + WINDOW_SECONDS;
      const fresh = { name, networks, granted: 0, counted: 0, endSeconds };
      const bucket = stored && isActive(stored, nowSeconds) ? stored : fresh;
      return { limit: quota.limit, bucket };
    });
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

  /** The state that the response's headers show: the bucket that is empty first; of two alike, the one that stays empty longer. */
  stateOf(limited: readonly LimitedBucket[], allowed: boolean, instances = 1): RateLimitState {
    const nowSeconds = this.#nowSeconds();
    const states = limited.map((each) => ({
      limit: each.limit,
      left: tokensLeft(each, instances),
      endSeconds: each.bucket.endSeconds,
    }));
    const [first] = states.sort((a, b) => a.left - b.left || b.endSeconds - a.endSeconds);
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

  #nowSeconds(): number {
    return Math.floor(this.#nowMs() / 1000);
  }

  #ownOrShared({ name, networks }: Quota): Pick<Quota, "name" | "networks"> {
    if (this.#buckets.has(name) || this.#hasRoom(networks)) return { name, networks };
    const [kind] = name.split(":");
    const shared = Bun.hash.crc32(networks[0] ?? "") % Math.ceil(this.#size * SHARED_PART);
    return { name: `${kind}:shared:${shared}`, networks: [] };
  }

  #hasRoom(networks: readonly string[]): boolean {
    if (networks.length === 0) return true;
    const isBelow = (count: number, part = 1) => count < Math.max(1, this.#size * part);
    return (
      isBelow(this.#buckets.size, 1 - 2 * SHARED_PART) &&
      networks.every((network, at) => isBelow(this.#countOf(network), NETWORK_PARTS[at]))
    );
  }

  #countOf(network: string): number {
    return this.#counts.get(network) ?? 0;
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

/** The tokens that one of so many instances may still grant; of a whole limit at least one. */
export function tokensLeft({ limit, bucket }: LimitedBucket, instances: number): number {
  const { counted, granted } = bucket;
  const share = Math.floor((limit - counted) / instances);
  return Math.max(share, counted === 0 ? 1 : 0) - granted;
}
