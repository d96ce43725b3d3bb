/** `/probe`: one ping, trace or query for Prometheus, with the names of blackbox_exporter. */
import { type Endpoint, FROM, type Services } from "../api/endpoint.ts";
import { ApiError, type ErrorCode } from "../api/errors.ts";
import { choiceParameter, type Parameters, readParameters } from "../api/parameters.ts";
import type { DnsResult } from "../tools/dns/endpoint.ts";
import { MAX_FLOW_LABEL } from "../tools/hops.ts";
import type { MtrResult } from "../tools/mtr/endpoint.ts";
import type { MtuResult } from "../tools/mtu/endpoint.ts";
import type { PingResult } from "../tools/ping/endpoint.ts";
import { reporterOf, type ToolName } from "../tools/reports.ts";
import { targetParameter } from "../tools/run.ts";
import { toolNamed } from "../tools/table.ts";
import type { TraceResult } from "../tools/trace/endpoint.ts";
import { ENDPOINTS } from "./endpoints.ts";
import { gauge, type Reading, respondMetrics } from "./exposition.ts";

/** Time for the answer before Prometheus gives up, as blackbox_exporter has it. */
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

type Measurement = readonly [name: string, help: string, reading: Reading];

/** A tool as a module for Prometheus. */
interface Module {
  readonly tool: ToolName;
  /** Parameters beyond those of every module, unless the request has them. */
  readonly defaults?: Readonly<Record<string, string[]>>;
  /** Reads the document. */
  measure(document: never): readonly Measurement[];
}

/** Every module, by the name in `module`. */
const MODULES = {
  ping6: {
    tool: "ping",
    defaults: { count: ["10"] },
    measure({ ip, results, stats: { loss, received, avg } }: PingResult) {
      const measured = [...addressMetrics(ip), lossRatio(loss / 100)];
      const [first] = results;
      if (first === undefined || avg === null) return measured;
      const seconds = results.map(({ rtt }) => rtt / 1000).toSorted((a, b) => a - b);
      const quantiles = QUANTILES.map((quantile) => {
        const value = seconds[Math.max(0, Math.ceil(quantile * received) - 1)] ?? Number.NaN;
        return [{ quantile: `${quantile}` }, value] as const;
      });
      const mean = [[{ phase: "rtt" }, avg / 1000]] as const;
      return [
        ...measured,
        ["probe_rtt_seconds", "Round-trip times.", quantiles],
        ["probe_icmp_duration_seconds", "The mean round-trip time.", mean],
        ["probe_icmp_reply_hop_limit", "The hop limit of the first reply.", first.ttl],
      ];
    },
  },
  trace6: {
    tool: "trace",
    measure: ({ ip, hops }: TraceResult) => [...addressMetrics(ip), ...pathMetrics(hops)],
  },
  mtr6: {
    tool: "mtr",
    measure({ ip, hops, details: { reached, toTarget } }: MtrResult) {
      const loss = reached ? toTarget.loss : null;
      const measured = [...addressMetrics(ip), ...pathMetrics(hops)];
      return loss === null ? measured : [...measured, lossRatio(loss / 100)];
    },
  },
  mtu6: {
    tool: "mtu",
    measure: ({ ip, mtu }: MtuResult) => [
      ...addressMetrics(ip),
      ...(mtu === null ? [] : [["probe_mtu_bytes", "The path MTU.", mtu] as const]),
    ],
  },
  dns6: {
    tool: "dns",
    measure({ records, queryTime, details: { server } }: DnsResult) {
      const time = [[{ phase: "request" }, queryTime / 1000]] as const;
      return [
        protocolMetric(server?.startsWith("[") ? 6 : 4),
        ["probe_dns_answer_rrs", "Records in the answer.", records.length],
        ["probe_dns_duration_seconds", "Time from the query to the answer.", time],
      ];
    },
  },
} as const satisfies Readonly<Record<string, Module>>;

const DEFAULT = { default: "ping6", example: "ping6" };

/** Parameters of every module, beside those of its endpoint. */
const PARAMETERS = {
  module: choiceParameter(Object.keys(MODULES), { ...DEFAULT, description: "What to measure." }),
  target: { ...targetParameter, in: "query", expected: "a name or an IPv6 address" },
} satisfies Parameters;

/** The result or the error of a location; without one, of this service. */
interface Outcome {
  readonly location?: string | undefined;
  readonly result?: Result;
  readonly error?: { readonly code: string };
}

/** A result, or those of several locations. */
type Result = { details?: { location?: string }; locations?: readonly Outcome[] };

/**
 * Runs the module of a request on its target, at each location that it names. A wrong request is a 400,
 * and a service or a location that cannot probe now a 503, so that only what the target or the path does
 * is `probe_success 0`.
 */
export async function probeResponse(
  request: Request,
  allowSeconds: (seconds: number) => void,
  services: Services,
): Promise<Response> {
  const startMs = performance.now();
  const { searchParams: query } = new URL(request.url);
  const sent = Object.fromEntries([...query.keys()].map((name) => [name, query.getAll(name)]));
  const from = query.get(FROM);
  const signal = signalOf(request);
  let module: Module = MODULES.ping6;
  let outcomes: readonly Outcome[];
  try {
    const asked = readParameters(PARAMETERS, { param: () => undefined, queries: () => sent });
    const target = asked["target"] as string;
    module = MODULES[asked["module"] as keyof typeof MODULES];
    const { path } = toolNamed(module.tool).endpoint;
    const endpoint = ENDPOINTS.find((one) => one.path === path) as Endpoint;
    // The same path at each scrape, where routers choose by flow label.
    const flowLabel = [String(Bun.hash.crc32(target) & MAX_FLOW_LABEL)];
    const all = { flowLabel, names: ["no"], ...module.defaults, ...sent };
    const texts = { param: () => target, queries: () => all };
    const values = readParameters(endpoint.parameters, texts);
    const call = { signal, address: null, owner: "probe", allowSeconds };
    const result = (await endpoint.handle(values, call, services)) as Result;
    outcomes = result.locations ?? [{ location: result.details?.location, result }];
  } catch (error) {
    const known = error instanceof ApiError ? error : null;
    if (known?.status === 400) return Response.json(known.body, { status: 400 });
    if (known && OWN_ERRORS.includes(known.code)) return Response.json(known.body, { status: 503 });
    if (known === null && !signal.aborted) throw error;
    const code = known?.code ?? "TIMEOUT";
    outcomes = (from?.split(",") ?? [undefined]).map((location) => ({ location, error: { code } }));
  }
  const seconds = (performance.now() - startMs) / 1000;
  const all = outcomes.flatMap(({ location, ...outcome }) =>
    measurementsOf(module, outcome, seconds).map(([name, help, reading]) => {
      const samples = typeof reading === "number" ? [[{}, reading] as const] : reading;
      const place = location === undefined ? {} : { location };
      const read = samples.map(([labels, value]) => [{ ...place, ...labels }, value] as const);
      return { name, help, read };
    }),
  );
  const families = [...Map.groupBy(all, ({ name }) => name).values()];
  const readings = (family: typeof all) => () => family.flatMap(({ read }) => read);
  return respondMetrics(
    families.map((of) => gauge(`${of[0]?.name}`, `${of[0]?.help}`, readings(of))),
  );
}

/** The measurements of an outcome; one that says nothing about the target neither succeeded nor failed. */
function measurementsOf(
  { tool, measure }: Module,
  { result, error }: Outcome,
  seconds: number,
): readonly Measurement[] {
  const reason = error?.code ?? "";
  const success = Number(result !== undefined && reporterOf(tool).report(result).isAnswered);
  const saysNothing = OWN_ERRORS.includes(reason);
  return [
    ...(saysNothing ? [] : [["probe_success", "1 if the probe succeeded.", success] as const]),
    ["probe_duration_seconds", "How long the probe took.", seconds],
    ...(result === undefined
      ? [["probe_failure_info", "Why there is no result.", [[{ reason }, 1]]] as const]
      : measure(result as never)),
  ];
}

/** Aborts when Prometheus has gone or is about to give up. */
function signalOf({ headers, signal }: Request): AbortSignal {
  const seconds = Number(headers.get("X-Prometheus-Scrape-Timeout-Seconds"));
  if (!(seconds > 0 && seconds <= MAX_SCRAPE_SECONDS)) return signal;
  const ms = Math.max(0, seconds - MARGIN_SECONDS) * 1000;
  return AbortSignal.any([signal, AbortSignal.timeout(Math.round(ms))]);
}

function addressMetrics(ip: string): readonly Measurement[] {
  return [
    protocolMetric(6),
    ["probe_ip_addr_hash", "Changes with the address.", Bun.hash.crc32(ip)],
  ];
}

function pathMetrics(hops: readonly { readonly ip: string | null }[]): readonly Measurement[] {
  const path = hops.map(({ ip }) => ip ?? "*").join(" ");
  return [
    ["probe_hop_count", "Hops to the end of the trace.", hops.length],
    ["probe_path_hash", "Changes with the addresses of the hops.", Bun.hash.crc32(path)],
  ];
}

function lossRatio(ratio: number): Measurement {
  return ["probe_loss_ratio", "Requests without a reply.", ratio];
}

function protocolMetric(version: 4 | 6): Measurement {
  return ["probe_ip_protocol", "The IP version of the probe.", version];
}
