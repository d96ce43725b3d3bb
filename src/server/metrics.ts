/** The metrics of the service, on a listener of their own. */
import type { ResolverName } from "../config/settings.ts";
import type { DnsClient } from "../dns/client.ts";
import type { Answered, App } from "../http/app.ts";
import type { Tools } from "../http/endpoint.ts";
import { ERRORS, type ErrorCode } from "../http/errors.ts";
import type { Shared } from "../http/middleware.ts";
import type { Keyring } from "../keys/keyring.ts";
import type { SharedKeys } from "../keys/shared-keys.ts";
import type { Locations } from "../locations/locations.ts";
import type { Networks } from "../networks/networks.ts";
import { COMMIT, VERSION } from "../util/version.ts";
import type { Valkey } from "../valkey/valkey.ts";
import type { CertificateRenewal } from "./certificate.ts";
import { openConnections } from "./connections.ts";
import { Histogram, type Metric, metric, type Reading, respondMetrics } from "./exposition.ts";
import { probeResponse } from "./probe.ts";

/** Upper bounds in seconds, from a request that is only computed to the longest trace. */
const REQUEST_SECONDS = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30];
const QUERY_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const CALL_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1];
const LAG_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

/** How often the lag of the event loop is measured. */
const LAG_INTERVAL_MS = 250;

/** What is read when Prometheus asks. */
export interface Sources extends Tools {
  readonly keyring: Keyring;
  readonly renewal: CertificateRenewal | null;
  readonly locations: Locations | null;
  readonly networks: Networks | null;
  /** Null for an instance that is alone. */
  readonly shared: SharedSources | null;
}

/** What is read of Valkey. */
interface SharedSources extends Pick<Shared, "readiness"> {
  readonly valkey: Pick<Valkey, "instances" | "isUp" | "onCall">;
  readonly keys: Pick<SharedKeys, "ageMs">;
}

/** Counts what happens, and shows it with the state of the service. */
export class Metrics {
  readonly #requests = new Histogram(
    "sixscope_http_request_duration_seconds",
    "Time from a request to its response, or to the end of its events; without route for an unknown path.",
    ["route", "status"],
    REQUEST_SECONDS,
  );
  readonly #queries = new Histogram(
    "sixscope_dns_query_duration_seconds",
    "Time from a question to its outcome; without transport if no server answered.",
    ["resolver", "transport", "outcome"],
    QUERY_SECONDS,
  );
  readonly #calls = new Histogram(
    "sixscope_valkey_call_duration_seconds",
    "Time of the calls of requests to Valkey, by outcome.",
    ["outcome"],
    CALL_SECONDS,
  );
  readonly #lag = new Histogram(
    "sixscope_event_loop_lag_seconds",
    "How late timers are.",
    [],
    LAG_SECONDS,
  );
  /** All codes from the start, so that the first error of a code is an increase too. */
  readonly #errors = Object.fromEntries(Object.keys(ERRORS).map((code) => [code, 0])) as Record<
    ErrorCode,
    number
  >;

  constructor() {
    let dueMs = performance.now() + LAG_INTERVAL_MS;
    setInterval(() => {
      const nowMs = performance.now();
      this.#lag.observe(Math.max(0, nowMs - dueMs) / 1000);
      dueMs = nowMs + LAG_INTERVAL_MS;
    }, LAG_INTERVAL_MS).unref();
  }

  readonly answered = ({ route, status, code, ms }: Answered): void => {
    this.#requests.observe(ms / 1000, route ?? "", String(status));
    if (code !== undefined) this.#errors[code] += 1;
  };

  /** The client, with its questions counted. */
  countQueries(resolver: ResolverName, client: DnsClient): DnsClient {
    return {
      query: async (...question) => {
        const startMs = performance.now();
        const outcome = await client.query(...question);
        const transport = "transport" in outcome ? outcome.transport : "";
        const seconds = (performance.now() - startMs) / 1000;
        this.#queries.observe(seconds, resolver, transport, outcome.kind);
        return outcome;
      },
    };
  }

  /** The app that answers `/metrics`, also with the state of the service, and `/probe`. */
  expose(sources: Sources): App {
    const { shared } = sources;
    if (shared) shared.valkey.onCall = (ms, outcome) => this.#calls.observe(ms / 1000, outcome);
    const metrics = [
      this.#requests,
      metric("counter", "sixscope_http_errors", "Error responses by code.", () =>
        byLabel("code", this.#errors),
      ),
      this.#queries,
      this.#lag,
      ...processMetrics(),
      ...stateMetrics(sources),
      ...probeMetrics(sources),
      ...(shared ? [this.#calls, ...sharedMetrics(shared)] : []),
      ...locationMetrics(sources),
    ];
    return {
      readiness: () => shared?.readiness() ?? "ready",
      routes: ["/metrics", "/probe"],
      fetch: (request, { route, allowSeconds }) => {
        if (route === "/metrics") return respondMetrics(metrics);
        if (route === "/probe") return probeResponse(request, allowSeconds, sources);
        return new Response("See /metrics and /probe.\n", { status: 404 });
      },
    };
  }
}

function processMetrics(): readonly Metric[] {
  const build = { version: VERSION, commit: COMMIT ?? "" };
  return [
    metric("gauge", "sixscope_build_info", "The version that runs.", () => [[build, 1]]),
    metric(
      "gauge",
      "process_start_time_seconds",
      "Unix time of the start.",
      () => performance.timeOrigin / 1000,
    ),
    metric("counter", "process_cpu_seconds", "CPU time used.", () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    }),
    metric("gauge", "process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss),
  ];
}

function stateMetrics({ keyring, renewal, networks }: Sources): readonly Metric[] {
  const certificate = renewal && [
    metric(
      "gauge",
      "sixscope_certificate_expiry_timestamp_seconds",
      "Unix time at which the certificate expires.",
      () => renewal.current.expiresMs / 1000,
    ),
  ];
  return [
    metric("gauge", "sixscope_tcp_connections", "Open TCP connections, also to resolvers.", () =>
      [...openConnections().values()].reduce((sum, { length }) => sum + length, 0),
    ),
    metric("gauge", "sixscope_keys", "API keys that are valid now.", () => keyring.activeCount()),
    metric("gauge", "sixscope_keys_file_usable", "1 if the keys file could be used.", () =>
      Number(keyring.isUsable),
    ),
    metric("counter", "sixscope_file_reads", "Files that were read again.", () =>
      Object.entries({ keys: keyring, certificate: renewal, networks }).flatMap(([file, watched]) =>
        Object.entries(watched?.reads ?? {}).map(
          ([outcome, count]) => [{ file, outcome }, count] as const,
        ),
      ),
    ),
    ...(certificate ?? []),
  ];
}

function sharedMetrics({ valkey, keys }: SharedSources): readonly Metric[] {
  return [
    metric("gauge", "sixscope_valkey_up", "1 if Valkey answers.", () => Number(valkey.isUp)),
    metric(
      "gauge",
      "sixscope_valkey_instances",
      "Instances that Valkey counted last.",
      () => valkey.instances,
    ),
    metric(
      "gauge",
      "sixscope_keys_age_seconds",
      "Time since the keys were last as in Valkey.",
      () => keys.ageMs / 1000,
    ),
  ];
}

function probeMetrics({ icmp, probeSlots }: Sources): readonly Metric[] {
  const slots = [
    metric(
      "gauge",
      "sixscope_probe_slots",
      "Pings and traces that may run at once.",
      () => probeSlots.limit,
    ),
    metric(
      "gauge",
      "sixscope_probe_slots_used",
      "Pings and traces that run.",
      () => probeSlots.running,
    ),
    metric("gauge", "sixscope_raw_socket_usable", "1 if the service can ping and trace.", () =>
      Number(!("unavailable" in icmp)),
    ),
  ];
  if ("unavailable" in icmp) return slots;
  const { counters } = icmp;
  return [
    ...slots,
    metric("counter", "sixscope_probes_sent", "Probes sent.", () => counters.sent),
    metric(
      "counter",
      "sixscope_probes_answered",
      "Probes answered in time.",
      () => counters.answered,
    ),
    metric(
      "counter",
      "sixscope_probes_failed",
      "Probes that say nothing: the kernel refused to send them, or dropped packets while they waited.",
      () => {
        const { refused, dropped } = counters;
        return byLabel("reason", { refused, dropped });
      },
    ),
    metric("counter", "sixscope_probe_packets", "Unusual packets for probes.", () => {
      const { sent, answered, refused, dropped, ...unusual } = counters;
      return byLabel("kind", unusual);
    }),
  ];
}

function locationMetrics({ locations }: Sources): readonly Metric[] {
  if (locations === null || locations.isConnected === null) return [];
  return [
    metric("gauge", "sixscope_nats_connected", "1 if there is a connection to NATS.", () =>
      Number(locations.isConnected),
    ),
    metric(
      "gauge",
      "sixscope_locations",
      "Locations that can be asked, with the own.",
      () => locations.list().length,
    ),
    metric("counter", "sixscope_location_asks", "Asks to other locations.", () =>
      byLabel("outcome", locations.asked),
    ),
    metric(
      "gauge",
      "sixscope_location_answers_running",
      "Asks of other instances that run.",
      () => locations.running,
    ),
  ];
}

function byLabel(name: string, values: Readonly<Record<string, number>>): Reading {
  return Object.entries(values).map(([label, value]) => [{ [name]: label }, value]);
}
