import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import type { Config } from "../config/settings.ts";
import { QUERY_TIMEOUT_MS } from "../dns/client.ts";
import type { RequestInfo } from "../http/endpoint.ts";
import { ApiError, clientGone, type ErrorCode } from "../http/errors.ts";
import { pathParameter } from "../http/parameters.ts";
import type { IcmpEngine, NoIcmp } from "../icmp/engine.ts";
import type { NoResult } from "../icmp/ping.ts";
import { NEIGHBOUR_MS } from "../icmp/target-limit.ts";
import { MAX_WAIT_MS, type ProbeSlots } from "../limits/probe-slots.ts";
import { type Destination, parseTarget, resolveTarget, type TargetDependencies } from "./target.ts";

/** Most runs end within seconds. */
const RETRY_AFTER_SECONDS = 2;

/** What pings and traces need. */
export interface ProbeDependencies extends TargetDependencies {
  readonly config: TargetDependencies["config"] & Pick<Config, "pingIntervalMs" | "probeTimeoutMs">;
  /** The engine, or the reason why there is no raw socket. */
  readonly icmp: IcmpEngine | NoIcmp;
  readonly probeSlots: ProbeSlots;
}

/** The parameter of pings and traces. */
export const targetParameter = pathParameter({
  description:
    "An IPv6 address, or a name that is resolved once and then probed at that address only. A link-local address needs its zone: `fe80::1%25eth0`.",
  example: "www.example.com",
});

/** Errors of pings and traces. */
export const PROBE_ERRORS: readonly ErrorCode[] = [
  "INVALID_ADDRESS",
  "INVALID_HOSTNAME",
  "TARGET_NOT_ALLOWED",
  "HOSTNAME_NOT_FOUND",
  "NO_IPV6_ADDRESS",
  "TOO_MANY_PROBES",
  "RESOLVER_TIMEOUT",
  "RESOLVER_FAILURE",
  "ICMP_UNAVAILABLE",
  "NETWORK_UNREACHABLE",
];

/** Milliseconds that a run may wait for a slot, for the resolver, and for other probes to the same /64. */
const LONGEST_WAIT_MS = MAX_WAIT_MS + QUERY_TIMEOUT_MS + 2 * NEIGHBOUR_MS;

const byte = () => z.int().min(0).max(255);

/** The schema of an ICMPv6 error's type. */
export const icmpType = () => byte().describe("The ICMPv6 type, RFC 4443.");

/** The schema of an ICMPv6 error's code. */
export const icmpCode = () => byte().describe("The ICMPv6 code, RFC 4443.");

/**
 * Runs a ping or a trace to a target, in a probe slot and after the policy check.
 *
 * @param longestMs the longest time of the run itself, for which the connection stays open
 * @throws ApiError TOO_MANY_PROBES, ICMP_UNAVAILABLE, and those of `parseTarget` and `resolveTarget`
 */
export async function probeTarget<T>(
  target: string,
  { request: { signal }, key, allowSeconds }: RequestInfo,
  dependencies: ProbeDependencies,
  longestMs: number,
  run: (engine: IcmpEngine, destination: Destination, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { icmp, probeSlots } = dependencies;
  const parsed = parseTarget(target);
  if ("unavailable" in icmp) throw new ApiError("ICMP_UNAVAILABLE", { reason: icmp.unavailable });
  allowSeconds((LONGEST_WAIT_MS + longestMs) / 1000);
  const result = await probeSlots.hold(key?.sha256 ?? "", signal, async () => {
    const destination = await resolveTarget(parsed, dependencies, signal);
    return await run(icmp, destination, signal);
  });
  if (result !== null) return result;
  if (signal.aborted) throw clientGone();
  throw new ApiError("TOO_MANY_PROBES", {
    limit: probeSlots.limit,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

/**
 * Passes through the result of a run.
 *
 * @throws ApiError NETWORK_UNREACHABLE if this machine could not send a single packet
 */
export function requireDone<T extends { readonly kind: "done" }>(
  outcome: T | NoResult,
  target: string,
  address: Ipv6Address,
): T {
  switch (outcome.kind) {
    case "done":
      return outcome;
    case "unreachable":
      throw new ApiError("NETWORK_UNREACHABLE", { target, ip: formatIpv6(address) }, outcome.code);
    case "aborted":
      throw clientGone();
  }
}

/** A round-trip time or a percentage, rounded to a number of decimals. */
export function round(value: number, decimals: number): number {
  const factor = 10 ** decimals;
  return Math.round(value * factor) / factor;
}
