/** The metrics of the service, on a listener of their own. */
import { hostname } from "node:os";
import { tryParseIp } from "../addr/ip.ts";
import { ERRORS, type ErrorCode } from "../api/errors.ts";
import { ALL_LOCATIONS, type ResolverName } from "../config/settings.ts";
import type { DnsClient } from "../dns/client.ts";
import { CLIENT_GONE } from "../http/access-log.ts";
import { isFromOtherSite } from "../http/client-address.ts";
import type { RequestInfo } from "../http/request.ts";
import type { Keyring } from "../keys/keyring.ts";
import type { Locations } from "../locations/locations.ts";
import type { Networks } from "../networks/networks.ts";
import { tryRead } from "../platform/regular-file.ts";
import type { Services } from "../tools/services.ts";
import { COMMIT, VERSION } from "../util/version.ts";
import type { Shared } from "../valkey/shared.ts";
import type { WatchRow } from "../watch/result.ts";
import type { Watcher } from "../watch/watcher.ts";
import type { App } from "./app.ts";
import { probeResponse } from "./blackbox.ts";
import type { CertificateRenewal } from "./certificate.ts";
import { openConnections } from "./connections.ts";
import {
  counter,
  gauge,
  histogram,
  type Metric,
  respondMetrics,
  type Sample,
} from "./exposition.ts";
import type { reportWaiting } from "./waiting.ts";

/** Upper bounds of buckets in seconds: those of requests reach from a mere computation to the longest trace. */
const REQUEST_SECONDS = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30];
const QUERY_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const CALL_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1];
const LAG_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

/** The names of this machine with dots, as its files have them; nobody else can add one. */
const OWN_NAMES = ownNames(
  hostname(),
  tryRead("/etc/hosts") ?? "",
  tryRead("/etc/resolv.conf") ?? "",
);

/** The time between measurements of the event loop's lag. */
const LAG_INTERVAL_MS = 250;

/** The parts of the service that each scrape reads; `shared` is null for an instance that is alone. */
export interface Sources extends Services {
  /** Null for an agent, which reads no keys. */
  readonly keyring: Keyring | null;
  readonly renewal: CertificateRenewal | null;
  readonly locations: Locations | null;
  /** Null for an agent, which watches nothing. */
  readonly watching: Watcher | null;
  readonly networks: Networks | null;
  readonly shared: Shared | null;
  /** The client that waited longest in the last minute. */
  readonly longestWait: ReturnType<typeof reportWaiting>;
}

/** Counts events, and shows the counts with the state of the service. */
export function createMetrics() {
  const requests = histogram(
    "sixscope_http_request_duration_seconds",
    "Time from a request to its response, or to the end of its events; without route for an unknown path.",
    REQUEST_SECONDS,
  );
  const queries = histogram(
    "sixscope_dns_query_duration_seconds",
    "Time from a question to its outcome; without transport if no server answered.",
    QUERY_SECONDS,
  );
  const calls = histogram(
    "sixscope_valkey_call_duration_seconds",
    "Time of the calls of requests to Valkey, by outcome.",
    CALL_SECONDS,
  );
  const lag = histogram("sixscope_event_loop_lag_seconds", "How late timers are.", LAG_SECONDS);
  // All codes are there from the start, so that the first error of a code is an increase too.
  const codes = Object.keys(ERRORS) as ErrorCode[];
  const errors = Object.fromEntries(codes.map((code) => [code, 0])) as Record<ErrorCode, number>;
  let hereCode: string | null = null;
  const here = gauge("sixscope_here", "1 for what the last look at this machine found.", () =>
    hereCode === null ? [] : [[{ code: hereCode }, 1]],
  );
  let dueMs = performance.now() + LAG_INTERVAL_MS;
  setInterval(() => {
    const nowMs = performance.now();
    lag.observe(Math.max(0, nowMs - dueMs) / 1000);
    dueMs = nowMs + LAG_INTERVAL_MS;
  }, LAG_INTERVAL_MS).unref();
  return {
    answered({ route, code }: RequestInfo, status: number, ms: number): void {
      requests.observe(ms / 1000, { route: route ?? "", status: String(status) });
      if (code !== undefined && status !== CLIENT_GONE) errors[code] += 1;
    },
    /** Wraps a client so that its questions are counted. */
    countQueries: (resolver: ResolverName, client: DnsClient): DnsClient => ({
      query: async (...question) => {
        const startMs = performance.now();
        const outcome = await client.query(...question);
        const transport = "transport" in outcome ? outcome.transport : "";
        const seconds = (performance.now() - startMs) / 1000;
        queries.observe(seconds, { resolver, transport, outcome: outcome.kind });
        return outcome;
      },
    }),
    /** Wraps a look so that its code is shown from then on, unless it was for one interface. */
    noteLooks:
      (look: NonNullable<Services["look"]>): typeof look =>
      async (...question) => {
        const result = await look(...question);
        const [, wanted] = question;
        if (wanted === null) hereCode = result.verdict.code;
        return result;
      },
    /** The app that answers `/metrics`, also with the state of the service, and `/probe`. */
    expose(sources: Sources): App {
      const { shared } = sources;
      if (shared) shared.valkey.onCall = (ms, outcome) => calls.observe(ms / 1000, { outcome });
      const metrics = [
        requests,
        counter("sixscope_http_errors", "Error responses by code.", () => byLabel("code", errors)),
        queries,
        lag,
        here,
        ...processMetrics(),
        ...stateMetrics(sources),
        ...probeMetrics(sources),
        ...(sources.watching ? watchMetrics(sources.watching) : []),
        ...(shared ? [calls, ...sharedMetrics(shared)] : []),
        ...locationMetrics(sources),
      ];
      return {
        fetch: (request, { allowSeconds }) => {
          const refusal = refusalOf(request);
          if (refusal) return new Response(`${refusal}\n`, { status: 403 });
          const { pathname } = new URL(request.url);
          if (pathname === "/metrics") return respondMetrics(metrics);
          if (pathname === "/probe") return probeResponse(request, allowSeconds, sources);
          return new Response("See /metrics and /probe.\n", { status: 404 });
        },
      };
    },
  };
}

/**
 * The reason why a request is refused, or null. All who reach this listener may probe, except web pages in a browser
 * on this network, also under a name of theirs that leads here (DNS rebinding).
 */
function refusalOf({ url, headers }: Request): string | null {
  if (headers.has("origin") || isFromOtherSite(headers)) {
    return "Metrics are not for web pages of others; open this address yourself, or ask without a browser.";
  }
  const name = URL.parse(url)?.hostname.replace(/\.$/, "") ?? "";
  // Nobody can register a name without a dot.
  const isSafe = !name.includes(".") || OWN_NAMES.has(name) || tryParseIp(name) !== null;
  return name && isSafe ? null : "Use an address of this machine, its host name, or localhost.";
}

/**
 * The full names of a machine: its host name, that name in its search domains, and its names in `/etc/hosts`.
 */
export function ownNames(host: string, hosts: string, resolvConf: string): ReadonlySet<string> {
  const own = host.toLowerCase();
  const [label = ""] = own.split(".");
  const words = (text: string) => text.toLowerCase().split(/\s+/);
  const domains = resolvConf
    .split("\n")
    .map(words)
    .flatMap(([keyword, ...rest]) => (keyword === "search" || keyword === "domain" ? rest : []));
  const aliases = hosts.split("\n").flatMap((line) => words(line.replace(/#.*/, "")).slice(1));
  return new Set([
    own,
    ...domains.map((domain) => `${label}.${domain}`),
    ...aliases.filter((name) => name.startsWith(`${label}.`)),
  ]);
}

function processMetrics(): readonly Metric[] {
  const build = { version: VERSION, commit: COMMIT ?? "" };
  const startSeconds = performance.timeOrigin / 1000;
  const cpuSeconds = ({ user, system } = process.cpuUsage()) => (user + system) / 1e6;
  return [
    gauge("sixscope_build_info", "The version that runs.", () => [[build, 1]]),
    gauge("process_start_time_seconds", "Unix time of the start.", () => startSeconds),
    counter("process_cpu_seconds", "CPU time used.", () => cpuSeconds()),
    gauge("process_resident_memory_bytes", "Resident memory.", process.memoryUsage.rss),
  ];
}

function stateMetrics({ keyring, renewal, networks }: Sources): readonly Metric[] {
  const reads = () =>
    Object.entries({ keys: keyring, certificate: renewal, networks }).flatMap(([file, watched]) =>
      Object.entries(watched?.reads ?? {}).map(
        ([outcome, count]) => [{ file, outcome }, count] as const,
      ),
    );
  const ofKeys = (keys: Keyring) => [
    gauge("sixscope_keys", "API keys that are valid now.", () => keys.activeCount()),
    gauge("sixscope_keys_file_usable", "1 if the keys file could be used.", () =>
      Number(keys.isUsable()),
    ),
  ];
  const expirySeconds = () => (renewal?.current().expiresMs ?? 0) / 1000;
  const expiryHelp = "Unix time at which the certificate expires.";
  const expiry = gauge("sixscope_certificate_expiry_timestamp_seconds", expiryHelp, expirySeconds);
  return [
    gauge("sixscope_tcp_connections", "Open TCP connections, also to resolvers.", openConnections),
    ...(keyring ? ofKeys(keyring) : []),
    counter("sixscope_file_reads", "Files that were read again.", reads),
    ...(renewal ? [expiry] : []),
  ];
}

function sharedMetrics({ valkey, keys }: Shared): readonly Metric[] {
  const ageSeconds = () => keys.ageMs() / 1000;
  const instances = () => valkey.instances;
  return [
    gauge("sixscope_valkey_up", "1 if Valkey answers.", () => Number(valkey.isUp)),
    gauge("sixscope_valkey_instances", "Instances that Valkey counted last.", instances),
    gauge("sixscope_keys_age_seconds", "Time since the keys were last as in Valkey.", ageSeconds),
  ];
}

function probeMetrics({ icmp, probeSlots: slots, longestWait }: Sources): readonly Metric[] {
  const isUsable = Number(!("unavailable" in icmp));
  const longestWaitHelp = "What the client that waited longest did, in the last minute.";
  const waited = () => {
    const { client, seconds = 0 } = longestWait() ?? {};
    return [[client ? { client } : {}, seconds] as const];
  };
  const always = [
    gauge("sixscope_probe_slots", "Pings and traces that may run at once.", () => slots.limit),
    gauge("sixscope_probe_slots_used", "Pings and traces that run.", () => slots.running),
    gauge("sixscope_longest_wait_seconds", longestWaitHelp, waited),
    gauge("sixscope_raw_socket_usable", "1 if the service can ping and trace.", () => isUsable),
  ];
  if ("unavailable" in icmp) return always;
  const { counters } = icmp;
  const failed = () => byLabel("reason", { refused: counters.refused, dropped: counters.dropped });
  const packets = () => {
    const { sent, answered, refused, dropped, ...unusual } = counters;
    return byLabel("kind", unusual);
  };
  const failedHelp =
    "Probes that say nothing: the kernel refused to send them, or dropped packets while they waited.";
  return [
    ...always,
    counter("sixscope_probes_sent", "Probes sent.", () => counters.sent),
    counter("sixscope_probes_answered", "Probes answered in time.", () => counters.answered),
    counter("sixscope_probes_failed", failedHelp, failed),
    counter("sixscope_probe_packets", "Unusual packets for probes.", packets),
  ];
}

function locationMetrics({ locations }: Sources): readonly Metric[] {
  if (locations === null || locations.isConnected === null) return [];
  const present = () => locations.byWord().get(ALL_LOCATIONS) ?? [];
  const isConnected = () => Number(locations.isConnected);
  const asked = () => byLabel("outcome", locations.asked);
  const { running } = locations;
  const isUp = (location: string) => [{ location }, Number(present().includes(location))] as const;
  const expected = () => locations.expected.map(isUp);
  return [
    gauge("sixscope_nats_connected", "1 if there is a connection to NATS.", isConnected),
    gauge(
      "sixscope_locations",
      "Locations that can be asked, with the own.",
      () => present().length,
    ),
    gauge("sixscope_location_up", "1 if an expected location can be asked.", expected),
    counter("sixscope_location_asks", "Questions to other locations.", asked),
    gauge("sixscope_location_answers_running", "Questions of other instances that run.", running),
  ];
}

function watchMetrics(watching: Watcher): readonly Metric[] {
  const ofEach = (samples: (watch: WatchRow) => readonly Sample[]) => () =>
    watching.list().watches.flatMap(samples);
  const verdicts = ofEach(({ name, verdict }) =>
    verdict ? [[{ name, code: verdict.code }, 1]] : [],
  );
  const lastRuns = ofEach(({ name, last }) =>
    last ? [[{ name }, Date.parse(last.at) / 1000]] : [],
  );
  const changes = ofEach(({ name }) => {
    const kinds = { flap: 0, ...Object.fromEntries(watching.changeCounts.get(name) ?? []) };
    return Object.entries(kinds).map(([kind, count]) => [{ name, kind }, count]);
  });
  const lastRunHelp = "Unix time at which the last run of a watch began.";
  return [
    gauge("sixscope_watch_verdict", "1 for what the last run of a watch found.", verdicts),
    gauge("sixscope_watch_last_run_timestamp_seconds", lastRunHelp, lastRuns),
    counter("sixscope_watch_changes", "Changes of a watch, by kind.", changes),
  ];
}

function byLabel(name: string, values: Readonly<Record<string, number>>) {
  return Object.entries(values).map(([label, value]) => [{ [name]: label }, value] as const);
}
