import type { Handler } from "hono";
import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import type { DnsClient } from "../dns/client.ts";
import { lookupHostname } from "../dns/lookup.ts";
import type { AppEnv } from "../http/environment.ts";
import { integerParameter, readParameters } from "../http/parameters.ts";
import type { TraceError, TraceHop } from "../icmp/trace-report.ts";
import { type ProbeDependencies, probeTarget, requireDone, round } from "./probe.ts";

/** The query parameters of `/traceroute/{target}`. */
const parameters = { maxHops: integerParameter({ minimum: 1, maximum: 64, default: 30 }) };

/** How many probe timeouts a trace may take when every hop is silent and asked again. */
const LONGEST_TRACE_TIMEOUTS = 6;

/** `GET /traceroute/{target}`: the routers on the way to the target, with their names. */
export function tracerouteRoute(dependencies: ProbeDependencies): Handler<AppEnv> {
  const { probeTimeoutMs: timeoutMs, targetResolver } = dependencies.config;
  const resolver = dependencies.resolvers[targetResolver];

  return async (context) => {
    const { maxHops } = readParameters(context, parameters);
    context.env.allowSeconds((timeoutMs * LONGEST_TRACE_TIMEOUTS) / 1000);
    return await probeTarget(context, dependencies, async (engine, target, address, signal) => {
      const names = new HopNames(resolver, signal);
      const outcome = requireDone(
        await engine.traceroute({
          target: address,
          maxHops,
          timeoutMs,
          signal,
          onAddress: (hop) => names.ask(hop),
        }),
        target,
        address,
      );
      const { reached, reason, error, source, flowLabel } = outcome;
      return context.json({
        target,
        ip: formatIpv6(address),
        hops: await Promise.all(outcome.hops.map((hop) => presentHop(hop, names))),
        details: {
          reached,
          reason,
          ...(error === null ? {} : { error: presentError(error) }),
          source: formatIpv6(source),
          flowLabel,
        },
      });
    });
  };
}

/** Names of hops, asked for while the trace still runs; each address once. */
class HopNames {
  readonly #resolver: DnsClient;
  readonly #signal: AbortSignal;
  readonly #names = new Map<string, Promise<string | null>>();

  constructor(resolver: DnsClient, signal: AbortSignal) {
    this.#resolver = resolver;
    this.#signal = signal;
  }

  /** Begins to ask for a name, or returns the answer to come; null where there is none in time. */
  ask(address: Ipv6Address): Promise<string | null> {
    const key = formatIpv6(address);
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const name = lookupHostname(this.#resolver, address, { signal: this.#signal });
    this.#names.set(key, name);
    return name;
  }
}

async function presentHop(hop: TraceHop, names: HopNames) {
  const { address, rttMs } = hop;
  const details = {
    ...(hop.rttsMs.length > 1 ? { rtts: hop.rttsMs.map((rtt) => round(rtt, 3)) } : {}),
    ...(hop.addresses.length > 1 ? { addresses: hop.addresses.map(formatIpv6) } : {}),
    ...(hop.mpls.length > 0 ? { mpls: hop.mpls } : {}),
    ...(hop.interfaces.length > 0
      ? {
          interfaces: hop.interfaces.map(({ mtuBytes, ...about }) => ({
            ...about,
            address: about.address === null ? null : formatIpv6(about.address),
            mtu: mtuBytes,
          })),
        }
      : {}),
    ...(hop.mtuBytes === null ? {} : { mtu: hop.mtuBytes }),
  };
  return {
    hop: hop.hop,
    ip: address === null ? null : formatIpv6(address),
    hostname: address === null ? null : await names.ask(address),
    rtt: rttMs === null ? null : round(rttMs, 3),
    ...(Object.keys(details).length > 0 ? { details } : {}),
  };
}

function presentError({ from, ...error }: TraceError) {
  return { ...error, from: formatIpv6(from) };
}
