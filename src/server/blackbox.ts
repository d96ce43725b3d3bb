/** `/probe`: one ping, trace or query for Prometheus, with the names of blackbox_exporter. */
import type { Services } from "../api/endpoint.ts";
import { ApiError, type ErrorCode } from "../api/errors.ts";
import { readParameters, sentTexts } from "../api/parameters.ts";
import type { DnsResult } from "../tools/dns/endpoint.ts";
import { MAX_FLOW_LABEL } from "../tools/hops.ts";
import type { MtrResult } from "../tools/mtr/endpoint.ts";
import type { MtuResult } from "../tools/mtu/endpoint.ts";
import type { PingResult } from "../tools/ping/endpoint.ts";
import { reporterOf, type ToolName } from "../tools/reports.ts";
import { toolNamed } from "../tools/table.ts";
import type { TraceResult } from "../tools/trace/endpoint.ts";
import { gauge, type Reading, respondMetrics } from "./exposition.ts";

/** Time for the answer before Prometheus gives up, as blackbox_exporter has it. */
const MARGIN_SECONDS = 0.5;

/** Errors that say nothing about the target. */
const OWN_ERRORS: readonly ErrorCode[] = ["TOO_MANY_PROBES", "ICMP_UNAVAILABLE"];

const QUANTILES = [0, 0.5, 0.9, 1];

type Measurement = readonly [name: string, help: string, reading: Reading];

/** A tool as a module for Prometheus. */
interface Module {
  readonly tool: ToolName;
  /** Parameters beyond those of every module, unless the request has them. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** Reads the document. */
  measure(document: never): readonly Measurement[];
}

/** Every module, by the name in `module`. */
const MODULES: Readonly<Record<string, Module>> = {
  ping6: {
    tool: "ping",
    defaults: { count: "10" },
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
};

/**
 * Runs the module of a request on its target. A wrong request is a 400, and a service that cannot probe
 * now a 503, so that only what the target or the path does is `probe_success 0`.
 */
export async function probeResponse(
  request: Request,
  allowSeconds: (seconds: number) => void,
  services: Services,
): Promise<Response> {
  const {
    module: name = "ping6",
    target,
    ...parameters
  } = Object.fromEntries(new URL(request.url).searchParams);
  const module = Object.hasOwn(MODULES, name) ? MODULES[name] : undefined;
  if (module === undefined) {
    return refuse(400, `module ${name} is not one of ${Object.keys(MODULES).join(", ")}`);
  }
  if (target === undefined) return refuse(400, "the parameter target is missing");
  const { tool, measure } = module;
  const { endpoint } = toolNamed(tool);
  const startMs = performance.now();
  const signal = signalOf(request);
  let success = false;
  let measurements: readonly Measurement[] = [];
  try {
    // The same path at each scrape, where routers choose by flow label.
    const flowLabel = String(Bun.hash.crc32(target) & MAX_FLOW_LABEL);
    const defaults = { flowLabel, names: "no", ...module.defaults };
    const sent = sentTexts({ ...defaults, ...parameters, target, hostname: target });
    const call = { signal, address: null, owner: "probe", allowSeconds };
    const values = readParameters(endpoint.parameters, sent);
    const document = (await endpoint.handle(values, call, services)) as object;
    success = reporterOf(tool).report(document).isAnswered;
    measurements = measure(document as never);
  } catch (error) {
    const known = error instanceof ApiError ? error : null;
    if (known?.status === 400) return refuse(400, known.message);
    if (known && OWN_ERRORS.includes(known.code)) return refuse(503, known.message);
    if (known === null && !signal.aborted) throw error;
    const reason = known?.code ?? "TIMEOUT";
    measurements = [["probe_failure_info", "Why there is no result.", [[{ reason }, 1]]]];
  }
  const seconds = (performance.now() - startMs) / 1000;
  const all: readonly Measurement[] = [
    ["probe_success", "1 if the probe succeeded.", Number(success)],
    ["probe_duration_seconds", "How long the probe took.", seconds],
    ...measurements,
  ];
  return respondMetrics(all.map(([name, help, reading]) => gauge(name, help, () => reading)));
}

/** Aborts when Prometheus has gone or is about to give up. */
function signalOf({ headers, signal }: Request): AbortSignal {
  const seconds = Number(headers.get("X-Prometheus-Scrape-Timeout-Seconds"));
  if (!(seconds > 0)) return signal;
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

function refuse(status: number, reason: string): Response {
  return new Response(`${reason}\n`, { status });
}
