import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import type { Tools } from "../http/endpoint.ts";
import { once } from "../http/schemas.ts";
import { answeredHops, type TracedPath } from "../icmp/path-graph.ts";
import type { TracedPaths } from "../icmp/paths.ts";
import type { TraceReason } from "../icmp/trace-report.ts";
import { flowLabelNumber, ipOrNull, MAX_HOPS } from "./hops.ts";
import { hopSchema, presentHop } from "./trace-hop.ts";

/** A path as results show it: what its first flow label found. */
export function presentPath({ labels }: TracedPath) {
  const [traced] = labels;
  const { flowLabel, reached, reason } = traced;
  const addresses = answeredHops(traced).map(({ address }) => address && formatIpv6(address));
  return { flowLabel, labels: labels.length, reached, reason, addresses };
}

/** What the details of a trace say of its paths, if there may be several. */
export function presentPaths(
  { paths, graph, labels, isComplete, perPacket }: TracedPaths,
  names: ReadonlyMap<string, string | null>,
  tools: Pick<Tools, "networks">,
) {
  return {
    complete: isComplete,
    labels,
    ...(perPacket.length > 0 && { perPacket }),
    paths: paths.map(presentPath),
    graph: {
      nodes: graph.nodes.map((node) => presentHop(node, names, tools)),
      edges: graph.edges,
    },
  };
}

/** The schema of why a trace ended. */
export const traceReason = () =>
  z
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
    .describe("Why the trace ended.");

const labelCount = (description: string) => z.int().min(1).describe(description);

/** The schema of `presentPath`. */
export const tracePath = once(() =>
  z
    .strictObject({
      flowLabel: flowLabelNumber(),
      labels: labelCount("How many flow labels took the path."),
      reached: z.boolean().describe("Whether the target replied at its end."),
      reason: traceReason(),
      addresses: z
        .array(ipOrNull("The hop's address; null if it was silent."))
        .max(MAX_HOPS)
        .describe("The hops in route order, up to the last that answered."),
    })
    .meta({ id: "TracePath", description: "A path, as the trace with its flow label found it." }),
);

/** The schemas of `presentPaths`. */
export function pathFields() {
  const index = (which: string) =>
    z.int().min(0).describe(`Its ${which} node, an index of \`nodes\`.`);
  const edge = z
    .strictObject({
      from: index("near"),
      to: index("far"),
      labels: labelCount("How many flow labels showed it."),
    })
    .meta({ id: "PathEdge", description: "Two nodes that follow each other on a path." });
  const graph = z
    .strictObject({
      nodes: z
        .array(hopSchema())
        .describe(
          "Every address at every hop, in the order of the hops; one without address is silent.",
        ),
      edges: z.array(edge),
    })
    .meta({ id: "PathGraph", description: "All nodes and edges that the flow labels showed." });
  return {
    complete: z
      .boolean()
      .exactOptional()
      .describe(
        "Whether every next hop of every node was seen with 95 % confidence, and all paths are listed. This and the following are present if several paths were wanted.",
      ),
    labels: labelCount("Flow labels that were traced.").exactOptional(),
    perPacket: z
      .array(z.int().min(1).max(MAX_HOPS))
      .exactOptional()
      .describe(
        "Hops at which different addresses answered one flow label: a router before them chooses by packet, or the path changed. Absent if there are none.",
      ),
    paths: z
      .array(tracePath())
      .exactOptional()
      .describe("The paths in the order in which they were found; the first is that of `hops`."),
    graph: graph.exactOptional(),
  };
}
