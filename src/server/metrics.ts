/** Metrics for Prometheus; loaded only if `SIXSCOPE_METRICS_LISTEN` is set. */
import { Counter, Gauge, Histogram } from "prom-client";
import type { ResolverName } from "../config/settings.ts";
import type { DnsClient } from "../dns/client.ts";
import type { Answered, App } from "../http/app.ts";
import type { Tools } from "../http/endpoint.ts";
import { ERRORS } from "../http/errors.ts";
import type { Keyring } from "../keys/keyring.ts";
import { COMMIT, VERSION } from "../util/version.ts";
import type { CertificateRenewal } from "./certificate.ts";
import { openConnections } from "./connections.ts";
import { addMetric, openMetrics, type Reading, respondMetrics } from "./exposition.ts";
import { probeResponse } from "./probe.ts";

/** Upper bounds in seconds, from a request that is only computed to the longest trace. */
const REQUEST_SECONDS = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30];
const QUERY_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const LAG_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

/** How often the lag of the event loop is measured. */
const LAG_INTERVAL_MS = 250;

/** What is read when Prometheus asks. */
export interface Sources extends Tools {
  readonly keyring: Keyring;
  readonly renewal: CertificateRenewal | null;
}

/** Counts what happens, and shows it with the state of the service. */
export class Metrics {
  readonly #registry = openMetrics();
  readonly #requests = new Histogram({
    name: "sixscope_http_request_duration_seconds",
    help: "Time from a request to its response, or to the end of its events; without route for an unknown path.",
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
  readonly #lag = new Histogram({
    name: "sixscope_event_loop_lag_seconds",
    help: "How late timers are.",
    buckets: LAG_SECONDS,
    registers: [this.#registry],
  });

  constructor() {
    // So that the first error of a code is an increase too.
    for (const code of Object.keys(ERRORS)) this.#errors.inc({ code }, 0);
    let dueMs = performance.now() + LAG_INTERVAL_MS;
    setInterval(() => {
      const nowMs = performance.now();
      this.#lag.observe(Math.max(0, nowMs - dueMs) / 1000);
      dueMs = nowMs + LAG_INTERVAL_MS;
    }, LAG_INTERVAL_MS).unref();
  }

  readonly answered = ({ route, status, code, ms }: Answered): void => {
    this.#requests.observe({ route: route ?? "", status }, ms / 1000);
    if (code !== undefined) this.#errors.inc({ code });
  };

  /** The client, with its questions counted. */
  countQueries(resolver: ResolverName, client: DnsClient): DnsClient {
    return {
      query: async (...question) => {
        const startMs = performance.now();
        const outcome = await client.query(...question);
        const transport = "transport" in outcome ? outcome.transport : "";
        const seconds = (performance.now() - startMs) / 1000;
        this.#queries.observe({ resolver, transport, outcome: outcome.kind }, seconds);
        return outcome;
      },
    };
  }

  /** The app that answers `/metrics`, also with the state of the service, and `/probe`. */
  expose(sources: Sources): App {
    this.#show(sources);
    return {
      routes: ["/metrics", "/probe"],
      fetch: (request, { route, allowSeconds }) => {
        if (route === "/metrics") return respondMetrics(this.#registry);
        if (route === "/probe") return probeResponse(request, allowSeconds, sources);
        return new Response("See /metrics and /probe.\n", { status: 404 });
      },
    };
  }

  /** Adds what is read when Prometheus asks. */
  #show({ icmp, probeSlots, keyring, renewal }: Sources): void {
    const add = (
      Kind: typeof Gauge | typeof Counter,
      name: string,
      help: string,
      read: () => Reading,
    ) => addMetric(this.#registry, Kind, name, help, read);

    add(Gauge, "sixscope_build_info", "The version that runs.", () => [
      [{ version: VERSION, commit: COMMIT ?? "" }, 1],
    ]);
    add(
      Gauge,
      "process_start_time_seconds",
      "Unix time of the start.",
      () => performance.timeOrigin / 1000,
    );
    add(Counter, "process_cpu_seconds", "CPU time used.", () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    });
    add(Gauge, "process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss);
    add(Gauge, "sixscope_tcp_connections", "Open TCP connections, also to resolvers.", () =>
      [...openConnections().values()].reduce((sum, { length }) => sum + length, 0),
    );
    add(
      Gauge,
      "sixscope_probe_slots",
      "Pings and traces that may run at once.",
      () => probeSlots.limit,
    );
    add(Gauge, "sixscope_probe_slots_used", "Pings and traces that run.", () => probeSlots.running);
    add(Gauge, "sixscope_raw_socket_usable", "1 if the service can ping and trace.", () =>
      Number(!("unavailable" in icmp)),
    );
    if (!("unavailable" in icmp)) {
      const { counters } = icmp;
      add(Counter, "sixscope_probes_sent", "Probes sent.", () => counters.sent);
      add(Counter, "sixscope_probes_answered", "Probes answered in time.", () => counters.answered);
      add(
        Counter,
        "sixscope_probes_failed",
        "Probes that say nothing: the kernel refused to send them, or dropped packets while they waited.",
        () => {
          const { refused, dropped } = counters;
          return byLabel("reason", { refused, dropped });
        },
      );
      add(Counter, "sixscope_probe_packets", "Unusual packets for probes.", () => {
        const { sent, answered, refused, dropped, ...unusual } = counters;
        return byLabel("kind", unusual);
      });
    }
    add(Gauge, "sixscope_keys", "API keys that are valid now.", () => keyring.activeCount());
    add(Gauge, "sixscope_keys_file_usable", "1 if the keys file could be used.", () =>
      Number(keyring.isUsable),
    );
    if (renewal !== null) {
      add(
        Gauge,
        "sixscope_certificate_expiry_timestamp_seconds",
        "Unix time at which the certificate expires.",
        () => renewal.current.expiresMs / 1000,
      );
    }
    add(Counter, "sixscope_file_reads", "Files that were read again.", () =>
      Object.entries({ keys: keyring, certificate: renewal }).flatMap(([file, watched]) =>
        Object.entries(watched?.reads ?? {}).map(
          ([outcome, count]) => [{ file, outcome }, count] as const,
        ),
      ),
    );
  }
}

function byLabel(name: string, values: Readonly<Record<string, number>>): Reading {
  return Object.entries(values).map(([label, value]) => [{ [name]: label }, value]);
}
