import { z } from "zod";
import { PROBES_PER_SECOND, RETRY_MS, type TargetShare } from "../icmp/prober/target-limit.ts";
import { script } from "./connection.ts";
import source from "./lease.lua" with { type: "text" };
import type { Valkey } from "./valkey.ts";

/** Half of the probes to a /64 are divided among the instances; the other half are leased to who needs more. */
const LEASED = PROBES_PER_SECOND / 2;

/** Probes of a lease. */
const LEASE_PROBES = 50;

/** How long a lease can be used, in milliseconds. */
const LEASE_MS = 250;

/** Any second that can contain a probe of a lease is over after this time, in milliseconds. */
const HELD_MS = LEASE_MS + 1000;

const LEASE = script(source, () => z.literal([0, 1]));

/** Bounds the probes of all instances to each /64; without Valkey, each has no more than its part. */
export function createTargetLeases(
  valkey: Pick<Valkey, "ask" | "instances" | "names">,
): TargetShare {
  const leases = new Map<string, { left: number; endMs: number; askAgainMs: number }>();
  const ask = async (prefix: string, nowMs: number) => {
    for (const [other, { endMs }] of leases) if (endMs <= nowMs) leases.delete(other);
    const lease = { left: 0, endMs: nowMs + LEASE_MS, askAgainMs: nowMs + RETRY_MS };
    leases.set(prefix, lease);
    const key = valkey.names.target(prefix);
    const isGranted = await valkey.ask(LEASE, [key], [LEASED / LEASE_PROBES, HELD_MS]);
    if (isGranted === 1) lease.left = LEASE_PROBES;
  };
  return {
    /** The same while Valkey is away, because it may be away for one instance only; never 0, at which probes would wait for ever. */
    perSecond() {
      const { instances } = valkey;
      return instances === 1
        ? PROBES_PER_SECOND
        : Math.max(1, Math.floor((PROBES_PER_SECOND - LEASED) / instances));
    },
    lease(prefix, nowMs) {
      const lease = leases.get(prefix);
      if (lease !== undefined && lease.left > 0 && nowMs < lease.endMs) {
        lease.left -= 1;
        return true;
      }
      if (valkey.instances > 1 && nowMs >= (lease?.askAgainMs ?? 0)) void ask(prefix, nowMs);
      return false;
    },
  };
}
