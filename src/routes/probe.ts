import type { Context } from "hono";
import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import type { Config } from "../config/settings.ts";
import { QUERY_TIMEOUT_MS } from "../dns/client.ts";
import type { AppEnv } from "../http/context.ts";
import type { ErrorCode } from "../http/error-table.ts";
import { ApiError, clientGone } from "../http/errors.ts";
import { pathParameter } from "../http/parameters.ts";
import type { IcmpEngine, NoIcmp } from "../icmp/engine.ts";
import { LIMITS } from "../icmp/limits.ts";
import { NO_ROOM, type NoResult } from "../icmp/run.ts";
import { MAX_WAIT_MS, type ProbeSlots } from "../limits/probe-slots.ts";
import { type Destination, parseTarget, resolveTarget, type TargetDependencies } from "./target.ts";

/** What pings and traces need. */
export interface ProbeDependencies extends TargetDependencies {
  readonly config: TargetDependencies["config"] & Pick<Config, "pingIntervalMs" | "probeTimeoutMs">;
  /** The engine, or the reason why there is no raw socket. */
  readonly icmp: IcmpEngine | NoIcmp;
  readonly probeSlots: ProbeSlots;
}

/** What is pinged or traced. */
export const targetParameter = pathParameter({
  description:
    "An IPv6 address, or a name that is resolved once and then probed at that address only. A link-local address needs its zone: `fe80::1%25eth0`.",
  example: "www.example.com",
});

/** What pings and traces can answer beside what every endpoint can. */
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

/** How long a run may wait in milliseconds: for a place, for the resolver, and for others that probe the same /64. */
const LONGEST_WAIT_MS = MAX_WAIT_MS + QUERY_TIMEOUT_MS + 2 * LIMITS.neighbourMs;

const byte = () => z.int().min(0).max(255);

/** The schema of an ICMPv6 error's type. */
export const icmpType = () => byte().describe("The ICMPv6 type, RFC 4443.");

/** The schema of an ICMPv6 error's code. */
export const icmpCode = () => byte().describe("The ICMPv6 code, RFC 4443.");

/**
 * Runs a ping or a trace to a target: with a raw socket, a free place, and an address that the policy
 * allows. What is no target at all is refused first, whatever this service can do.
 *
 * @param longestMs the most that the run itself takes, for which the client's connection stays open
 * @throws ApiError ICMP_UNAVAILABLE, also where the receiver fails meanwhile, TOO_MANY_PROBES, and
 *   those of `parseTarget` and `resolveTarget`
 */
export async function probeTarget<T>(
  target: string,
  context: Context<AppEnv>,
  dependencies: ProbeDependencies,
  longestMs: number,
  run: (engine: IcmpEngine, destination: Destination, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { icmp, probeSlots } = dependencies;
  const parsed = parseTarget(target);
  if ("unavailable" in icmp) throw noRawSocket(icmp.unavailable);
  if (icmp.failure !== null) throw receiverFailed(icmp.failure);
  context.env.allowSeconds((LONGEST_WAIT_MS + longestMs) / 1000);
  const { signal } = context.req.raw;
  const owner = context.get("facts").key?.sha256 ?? "";
  return await probeSlots.hold(owner, signal, async () => {
    const destination = await resolveTarget(parsed, dependencies, signal);
    return await run(icmp, destination, signal).catch((error: unknown) => {
      throw error instanceof Error && error === icmp.failure ? receiverFailed(error) : error;
    });
  });
}

function noRawSocket(reason: string): ApiError {
  return new ApiError(
    "ICMP_UNAVAILABLE",
    `This service has no raw socket (${reason}); the operator must grant CAP_NET_RAW.`,
    { reason },
  );
}

function receiverFailed({ message: reason }: Error): ApiError {
  return new ApiError(
    "ICMP_UNAVAILABLE",
    `This service cannot receive ICMPv6 any more (${reason}); the operator must restart it.`,
    { reason },
  );
}

/**
 * Passes the result of a run through.
 *
 * @throws ApiError NETWORK_UNREACHABLE where this machine could not send a single packet
 */
export function requireDone<T extends { readonly kind: "done" }>(
  outcome: T | NoResult,
  target: string,
  address: Ipv6Address,
): T {
  switch (outcome.kind) {
    case "done":
      return outcome;
    case "unreachable": {
      const ip = formatIpv6(address);
      const advice = NO_ROOM.includes(outcome.code)
        ? "it has no room for more packets just now, try again in a few seconds"
        : "the operator must check its IPv6 routes and firewall";
      throw new ApiError(
        "NETWORK_UNREACHABLE",
        `This machine cannot send to ${ip} (${outcome.code}); ${advice}.`,
        { target, ip },
      );
    }
    case "aborted":
      throw clientGone();
  }
}

/** A round-trip time or a percentage, rounded to a number of decimals. */
export function round(value: number, decimals: number): number {
  const factor = 10 ** decimals;
  return Math.round(value * factor) / factor;
}
