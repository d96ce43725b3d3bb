import { z } from "zod";
import { formatIpv6 } from "../../addr/format.ts";
import { flag, list, named, once, oneOf, whole } from "../../api/schemas.ts";
import { flowLabelNumber, ipOrNull, MAX_HOPS } from "../hops.ts";
import type { Services } from "../services.ts";
import { hopSchema, presentHop } from "./hop.ts";
import type { TracedPath } from "./path-graph.ts";
import type { TracedPaths } from "./path-search.ts";
import { TRACE_REASONS } from "./responses.ts";

/** A path as results show it: what its first flow label found. */
export function presentPath({ labels }: TracedPath) {
  const [traced] = labels;
  const { flowLabel, reached, reason, hops } = traced;
  const answered = hops.slice(0, hops.findLastIndex(({ address }) => address !== null) + 1);
  const addresses = answered.map(({ address }) => address && formatIpv6(address));
  return { flowLabel, labels: labels.length, reached, reason, addresses };
}

/** The part of a trace's details about its paths, if there may be several. */
export function presentPaths(
  { paths, graph, labels, isComplete, perPacket }: TracedPaths,
  names: ReadonlyMap<string, string | null>,
  services: Pick<Services, "networks">,
) {
  return {
    complete: isComplete,
    labels,
    ...(perPacket.length > 0 && { perPacket }),
    paths: paths.map(presentPath),
    graph: {
      nodes: graph.nodes.map((node) => presentHop(node, names, services)),
      edges: graph.edges,
    },
  };
}

/** The schema of why a trace ended. */
export const traceReason = () => oneOf(TRACE_REASONS, "Why the trace ended.");

const labelCount = (description: string) => whole(description, 1);

/** The schema of `presentPath`. */
export const tracePath = once(() =>
  named("TracePath", "A path, as the trace with its flow label found it.", {
    flowLabel: flowLabelNumber(),
    labels: labelCount("How many flow labels were traced over the whole path."),
    reached: flag("Whether the target replied at its end."),
    reason: traceReason(),
    addresses: z
      .array(ipOrNull("The hop's address; null if it was silent."))
      .max(MAX_HOPS)
      .describe("The hops in route order, up to the last that answered."),
  }),
);

/** The schemas of `presentPaths`. */
export function pathFields() {
  const index = (which: string) => whole(`Its ${which} node, an index of \`nodes\`.`, 0);
  const edge = named("PathEdge", "Two nodes that follow each other on a path.", {
    from: index("near"),
    to: index("far"),
    labels: labelCount("How many flow labels showed it."),
  });
  const graph = named("PathGraph", "All nodes that were found, and the edges that are sure.", {
    nodes: list(hopSchema(), "Every address at every hop, in route order; without one, silence."),
    edges: z.array(edge),
  });
  return {
    complete: flag(
      "Whether every next hop of every node was seen with 95 % confidence, and all paths are listed. This and the following are present if several paths were wanted.",
    ).exactOptional(),
    labels: labelCount("Flow labels that were used.").exactOptional(),
    perPacket: list(
      z.int().min(1).max(MAX_HOPS),
      "Hops at which different addresses answered one flow label: a router before them chooses by packet, or the path changed. Edges from these hops are left out. Absent if there are none.",
    ).exactOptional(),
    paths: list(
      tracePath(),
      "The paths in the order in which they were found; the first is that of `hops`.",
    ).exactOptional(),
    graph: graph.exactOptional(),
  };
}
