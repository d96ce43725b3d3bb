import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import { type DnsClient, HOP_NAME_TIMEOUT_MS, lookupHostname } from "../dns/client.ts";
import { endpoint } from "../http/endpoint.ts";
import { integerParameter } from "../http/parameters.ts";
import { ipv6Text } from "../http/schemas.ts";
import type { InterfaceInformation } from "../icmp/icmp-error.ts";
import type { TraceError, TraceHop, TraceReason } from "../icmp/trace-report.ts";
import { MAX_PERSISTENCE_MS } from "../icmp/traceroute.ts";
import {
  icmpCode,
  icmpType,
  PROBE_ERRORS,
  type ProbeDependencies,
  probeTarget,
  requireDone,
  round,
  targetParameter,
} from "./probe.ts";

type Role = InterfaceInformation["role"];

/** The greatest hop limit of a trace. */
const MAX_HOPS = 64;

/** `GET /traceroute/{target}`: the routers on the path to the target, with their names. */
export const traceroute = endpoint(
  {
    path: "/traceroute/{target}",
    operationId: "traceroute",
    summary: "The routers on the path to a target (beta)",
    description:
      "Every hop from the first to the target, or to where the trace ended. All hops are probed at once. Silent hops are listed, except those at the end.",
    needsKey: true,
    parameters: {
      target: targetParameter,
      maxHops: integerParameter({
        minimum: 1,
        maximum: MAX_HOPS,
        default: 30,
        description: "Hops after which the trace ends.",
        example: 30,
      }),
    },
    response: traceResult,
    example: {
      target: "www.example.com",
      ip: "2001:db8::80",
      hops: [
        { hop: 1, ip: "2001:db8:1::1", hostname: "router.example.net", rtt: 0.412 },
        { hop: 2, ip: null, hostname: null, rtt: null },
        { hop: 3, ip: "2001:db8::80", hostname: "web.example.com", rtt: 11.204 },
      ],
      details: { reached: true, reason: "reached", source: "2001:db8::1", flowLabel: 493_374 },
    },
    errors: PROBE_ERRORS,
  },
  (dependencies: ProbeDependencies) => {
    const { probeTimeoutMs: timeoutMs, targetResolver } = dependencies.config;
    const resolver = dependencies.resolvers[targetResolver];

    return async ({ target, maxHops }, info) => {
      return await probeTarget(
        target,
        info,
        dependencies,
        2 * timeoutMs + MAX_PERSISTENCE_MS + HOP_NAME_TIMEOUT_MS,
        async (engine, { address, scopeId }, signal) => {
          const names = new HopNames(resolver, signal);
          const outcome = requireDone(
            await engine.traceroute({
              target: address,
              scopeId,
              maxHops,
              timeoutMs,
              signal,
              onHop: (hop) => hop.address && names.ask(hop.address),
            }),
            target,
            address,
          );
          const { reached, reason, error, source, flowLabel } = outcome;
          return {
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
          };
        },
      );
    };
  },
);

/** The names of hops, looked up while the trace runs; each address once. */
class HopNames {
  readonly #resolver: DnsClient;
  readonly #signal: AbortSignal;
  readonly #names = new Map<string, Promise<string | null>>();

  constructor(resolver: DnsClient, signal: AbortSignal) {
    this.#resolver = resolver;
    this.#signal = signal;
  }

  /** Looks up a name, or joins the lookup; null if there is none in time. */
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

function traceResult() {
  const ipOrNull = (description: string) =>
    z.string().nullable().meta({ format: "ipv6", description });
  const mtu = z.int().min(0).max(0xffff_ffff);
  const mpls = z
    .strictObject({
      label: z.int().min(0).max(0xf_ffff).describe("20 bits."),
      trafficClass: z.int().min(0).max(7),
      bottomOfStack: z.boolean(),
      ttl: z.int().min(0).max(255).describe("The hops left for the label."),
    })
    .meta({ id: "MplsLabel", description: "An entry of an MPLS label stack, RFC 4950." });
  const aboutInterface = z
    .strictObject({
      role: z.enum(["incoming", "sub-ip", "outgoing", "next-hop"] satisfies Role[]),
      index: z.int().min(0).max(0xffff_ffff).nullable(),
      address: ipOrNull("The interface's IPv6 address."),
      name: z.string().nullable(),
      mtu: mtu.nullable().describe("Bytes."),
    })
    .meta({
      id: "InterfaceInformation",
      description:
        "What a router says about one of its interfaces, RFC 5837; null if it does not say.",
    });
  const hop = z
    .strictObject({
      hop: z.int().min(1).max(MAX_HOPS).describe("The position, from 1."),
      ip: ipOrNull("The hop's address; null if it was silent."),
      hostname: z.string().nullable().describe("Its name; null if it has none."),
      rtt: z
        .number()
        .min(0)
        .nullable()
        .describe("The round-trip time to it in milliseconds; null if it was silent."),
      details: z
        .strictObject({
          rtts: z
            .array(z.number().min(0))
            .describe("All times in milliseconds, if there are several."),
          addresses: z
            .array(ipv6Text("An address."))
            .describe("All addresses, if there are several."),
          mpls: z.array(mpls).describe("The label stack with which the probe arrived."),
          interfaces: z.array(aboutInterface),
          mtu: mtu.describe("The MTU in bytes of the next link."),
        })
        .partial()
        .exactOptional()
        .describe("What else the hop said; absent if it said nothing."),
    })
    .meta({ id: "Hop", description: "A hop of a trace." });
  const error = z
    .strictObject({
      type: icmpType(),
      code: icmpCode(),
      name: z.string().describe("Its name, such as no-route."),
      from: ipv6Text("Its sender."),
      fromTarget: z.boolean().describe("Whether the target itself sent it."),
    })
    .meta({ id: "TraceError", description: "The ICMPv6 error that ended a trace." });
  return z
    .strictObject({
      target: z.string().describe("The target as it was sent."),
      ip: ipv6Text("The address that was traced."),
      hops: z.array(hop).describe("The hops in route order."),
      details: z.strictObject({
        reached: z.boolean().describe("Whether the target replied."),
        reason: z
          .enum([
            "reached",
            "unreachable",
            "prohibited",
            "packet-too-big",
            "parameter-problem",
            "gap-limit",
            "max-hops",
          ] satisfies TraceReason[])
          .describe("Why the trace ended."),
        error: error.exactOptional(),
        source: ipv6Text("The source address of the probes."),
        flowLabel: z
          .int()
          .min(0)
          .max(0xf_ffff)
          .describe(
            "The flow label of all probes; 0 if another program on the service's machine reserves flow labels.",
          ),
      }),
    })
    .meta({ id: "TraceResult", description: "The result of a trace." });
}
