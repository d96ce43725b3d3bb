import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import { integerParameter } from "../http/parameters.ts";
import { atLocation, ipv6Text } from "../http/schemas.ts";
import type { TracedPath } from "../icmp/path-graph.ts";
import { MAX_SEARCH_MS, type TracedPaths } from "../icmp/paths.ts";
import { certainHops, type TraceHop } from "../icmp/trace-report.ts";
import type { Traced } from "../icmp/traceroute.ts";
import { locatable } from "../locations/locatable.ts";
import {
  flowLabelNumber,
  flowLabelParameter,
  hopEvents,
  longestTraceMs,
  MAX_HOPS,
  maxHopsParameter,
  namesFor,
  namesParameter,
  presentTraceError,
  traceError,
} from "./hops.ts";
import { dns64Field, PROBE_ERRORS, probeTarget, targetParameter } from "./probe.ts";
import { hopSchema, presentHop } from "./trace-hop.ts";
import { pathFields, presentPath, presentPaths, tracePath, traceReason } from "./trace-paths.ts";

const MAX_PATHS = 16;

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
    paths: integerParameter({
      minimum: 1,
      maximum: MAX_PATHS,
      default: 1,
      description:
        "How many paths to look for, with as many flow labels as show every next hop with 95 % confidence. They are in `details.paths`.",
      example: 1,
    }),
    flowLabel: flowLabelParameter,
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
  events: () => ({ hop: hopSchema(), path: tracePath() }),
  errors: PROBE_ERRORS,
  async handle({ target, maxHops, paths, flowLabel: label, names: wanted }, call, tools) {
    const rows: TraceHop[] = [];
    const names = namesFor(wanted, call, tools, () => show(certainHops(rows)));
    const show = hopEvents((row: TraceHop) => presentHop(row, names.names, tools), call);
    const longestMs = longestTraceMs(tools.config.probeTimeoutMs) + (paths > 1 ? MAX_SEARCH_MS : 0);
    const { ip, outcome, dns64 } = await probeTarget<Traced | TracedPaths>(
      target,
      call,
      tools,
      longestMs,
      (engine, runRequest, { signal }) => {
        const request = { ...runRequest, maxHops, flowLabel: label };
        const onHop = (row: TraceHop) => {
          rows[row.hop - 1] = row;
          show(certainHops(rows));
          // The names are looked up while the trace runs.
          if (row.address) names.ask(row.address);
        };
        const onPath = (path: TracedPath) => {
          for (const { address } of path.labels[0].hops) if (address) names.ask(address);
          call.onEvent?.("path", presentPath(path));
        };
        return paths > 1
          ? engine.paths({ ...request, paths }, { signal, onHop, onPath })
          : engine.traceroute(request, { signal, onHop });
      },
    );
    const { hops, reached, reason, error, otherSource, refused, source, flowLabel } = outcome;
    show(hops);
    const known = await names.known();
    return {
      target,
      ip,
      hops: hops.map((hop) => presentHop(hop, known, tools)),
      details: {
        reached,
        reason,
        ...(error && { error: presentTraceError(error) }),
        ...(otherSource && { otherSource: formatIpv6(otherSource) }),
        ...(refused.length > 0 && { refused }),
        ...dns64,
        source: formatIpv6(source),
        flowLabel,
        ...("paths" in outcome && presentPaths(outcome, known, tools)),
      },
    };
  },
});

/** The result of a trace. */
export type TraceResult = z.output<ReturnType<typeof traceResult>>;

/** The schema of the result. */
export function traceResult() {
  return z
    .strictObject({
      target: z.string().describe("The target as it was sent."),
      ip: ipv6Text("The address that was traced."),
      hops: z.array(hopSchema()).describe("The hops in route order."),
      details: z.strictObject({
        ...atLocation(),
        reached: z.boolean().describe("Whether the target replied."),
        reason: traceReason(),
        error: traceError().exactOptional(),
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
        ...dns64Field(),
        source: ipv6Text("The source address of the probes."),
        flowLabel: flowLabelNumber(),
        ...pathFields(),
      }),
    })
    .meta({ id: "TraceResult", description: "The result of a trace." });
}
