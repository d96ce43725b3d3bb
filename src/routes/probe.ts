import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import { QUERY_TIMEOUT_MS } from "../dns/client.ts";
import { type Translation, translationOf } from "../dns/dns64.ts";
import { translation } from "../http/dns-schemas.ts";
import type { Call, Tools } from "../http/endpoint.ts";
import { ApiError, clientGone, type ErrorCode } from "../http/errors.ts";
import { textSchema } from "../http/schemas.ts";
import { engineForTraces, type IcmpEngine } from "../icmp/engine.ts";
import type { NoResult, RunOptions, RunRequest } from "../icmp/ping.ts";
import { NEIGHBOUR_MS } from "../icmp/target-limit.ts";
import { MAX_WAIT_MS } from "../limits/probe-slots.ts";
import { parseTarget, resolveTarget } from "./target.ts";

/** Most runs end within seconds. */
const RETRY_AFTER_SECONDS = 2;

/** The parameter of pings and traces. */
export const targetParameter = {
  in: "path",
  schema: textSchema,
  description:
    "An IPv6 address, or a name that is resolved once and then probed at that address only. A link-local address needs its zone: `fe80::1%25eth0`.",
  example: "www.example.com",
} as const;

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

/** Milliseconds that a run may wait for the resolver, for a slot, and for other probes to the same /64. */
const LONGEST_WAIT_MS = QUERY_TIMEOUT_MS + MAX_WAIT_MS + 2 * NEIGHBOUR_MS;

const byte = () => z.int().min(0).max(255);

/** The schema of an ICMPv6 error's type. */
export const icmpType = () => byte().describe("The ICMPv6 type, RFC 4443.");

/** The schema of an ICMPv6 error's code. */
export const icmpCode = () => byte().describe("The ICMPv6 code, RFC 4443.");

/** The schema of what `probeTarget` says about a translator. */
export const dns64Field = () => ({
  dns64: translation()
    .exactOptional()
    .describe(
      "The target leads to a translator, where the IPv6 path ends; absent if it does not, or it is not known.",
    ),
});

/**
 * Runs a ping or a trace to a target in a probe slot, after the target is resolved and the policy checked.
 *
 * @param longestMs the longest time of the run itself, for which the connection stays open
 * @param icmp the engine; by default it needs a raw socket, as everything but a ping does
 * @throws ApiError TOO_MANY_PROBES, ICMP_UNAVAILABLE, NETWORK_UNREACHABLE if this machine could not
 *   send a single packet, and those of `parseTarget` and `resolveTarget`
 */
export async function probeTarget<Outcome extends { readonly kind: "done" }>(
  text: string,
  { signal, owner, allowSeconds }: Call,
  tools: Tools,
  longestMs: number,
  run: (
    engine: IcmpEngine,
    request: RunRequest,
    options: RunOptions,
  ) => Promise<Outcome | NoResult>,
  icmp: Tools["icmp"] = engineForTraces(tools.icmp),
): Promise<{
  readonly ip: string;
  readonly outcome: Outcome;
  /** The key of `dns64Field` if the target is known to lead to a translator. */
  readonly dns64: { readonly dns64?: Translation };
}> {
  const { probeSlots } = tools;
  const parsed = parseTarget(text);
  if ("unavailable" in icmp) throw new ApiError("ICMP_UNAVAILABLE", { reason: icmp.unavailable });
  allowSeconds((LONGEST_WAIT_MS + longestMs) / 1000);
  // Before a slot is taken: a silent resolver must not keep others out.
  const destination = await resolveTarget(parsed, tools, signal);
  const ip = formatIpv6(destination.target);
  const request = { ...destination, timeoutMs: tools.config.probeTimeoutMs };
  const outcome = await probeSlots.hold(owner, signal, () => run(icmp, request, { signal }));
  if (signal.aborted) throw clientGone();
  if (outcome === null) {
    const retryAfterSeconds = RETRY_AFTER_SECONDS;
    throw new ApiError("TOO_MANY_PROBES", { limit: probeSlots.limit, retryAfterSeconds });
  }
  switch (outcome.kind) {
    case "done": {
      const dns64 = translationOf(tools.resolvers[tools.config.targetResolver], ip);
      return { ip, outcome, dns64: dns64 ? { dns64 } : {} };
    }
    case "unreachable":
      throw new ApiError("NETWORK_UNREACHABLE", { target: text, ip }, outcome.code);
    case "aborted":
      throw clientGone();
  }
}

/** A round-trip time or a percentage, rounded to a number of decimals. */
export function round(value: number, decimals: number): number {
  const factor = 10 ** decimals;
  return Math.round(value * factor) / factor;
}
