import { z } from "zod";
import { formatIpv6 } from "../../addr/format.ts";
import type { Ipv6Address } from "../../addr/ipv6.ts";
import { integerParameter } from "../../api/parameters.ts";
import { flag, ipv6Text, list, named, text, type ValueOf, whole } from "../../api/schemas.ts";
import { listText, plural } from "../../util/text.ts";
import {
  flowLabelNumber,
  hopEvents,
  ipOrNull,
  MAX_HOPS,
  openPathRun,
  pathParameters,
  presentTraceError,
  traceError,
} from "../hops.ts";
import { hopsText } from "../report.ts";
import {
  PROBING,
  portField,
  protocolParameters,
  runDetailFields,
  runFields,
  targetParameter,
} from "../run.ts";
import { endpoint } from "../services.ts";
import type { Traced } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { hopSchema, presentHop } from "./hop.ts";
import type { TracedPath } from "./path-graph.ts";
import { MAX_SEARCH_MS, type TracedPaths } from "./path-search.ts";
import { pathFields, presentPath, presentPaths, tracePath, traceReason } from "./paths.ts";
import { certainHops, TRACE_REASONS, type TraceHop } from "./responses.ts";

const MAX_PATHS = 16;

/** Paths for the price of one request. */
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
  events: () => ({ hop: hopSchema(), path: tracePath() }),
  async handle({ maxHops, paths, flowLabel: label, ...probed }, call, services) {
    const { target } = probed;
    const rows: TraceHop[] = [];
    const present = (row: TraceHop) => presentHop(row, run.names.names, services, rows);
    const show = hopEvents(present, call);
    const longestMs = paths > 1 ? MAX_SEARCH_MS : 0;
    using run = await openPathRun(probed, longestMs, call, services, (address) =>
      show(certainHops(rows), address),
    );
    const { names } = run;
    const request = { ...run.request, maxHops, flowLabel: label, awaitsRouters: true };
    const onHop = (row: TraceHop) => {
      const before = rows[row.hop - 1];
      rows[row.hop - 1] = row;
      // Rows with the same address show less; see `presentHop`.
      show(certainHops(rows), row.address, before?.address);
      // The names are looked up while the trace runs.
      if (row.address) names.ask(row.address);
    };
    const onPath = (path: TracedPath) => {
      for (const { address } of path.labels[0].hops) if (address) names.ask(address);
      run.onEvent?.("path", presentPath(path));
    };
    const outcome = await run.outcome<Traced | TracedPaths>(
      paths > 1
        ? run.engine.paths({ ...request, paths }, { ...run.options, onHop, onPath })
        : run.engine.traceroute(request, { ...run.options, onHop }),
    );
    for (const { others } of outcome.hops) if (others) names.ask(others.from);
    show(outcome.hops);
    await names.known();
    const hops = outcome.hops.map(present);
    const found = "paths" in outcome ? presentPaths(outcome, names.names, services) : null;
    const { reached, reason, error, loop, otherSource, refused, flowLabel } = outcome;
    const end = {
      reached,
      reason,
      ...(error && { error: presentTraceError(error) }),
      ...(loop && { loop: { ...loop, addresses: loop.addresses.map(ipOf) } }),
      ...(otherSource && { otherSource: formatIpv6(otherSource) }),
      ...(refused.length > 0 && { refused }),
    };
    const verdict = traceVerdict(hops, end, found);
    const last = outcome.hops.findLast(({ address }) => address);
    const port = { state: last?.state, hop: last?.hop, error: end.error };
    const known = await run.details(outcome, verdict, port);
    return { target, ip: run.ip, hops, details: { ...end, ...known, flowLabel, ...found } };
  },
});

const ipOf = (address: Ipv6Address | null) => address && formatIpv6(address);

/** The result of a trace. */
export type TraceResult = ValueOf<ReturnType<typeof traceResult>>;

/** The schema of the result. */
export function traceResult() {
  return named("TraceResult", "The result of a trace.", {
    ...runFields(),
    hops: list(hopSchema(), "The hops in route order."),
    details: z.strictObject({
      ...runDetailFields(TRACE_REASONS),
      ...portField(),
      reached: flag("Whether the target replied."),
      reason: traceReason(),
      error: traceError().exactOptional(),
      loop: z
        .strictObject({
          from: z.int().min(1).max(MAX_HOPS),
          to: z.int().min(1).max(MAX_HOPS),
          addresses: z.array(
            ipOrNull("Who answers there and, in this order, behind; null: silent."),
          ),
          repeats: whole("Answers that repeat one of an earlier turn.", 1),
        })
        .exactOptional()
        .describe("Routers that send packets to each other, and the hops of their first turn."),
      otherSource: ipv6Text(
        "The address that replied, if the target was reached at another address than its own.",
      ).exactOptional(),
      refused: list(
        z.strictObject({
          hop: z.int().min(1).max(MAX_HOPS),
          errno: text("The error's name, such as EPERM."),
        }),
        "Hops that the service's machine refused to ask, or to ask again.",
      ).exactOptional(),
      flowLabel: flowLabelNumber(),
      ...pathFields(),
    }),
  });
}

type TraceDetails = TraceResult["details"];

/** The conclusion of a trace, from its hops, how it ended, and the paths if there may be several. */
export function traceVerdict(
  hops: TraceResult["hops"],
  end: Pick<TraceDetails, "reason" | "error" | "loop" | "otherSource" | "refused">,
  found: Pick<TraceDetails, "paths" | "labels" | "complete" | "perPacket"> | null,
) {
  const sentences = found === null ? [endOf(hops, end)] : [...pathSentences(found)];
  return { code: end.reason, text: sentences.join(" ") };
}

function endOf(
  hops: TraceResult["hops"],
  { reason, error, loop, otherSource, refused }: Parameters<typeof traceVerdict>[1],
): string {
  if (error !== undefined) {
    const who = error.fromTarget ? "The target" : error.from;
    // It may have rate-limited its answers to nearer probes.
    const orNearer = hops.at(-2)?.ip === null ? " or nearer" : "";
    return `${who} answered ${error.name} at hop ${hops.length}${orNearer}, and the path ends there.`;
  }
  const last = hops.findLast(({ ip }) => ip !== null);
  if (loop !== undefined) {
    const who = listText(loop.addresses.map((ip) => ip ?? "a silent router"));
    return `There is a loop between hops ${loop.from} and ${loop.to}: ${who} answered in turn up to hop ${hops.length}, ${plural(loop.repeats, "time")} again, and the target did not reply.`;
  }
  switch (reason) {
    case "reached":
      return `The target replied at hop ${hops.length}${otherSource === undefined ? "" : ` from ${otherSource}`}.`;
    case "not-sent":
      return `This machine could not send probes ${last === undefined ? "to any hop" : `beyond hop ${last.hop}`} (${refused?.at(-1)?.errno}).`;
    case "max-hops":
      return `The target did not reply within ${plural(hops.length, "hop")}, and the trace may not go further.`;
    default:
      return last === undefined
        ? "No hop answered, and the target did not reply."
        : `The last answer came from hop ${last.hop} (${last.ip}); no hop behind it answered, and the target did not reply.`;
  }
}

function* pathSentences({ paths = [], labels = 0, complete, perPacket }: Partial<TraceDetails>) {
  const found = `${plural(paths.length, "path")} for ${plural(labels, "flow label")}`;
  yield complete
    ? `${found}; with 95 % confidence at each router, there are no others.`
    : `At least ${found}; there may be more.`;
  const failing = paths.flatMap(({ reached }, index) => (reached ? [] : [index + 1]));
  if (failing.length === paths.length) {
    yield paths.length === 1 ? "It does not reach the target." : "None of them reaches the target.";
  } else if (failing.length > 0)
    yield `${failing.length === 1 ? "Path" : "Paths"} ${listText(failing)} of ${paths.length} did not reach the target.`;
  if (perPacket !== undefined) {
    yield `At ${hopsText(perPacket)} one flow label was answered by different addresses: a router chooses by packet, or the path changed.`;
  }
}
