import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import { translationOf } from "../dns/dns64.ts";
import { translation } from "../http/dns-schemas.ts";
import type { Tools } from "../http/endpoint.ts";
import { atLocation, ipv6Text, once } from "../http/schemas.ts";
import type { InterfaceInformation } from "../icmp/icmp-error.ts";
import { certainHops, type TraceHop, type TraceReason } from "../icmp/trace-report.ts";
import { locatable } from "../locations/locatable.ts";
import {
  flowLabelNumber,
  hopDetailFields,
  hopDetails,
  hopEvents,
  hopFields,
  ipOrNull,
  longestTraceMs,
  MAX_HOPS,
  maxHopsParameter,
  namesFor,
  namesParameter,
  presentAddress,
  withDetails,
} from "./hops.ts";
import { icmpCode, icmpType, PROBE_ERRORS, probeTarget, round, targetParameter } from "./probe.ts";

/** `GET /traceroute/{target}`: the routers on the path to the target, with their names. */
export const traceroute = locatable({
  path: "/traceroute/{target}",
  operationId: "traceroute",
  summary: "The routers on the path to a target (beta)",
  description:
    "Every hop from the first to the target, or to where the trace ended. All hops are probed at once. Silent hops are listed, except those at the end.",
  needsKey: true,
  parameters: {
    target: targetParameter,
    maxHops: maxHopsParameter,
    names: namesParameter,
  },
  response: traceResult,
  example: {
    target: "www.example.com",
    ip: "2001:db8::80",
    hops: [
      {
        hop: 1,
        ip: "2001:db8:1::1",
        hostname: "router.example.net",
        rtt: 0.412,
        details: {
          network: {
            asn: 64496,
            name: "Example Networks",
            prefix: "2001:db8::/32",
            source: "asn-file",
          },
        },
      },
      { hop: 2, ip: null, hostname: null, rtt: null },
      { hop: 3, ip: "2001:db8::80", hostname: "web.example.com", rtt: 11.204 },
    ],
    details: { reached: true, reason: "reached", source: "2001:db8::1", flowLabel: 493_374 },
  },
  events: () => ({ hop: hopSchema() }),
  errors: PROBE_ERRORS,
  async handle({ target, maxHops, names: wanted }, call, tools) {
    const rows: TraceHop[] = [];
    const names = namesFor(wanted, call, tools, () => show(certainHops(rows)));
    const show = hopEvents((row: TraceHop) => presentHop(row, names.names, tools), call);
    const longestMs = longestTraceMs(tools.config.probeTimeoutMs);
    const { ip, outcome } = await probeTarget(
      target,
      call,
      tools,
      longestMs,
      (engine, request, options) => {
        const onHop = (row: TraceHop) => {
          rows[row.hop - 1] = row;
          show(certainHops(rows));
          // The names are looked up while the trace runs.
          if (row.address) names.ask(row.address);
        };
        return engine.traceroute({ ...request, maxHops }, { ...options, onHop });
      },
    );
    const { hops, reached, reason, error, otherSource, refused, source, flowLabel } = outcome;
    show(hops);
    const known = await names.known();
    const dns64 = translationOf(tools.resolvers[tools.config.targetResolver], ip);
    return {
      target,
      ip,
      hops: hops.map((hop) => presentHop(hop, known, tools)),
      details: {
        reached,
        reason,
        ...(error && { error: { ...error, from: formatIpv6(error.from) } }),
        ...(otherSource && { otherSource: formatIpv6(otherSource) }),
        ...(refused.length > 0 && { refused }),
        ...(dns64 && { dns64 }),
        source: formatIpv6(source),
        flowLabel,
      },
    };
  },
});

/** The result of a trace. */
export type TraceResult = z.output<ReturnType<typeof traceResult>>;

function presentHop(
  hop: TraceHop,
  names: ReadonlyMap<string, string | null>,
  tools: Pick<Tools, "networks">,
) {
  const { address, scopeId, rttMs, rttsMs, addresses, mpls, interfaces, mtuBytes } = hop;
  const details = {
    ...hopDetails(address, scopeId, tools),
    ...(rttsMs.length > 1 && { rtts: rttsMs.map((rtt) => round(rtt, 3)) }),
    ...(addresses.length > 1 && { addresses: addresses.map(formatIpv6) }),
    ...(mpls.length > 0 && { mpls }),
    ...(interfaces.length > 0 && { interfaces: interfaces.map(presentInterface) }),
    ...(mtuBytes !== null && { mtu: mtuBytes }),
  };
  return {
    hop: hop.hop,
    ...presentAddress(address, names),
    rtt: rttMs === null ? null : round(rttMs, 3),
    ...withDetails(details),
  };
}

function presentInterface({ mtuBytes, address, ...others }: InterfaceInformation) {
  return { ...others, address: address && formatIpv6(address), mtu: mtuBytes };
}

/** The schema of a hop. */
export const hopSchema = once(() => {
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
      role: z.enum([
        "incoming",
        "sub-ip",
        "outgoing",
        "next-hop",
      ] satisfies InterfaceInformation["role"][]),
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
  return z
    .strictObject({
      ...hopFields(),
      rtt: z
        .number()
        .min(0)
        .nullable()
        .describe("The round-trip time to it in milliseconds; null if it was silent."),
      details: z
        .strictObject({
          ...hopDetailFields(),
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
        .describe("What else is known of the hop; absent if nothing is."),
    })
    .meta({ id: "Hop", description: "A hop of a trace." });
});

/** The schema of the result. */
export function traceResult() {
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
      hops: z.array(hopSchema()).describe("The hops in route order."),
      details: z.strictObject({
        ...atLocation(),
        reached: z.boolean().describe("Whether the target replied."),
        reason: z
          .enum([
            "reached",
            "unreachable",
            "prohibited",
            "packet-too-big",
            "parameter-problem",
            "not-sent",
            "gap-limit",
            "max-hops",
          ] satisfies TraceReason[])
          .describe("Why the trace ended."),
        error: error.exactOptional(),
        otherSource: ipv6Text(
          "The address that replied, if the target was reached at another address than its own.",
        ).exactOptional(),
        refused: z
          .array(
            z.strictObject({
              hop: z.int().min(1).max(MAX_HOPS),
              errno: z.string().describe("The error's name, such as EPERM."),
            }),
          )
          .exactOptional()
          .describe("Hops that the service's machine refused to ask, or to ask again."),
        dns64: translation()
          .exactOptional()
          .describe(
            "The target leads to a translator, where the IPv6 path ends; absent if it does not, or it is not known.",
          ),
        source: ipv6Text("The source address of the probes."),
        flowLabel: flowLabelNumber(),
      }),
    })
    .meta({ id: "TraceResult", description: "The result of a trace." });
}
