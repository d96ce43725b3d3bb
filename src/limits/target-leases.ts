import { RETRY_MS } from "../icmp/prober.ts";
import { PROBES_PER_SECOND, type TargetShare } from "../icmp/target-limit.ts";
import { script } from "../valkey/connection.ts";
import type { Valkey } from "../valkey/valkey.ts";

/** Half of the probes to a /64 are divided among the instances; the other half are leased to who needs more. */
const LEASED = PROBES_PER_SECOND / 2;

/** Probes of a lease. */
const LEASE_PROBES = 50;

/** How long a lease can be used, in milliseconds. */
const LEASE_MS = 250;

/** Any second that can contain a probe of a lease ends before so many milliseconds have passed. */
const HELD_MS = LEASE_MS + 1000;

/** Grants a lease unless too many are held: the list has the times of the last ones in milliseconds, the oldest first. */
export const LEASE_SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = redis.call('LINDEX', KEYS[1], -tonumber(ARGV[1]))
if oldest and now - oldest <= tonumber(ARGV[2]) then return 0 end
redis.call('RPUSH', KEYS[1], now)
redis.call('LTRIM', KEYS[1], -ARGV[1], -1)
redis.call('PEXPIRE', KEYS[1], ARGV[2] + 1)
return 1
`;

const LEASE = script(LEASE_SCRIPT);

/** Bounds the probes of all instances to each /64; without the engine, each has no more than its part. */
export class TargetLeases implements TargetShare {
  readonly #valkey: Pick<Valkey, "ask" | "instances" | "names">;
  readonly #leases = new Map<string, { left: number; endMs: number; askAgainMs: number }>();

  constructor(valkey: Pick<Valkey, "ask" | "instances" | "names">) {
    this.#valkey = valkey;
  }

  /** The same while the engine is away, because it may be away for one instance only; never 0, at which probes would wait for ever. */
  perSecond(): number {
    const { instances } = this.#valkey;
    return instances === 1
      ? PROBES_PER_SECOND
      : Math.max(1, Math.floor((PROBES_PER_SECOND - LEASED) / instances));
  }

  lease(prefix: string, nowMs: number): boolean {
    const lease = this.#leases.get(prefix);
    if (lease !== undefined && lease.left > 0 && nowMs < lease.endMs) {
      lease.left -= 1;
      return true;
    }
    if (this.#valkey.instances > 1 && nowMs >= (lease?.askAgainMs ?? 0)) {
      void this.#ask(prefix, nowMs);
    }
    return false;
  }

  async #ask(prefix: string, nowMs: number): Promise<void> {
    for (const [other, { endMs }] of this.#leases) {
      if (endMs <= nowMs) this.#leases.delete(other);
    }
    const endMs = nowMs + LEASE_MS;
    const lease = { left: 0, endMs, askAgainMs: nowMs + RETRY_MS };
    this.#leases.set(prefix, lease);
    const key = this.#valkey.names.target(prefix);
    const isGranted = await this.#valkey.ask(LEASE, [key], [LEASED / LEASE_PROBES, HELD_MS]);
    if (isGranted === 1) lease.left = LEASE_PROBES;
  }
}
