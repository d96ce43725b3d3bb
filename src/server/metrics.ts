/** Metrics for Prometheus, on a listener of their own; loaded only if `SIXSCOPE_METRICS_LISTEN` is set. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { ResolverName } from "../config/settings.ts";
import type { DnsClient } from "../dns/client.ts";
import type { Answered, App } from "../http/app.ts";
import type { Tools } from "../http/endpoint.ts";
import type { Keyring } from "../keys/keyring.ts";
import { COMMIT, VERSION } from "../util/version.ts";
import type { CertificateRenewal } from "./certificate.ts";
import { openConnections } from "./connections.ts";

/** Upper bounds in seconds, from a request that is only computed to the longest trace. */
const REQUEST_SECONDS = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30];
const QUERY_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** How often the lag of the event loop is measured. */
const LAG_INTERVAL_MS = 250;

/** What is read when Prometheus asks. */
export interface Sources extends Pick<Tools, "icmp" | "probeSlots"> {
  readonly keyring: Keyring;
  readonly renewal: CertificateRenewal | null;
}

/** Counts what happens, and shows it with the state of the service. */
export class Metrics {
  readonly #registry = new Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE>();
  readonly #requests = new Histogram({
    name: "sixscope_http_request_duration_seconds",
    help: "Time from a request to its response.",
    labelNames: ["route", "status"],
    buckets: REQUEST_SECONDS,
    registers: [this.#registry],
  });
  readonly #errors = new Counter({
    name: "sixscope_http_errors",
    help: "Error responses by code.",
    labelNames: ["code"],
    registers: [this.#registry],
  });
  readonly #queries = new Histogram({
    name: "sixscope_dns_query_duration_seconds",
    help: "Time from a question to its outcome; without transport if no server answered.",
    labelNames: ["resolver", "transport", "outcome"],
    buckets: QUERY_SECONDS,
    registers: [this.#registry],
  });

  constructor() {
    this.#registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  }

  readonly answered = ({ route, status, code, ms }: Answered): void => {
    this.#requests.observe({ route: route ?? "unknown", status }, ms / 1000);
    if (code !== undefined) this.#errors.inc({ code });
  };

  /** The client, with its questions counted. */
  countQueries(resolver: ResolverName, client: DnsClient): DnsClient {
    return {
      query: async (...question) => {
        const outcome = await client.query(...question);
        const transport = "transport" in outcome ? outcome.transport : "";
        const labels = { resolver, transport, outcome: outcome.kind };
        this.#queries.observe(labels, outcome.queryTimeMs / 1000);
        return outcome;
      },
    };
  }

  /** The app that answers `GET /metrics`, also with the state of the service. */
  expose(sources: Sources): App {
    for (const [name, help, read] of gaugesOf(sources)) {
      this.#collect(Gauge, name, help, [], () => [{ value: read() }]);
    }
    this.#collect(
      Gauge,
      "sixscope_build_info",
      "The version that runs.",
      ["version", "commit"],
      () => [{ value: 1, labels: { version: VERSION, commit: COMMIT ?? "" } }],
    );
    this.#collect(
      Counter,
      "sixscope_file_reads",
      "Files that were read again.",
      ["file", "outcome"],
      () =>
        Object.entries({ keys: sources.keyring, certificate: sources.renewal }).flatMap(
          ([file, watched]) =>
            Object.entries(watched?.reads ?? {}).map(([outcome, value]) => ({
              value,
              labels: { file, outcome },
            })),
        ),
    );
    const { icmp } = sources;
    this.#collect(
      Counter,
      "sixscope_probes",
      "Probes, and packets for probes, by what they were.",
      ["outcome"],
      () =>
        Object.entries("unavailable" in icmp ? {} : icmp.counters).map(([outcome, value]) => ({
          value,
          labels: { outcome },
        })),
    );
    return {
      routes: ["/metrics"],
      fetch: async (_, { route }) => {
        if (route === null) return new Response("The metrics are at /metrics.\n", { status: 404 });
        const { contentType } = this.#registry;
        return new Response(await this.#registry.metrics(), {
          headers: { "Content-Type": contentType },
        });
      },
    };
  }

  /** Registers a metric that is read when Prometheus asks. */
  #collect(
    Kind: typeof Gauge | typeof Counter,
    name: string,
    help: string,
    labelNames: string[],
    read: () => readonly { readonly value: number; readonly labels?: Record<string, string> }[],
  ): void {
    new Kind({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const { value, labels = {} } of read()) this.inc(labels, value);
      },
    });
  }
}

/** Name, help and value of what has no labels. */
function gaugesOf({ probeSlots, keyring, renewal }: Sources): [string, string, () => number][] {
  const connections = () =>
    [...openConnections().values()].reduce((sum, { length }) => sum + length, 0);
  return [
    ["sixscope_http_connections", "Open TCP connections.", connections],
    ["sixscope_probe_slots", "Pings and traces that may run at once.", () => probeSlots.limit],
    ["sixscope_probe_slots_used", "Pings and traces that run.", () => probeSlots.running],
    ["sixscope_keys", "API keys that are valid now.", () => keyring.activeCount()],
    [
      "sixscope_keys_file_usable",
      "1 if the keys file could be used.",
      () => Number(keyring.isUsable),
    ],
    ["sixscope_event_loop_lag_seconds", "The longest lag since the last scrape.", measureLag()],
    ["process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss],
    ["process_start_time_seconds", "Unix time of the start.", () => performance.timeOrigin / 1000],
    ...(renewal === null ? [] : [certificateExpiry(renewal)]),
  ];
}

function certificateExpiry(renewal: CertificateRenewal): [string, string, () => number] {
  const name = "sixscope_certificate_expiry_time_seconds";
  return [
    name,
    "Unix time at which the certificate expires.",
    () => renewal.current.expiresMs / 1000,
  ];
}

/** Measures how late timers are; the result returns the longest delay in seconds since its last call. */
function measureLag(): () => number {
  let longestMs = 0;
  let dueMs = performance.now() + LAG_INTERVAL_MS;
  setInterval(() => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - dueMs);
    dueMs = nowMs + LAG_INTERVAL_MS;
  }, LAG_INTERVAL_MS).unref();
  return () => {
    const seconds = longestMs / 1000;
    longestMs = 0;
    return seconds;
  };
}
