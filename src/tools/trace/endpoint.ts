import { formatIpv6 } from "../../addr/format.ts";
import { integerParameter } from "../../api/parameters.ts";
import { MAX_SEARCH_MS } from "../budget.ts";
import type { Names } from "../hop-names.ts";
import { hopEvents, openPathRun, pathParameters } from "../hops.ts";
import { PROBING, protocolParameters, targetParameter } from "../run.ts";
import { endpoint, type Services } from "../services.ts";
import { waitingEvent } from "../turn.ts";
import { type Traced, traceroute as trace } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { showHop } from "./hop.ts";
import { type TracedPaths, tracePaths } from "./path-search.ts";
import { certainHops, type TraceHop } from "./responses.ts";
import { hopSchema, type TracePath, tracePath, traceResult } from "./result.ts";
import { traceVerdict } from "./verdict.ts";

const MAX_PATHS = 16;

/** Paths that the price of one request pays for. */
const PATHS_A_REQUEST = 4;

const { maxHops, flowLabel, names } = pathParameters;

/** `GET /traceroute/{target}`: the routers on the path to the target, with their names. */
export const traceroute = endpoint({
  path: "/traceroute/{target}",
  operationId: "traceroute",
  summary: "The routers on the path to a target (beta)",
  description:
    "Every hop from the first to the target, or to where the trace ended. All hops are probed at once. Silent hops are listed, except those at the end.",
  ...PROBING,
  parameters: {
    target: targetParameter,
    maxHops,
    paths: integerParameter({
      minimum: 1,
      maximum: MAX_PATHS,
      default: 1,
      description:
        "How many paths to look for, with as many flow labels as show every next hop with 95 % confidence. They are in `details.paths`.",
      example: 1,
      option: { flags: "--paths", help: "how many paths to look for" },
      label: "Paths",
      price: (paths) => Math.ceil(paths / PATHS_A_REQUEST),
    }),
    flowLabel,
    names,
    ...protocolParameters,
  },
  response: traceResult,
  example,
  events: () => ({ waiting: waitingEvent(), hop: hopSchema(), path: tracePath() }),
  async handle({ maxHops, paths, flowLabel: label, ...probed }, call, services) {
    const { target } = probed;
    const rows: TraceHop[] = [];
    const shown = (row: TraceHop) => showHop(row, run.names.names, services, rows);
    const send = hopEvents(shown, call);
    const longestMs = paths > 1 ? MAX_SEARCH_MS : 0;
    using run = await openPathRun(probed, longestMs, call, services, (ip) =>
      send(certainHops(rows), ip),
    );
    const { names } = run;
    const request = { ...run.request, maxHops, flowLabel: label, awaitsRouters: true };
    const onHop = (row: TraceHop) => {
      const before = rows[row.hop - 1];
      rows[row.hop - 1] = row;
      // Rows with the same address show less; see `showHop`.
      send(certainHops(rows), row.ip, before?.ip);
      // The names are looked up while the trace runs.
      if (row.ip) names.ask(row.ip);
    };
    const onPath = (path: TracePath) => {
      for (const ip of path.addresses) if (ip) names.ask(ip);
      run.onEvent?.("path", path);
    };
    const outcome = await run.outcome<Traced | TracedPaths>(
      paths > 1
        ? tracePaths(run.prober, { ...request, paths }, { ...run.options, onHop, onPath })
        : trace(run.prober, request, { ...run.options, onHop }),
    );
    if ("isLate" in outcome && outcome.isLate) run.budget.end("search");
    for (const { others } of outcome.hops) if (others) names.ask(formatIpv6(others.from));
    // A name that becomes known now changes these rows.
    rows.splice(0, rows.length, ...outcome.hops);
    send(outcome.hops);
    await names.known();
    const hops = outcome.hops.map(shown);
    const found = "paths" in outcome ? pathDetails(outcome, names.names, services) : null;
    const { reached, reason, error, loop, otherSource, refused, flowLabel } = outcome;
    const end = {
      reached,
      reason,
      ...(error && { error }),
      ...(loop && { loop }),
      ...(otherSource && { otherSource }),
      ...(refused.length > 0 && { refused }),
    };
    const verdict = traceVerdict(hops, end, found);
    const last = outcome.hops.findLast(({ ip }) => ip);
    const answers = last?.state ? [last.state] : [];
    const isSilent = last !== undefined && ["gap-limit", "max-hops"].includes(reason);
    const port = { answers, hop: last?.hop, isSilent, error: end.error };
    const known = await run.details(outcome, verdict, port);
    return { target, ip: run.ip, hops, details: { ...end, ...known, flowLabel, ...found } };
  },
});

/** The part of the details about the paths, if there may be several. */
function pathDetails(
  { complete, labels, perPacket, paths, graph }: TracedPaths,
  names: Names,
  services: Services,
) {
  const nodes = graph.nodes.map((node) => showHop(node, names, services));
  const changing = perPacket.length > 0 && { perPacket };
  return { complete, labels, ...changing, paths, graph: { nodes, edges: graph.edges } };
}
