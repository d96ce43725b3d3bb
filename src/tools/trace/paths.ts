import { formatIpv6 } from "../../addr/format.ts";
import type { Services } from "../services.ts";
import { presentHop } from "./hop.ts";
import type { TracedPath } from "./path-graph.ts";
import type { TracedPaths } from "./path-search.ts";

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
