/** `/probe`: one ping, trace, query or look for Prometheus, with the names of blackbox_exporter. */
import { FROM } from "../api/endpoint.ts";
import { ApiError, type ErrorCode } from "../api/errors.ts";
import { choiceParameter, type Parameters, readParameters } from "../api/parameters.ts";
import type { CheckResult } from "../tools/check/result.ts";
import type { DnsResult } from "../tools/dns/result.ts";
import { MAX_FLOW_LABEL } from "../tools/fields.ts";
import type { HereResult } from "../tools/here/result.ts";
import type { MtrResult } from "../tools/mtr/result.ts";
import type { MtuResult } from "../tools/mtu/result.ts";
import type { PingResult } from "../tools/ping/result.ts";
import { reporterOf, type ToolName } from "../tools/reports.ts";
import { targetParameter } from "../tools/run.ts";
import type { Services } from "../tools/services.ts";
import { toolNamed } from "../tools/table.ts";
import type { TraceResult } from "../tools/trace/result.ts";
import { servedEndpoint } from "./endpoints.ts";
import { gauge, type Metric, type Reading, respondMetrics, samplesOf } from "./exposition.ts";
import HELP from "./probe-metrics.json" with { type: "json" };

/** Time that the answer needs before Prometheus gives up; blackbox_exporter has the same. */
const MARGIN_SECONDS = 0.5;

/** The longest scrape timeout that is believed. */
const MAX_SCRAPE_SECONDS = 3_600;

/** Errors that say nothing about the target. */
const OWN_ERRORS: readonly string[] = [
  "TARGET_NOT_ALLOWED",
  "TOO_MANY_PROBES",
  "ICMP_UNAVAILABLE",
  "LOCATION_NOT_FOUND",
  "LOCATION_TIMEOUT",
  "LOCATION_UNAVAILABLE",
] satisfies ErrorCode[];

const QUANTILES = [0, 0.5, 0.9, 1];

/** Measured values; null is left out. */
type Measured = { readonly [Name in keyof typeof HELP]?: Reading | null };

/** A tool as a module for Prometheus. */
interface Module {
  readonly tool: ToolName;
  /** Parameters of its endpoint, beside those of the request. */
  readonly texts?: Readonly<Record<string, readonly string[]>>;
  /** Reads the document. */
  measure(document: never): Measured;
}

/** A target with its port: `[address]:port` or `name:port`. */
const WITH_PORT = /^(?:\[(.*)\]|([^:]*)):(\d+)$/;

/** A ping of a port. Over TCP only an open port is a success, over UDP every answer. */
const portModule = (protocol: "tcp" | "udp") =>
  ({
    tool: "ping",
    texts: { protocol: [protocol], count: ["4"] },
    measure({ results, stats, details: { port } }: PingResult) {
      const info = { protocol, port: `${port?.port}`, state: port?.state ?? "silent" };
      return {
        ...ofPing(results, stats),
        ...(protocol === "tcp" && { probe_success: Number(info.state === "open") }),
        probe_port_info: [[info, 1]],
      };
    },
  }) as const satisfies Module;

/** Every module, by the name in `module`. */
const MODULES = {
  ping6: {
    tool: "ping",
    measure: ({ results, stats }: PingResult) => ({
      ...ofPing(results, stats),
      probe_icmp_duration_seconds: stats.avg && [[{ phase: "rtt" }, stats.avg / 1000]],
      probe_icmp_reply_hop_limit: results[0]?.ttl ?? null,
    }),
  },
  tcp6: portModule("tcp"),
  udp6: portModule("udp"),
  trace6: { tool: "trace", measure: ({ hops }: TraceResult) => ofPath(hops) },
  mtr6: {
    tool: "mtr",
    measure({ hops, details: { reached, toTarget } }: MtrResult) {
      const loss = reached ? toTarget.loss : null;
      return { ...ofPath(hops), probe_loss_ratio: loss === null ? null : loss / 100 };
    },
  },
  mtu6: { tool: "mtu", measure: ({ mtu }: MtuResult) => ({ probe_mtu_bytes: mtu }) },
  dns6: {
    tool: "dns",
    measure: ({ records, queryTime, details: { server } }: DnsResult) => ({
      probe_ip_protocol: server?.startsWith("[") ? 6 : 4,
      probe_dns_answer_rrs: records.length,
      probe_dns_duration_seconds: [[{ phase: "request" }, queryTime / 1000]],
    }),
  },
  check6: {
    tool: "check",
    measure: ({ details: { verdict } }: CheckResult) => ({
      probe_check_info: [[{ code: verdict.code }, 1]],
    }),
  },
  here6: {
    tool: "here",
    measure: ({ details: { verdict } }: HereResult) => ({
      probe_here_info: [[{ code: verdict.code }, 1]],
    }),
  },
} as const satisfies Readonly<Record<string, Module>>;

const MODULE = choiceParameter(Object.keys(MODULES), {
  default: "ping6",
  example: "ping6",
  description: "What to measure.",
});

/** The target of a module: its endpoint has it in the path, `/probe` in the query. */
const TARGET = { ...targetParameter, in: "query", expected: "a name or an IPv6 address" } as const;

/** The result or the error of a location; without one, of this service. */
interface Outcome {
  readonly location?: string | undefined;
  readonly result?: Result;
  readonly error?: { readonly code: string };
}

/** A result, or those of several locations. */
type Result = { ip?: string; details?: { location?: string }; locations?: readonly Outcome[] };

/**
 * Runs the module of a request on its target, at each location that it names. A wrong request is a 400, and a service
 * or location that cannot probe now is a 503, so that `probe_success 0` always means a fault of the target or the path.
 */
export async function probeResponse(
  request: Request,
  allowSeconds: (seconds: number) => void,
  services: Services,
): Promise<Response> {
  const startMs = performance.now();
  const { searchParams: query } = new URL(request.url);
  const signal = signalOf(request);
  let module: Module = MODULES.ping6;
  let outcomes: readonly Outcome[];
  try {
    const wanted = readRequest(query);
    module = wanted.module;
    const call = { signal, address: null, client: "probe", allowSeconds };
    const result = (await wanted.endpoint.handle(wanted.values, call, services)) as Result;
    outcomes = result.locations ?? [{ location: result.details?.location, result }];
  } catch (error) {
    const apiError = error instanceof ApiError ? error : null;
    if (apiError?.status === 400) return Response.json(apiError.body, { status: 400 });
    if (apiError && OWN_ERRORS.includes(apiError.code))
      return Response.json(apiError.body, { status: 503 });
    if (apiError === null && !signal.aborted) throw error;
    const code = apiError?.code ?? "TIMEOUT";
    const locations = query.get(FROM)?.split(",") ?? [undefined];
    outcomes = locations.map((location) => ({ location, error: { code } }));
  }
  const seconds = (performance.now() - startMs) / 1000;
  const measured = outcomes.map(({ location, ...outcome }) => ({
    place: location === undefined ? {} : { location },
    readings: readingsOf(module, outcome, seconds),
  }));
  const families = (Object.keys(HELP) as (keyof typeof HELP)[]).flatMap((name): Metric[] => {
    const samples = measured.flatMap(({ place, readings: { [name]: reading } }) =>
      samplesOf(reading ?? []).map(([labels, value]) => [{ ...place, ...labels }, value] as const),
    );
    const type = name === "probe_rtt_seconds" ? "summary" : "gauge";
    return samples.length === 0 ? [] : [{ ...gauge(name, HELP[name], () => samples), type }];
  });
  return respondMetrics(families);
}

/** The module that a request names, its endpoint, and the values of the endpoint's parameters. Throws ApiError. */
function readRequest(query: URLSearchParams) {
  const sent = Object.fromEntries([...query.keys()].map((name) => [name, query.getAll(name)]));
  const read = (parameters: Parameters) =>
    readParameters(parameters, { param: () => undefined, queries: () => sent });
  const module: Module = MODULES[read({ module: MODULE })["module"] as keyof typeof MODULES];
  const endpoint = servedEndpoint(toolNamed(module.tool));
  const hasTarget = endpoint.path.includes("{");
  const destination = hasTarget ? (read({ target: TARGET })["target"] as string) : "";
  const [, address, name, port] = (module.texts && WITH_PORT.exec(destination)) || [];
  const target = address ?? name ?? destination;
  // Routers that choose by flow label use the same path at each scrape.
  const flowLabel = [String(Bun.hash.crc32(target) & MAX_FLOW_LABEL)];
  const texts = { flowLabel, names: ["no"], count: ["10"], ...module.texts, ...sent };
  const queries = port ? { ...texts, port: [port, ...(sent["port"] ?? [])] } : texts;
  const given = { param: () => target, queries: () => queries };
  return { module, endpoint, values: readParameters(endpoint.parameters, given) };
}

/** The readings of an outcome; without `probe_success` if the outcome says nothing about the target. */
function readingsOf({ tool, measure }: Module, { result, error }: Outcome, seconds: number) {
  const reason = error?.code ?? "";
  const failure: Measured = { probe_failure_info: [[{ reason }, 1]] };
  const success = Number(result !== undefined && reporterOf(tool).report(result).isAnswered);
  return {
    probe_success: OWN_ERRORS.includes(reason) ? null : success,
    probe_duration_seconds: seconds,
    ...(result?.ip && { probe_ip_protocol: 6, probe_ip_addr_hash: Bun.hash.crc32(result.ip) }),
    ...(result === undefined ? failure : measure(result as never)),
  };
}

/** Aborts when Prometheus has gone or is about to give up. */
function signalOf({ headers, signal }: Request): AbortSignal {
  const seconds = Number(headers.get("X-Prometheus-Scrape-Timeout-Seconds"));
  if (!(seconds > 0 && seconds <= MAX_SCRAPE_SECONDS)) return signal;
  const ms = Math.max(0, seconds - MARGIN_SECONDS) * 1000;
  return AbortSignal.any([signal, AbortSignal.timeout(Math.round(ms))]);
}

function ofPing(results: PingResult["results"], { loss, received }: PingResult["stats"]) {
  const seconds = results.map(({ rtt }) => rtt / 1000).toSorted((a, b) => a - b);
  const quantiles = QUANTILES.map((quantile) => {
    const value = seconds[Math.max(0, Math.ceil(quantile * received) - 1)] ?? Number.NaN;
    return [{ quantile: `${quantile}` }, value] as const;
  });
  return { probe_loss_ratio: loss / 100, probe_rtt_seconds: received === 0 ? null : quantiles };
}

function ofPath(hops: readonly { readonly ip: string | null }[]) {
  const path = hops.map(({ ip }) => ip ?? "*").join(" ");
  return { probe_hops: hops.length, probe_path_hash: Bun.hash.crc32(path) };
}
