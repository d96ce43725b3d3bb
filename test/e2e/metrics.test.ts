/** Health and metrics of the running service. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { metricsText, metricsUrl, until, value } from "../lab/metrics.ts";
import { freePort } from "../lab/port.ts";
import { run, runIp } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";

const missing = labMissing ?? programMissing("knotd");
const labTest = testWith(missing);
const userTest = testWith(missing, programMissing("setpriv"));
const promtoolTest = testWith(missing, programMissing("promtool"), programMissing("setpriv"));

/** An address of this machine that is not loopback's. */
const OTHER = "2001:db8:9::1";

const SETTINGS = { SIXSCOPE_METRICS_LISTEN: "127.0.0.1:0" };

let knot: KnotServer;
let folder: string;

beforeAll(async () => {
  if (missing !== null) return;
  folder = mkdtempSync(join(tmpdir(), "sixscope-metrics-"));
  await runIp([`addr add ${OTHER}/128 dev lo nodad`]);
  knot = await startKnot({
    zones: { "example.test.": "@ SOA ns host 1 60 60 60 60\n@ NS ns\nns AAAA ::1\n" },
  });
});

afterAll(async () => {
  if (missing !== null) return;
  await knot.stop();
  rmSync(folder, { recursive: true });
});

/** A connection that stays open between requests. */
async function connectTo(base: string) {
  const { hostname, port } = new URL(base);
  const connection = { received: "", isClosed: false, get: (_: string) => {} };
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, bytes) {
        connection.received += new TextDecoder().decode(bytes);
      },
      close() {
        connection.isClosed = true;
      },
    },
  });
  connection.get = (path) => {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  };
  return connection;
}

describe("metrics", () => {
  const requests = (service: Service, labels: Record<string, string | number>) =>
    value(service, "sixscope_http_request_duration_seconds_count", labels);

  labTest(
    "requests are counted by endpoint and status, with one label for each endpoint",
    async () => {
      await using service = await startService(SETTINGS);
      const get = (path: string, headers: Record<string, string> = {}) =>
        fetch(service.url + path, { headers });
      await get("/myip");
      await get("/myip/");
      await get("/validate?address=::1");
      await get("/validate?address=nonsense");
      await get("/ping/::1");
      await get("/dns/a..b/");
      await get("/nothing");
      await get("/myip", { "X-Forwarded-For": "192.0.2.1" });
      expect(await requests(service, { route: "/api/v1/myip", status: 200 })).toBe(2);
      expect(await requests(service, { route: "/api/v1/myip", status: 400 })).toBe(1);
      expect(await requests(service, { route: "/api/v1/validate" })).toBe(2);
      expect(await requests(service, { route: "/api/v1/dns/:hostname", status: 400 })).toBe(1);
      expect(await requests(service, { route: "/api/v1/ping/:target", status: 401 })).toBe(1);
      expect(await requests(service, { route: "", status: 404 })).toBe(1);
      expect(await requests(service, {})).toBe(8);
      const errors = (code: string) => value(service, "sixscope_http_errors_total", { code });
      expect(await errors("HTTPS_REQUIRED")).toBe(1);
      expect(await errors("INVALID_ADDRESS")).toBe(1);
      expect(await errors("UNAUTHORIZED")).toBe(1);
      expect(await errors("INTERNAL_ERROR")).toBe(0);
    },
  );

  labTest("are for Prometheus and people, not for web pages and their names", async () => {
    await using service = await startService(SETTINGS);
    const base = metricsUrl(service);
    const { port } = new URL(base);
    const own = hostname().split(".")[0];
    const rows: [headers: Record<string, string>, status: number][] = [
      [{}, 200],
      ...["127.0.0.1", "[::1]", "[::ffff:192.0.2.1]", "192.0.2.1", "localhost", "LOCALHOST."].map(
        (name): [Record<string, string>, number] => [{ Host: `${name}:${port}` }, 200],
      ),
      [{ Host: own ?? "" }, 200],
      [{ Host: `sixscope:${port}` }, 200],
      [{ "Sec-Fetch-Site": "none" }, 200],
      [{ "Sec-Fetch-Site": "same-origin" }, 200],
      [{ Host: `rebinding.example:${port}` }, 403],
      [{ Host: "127.0.0.1.rebinding.example" }, 403],
      [{ Host: "localhost.rebinding.example" }, 403],
      [{ Host: "evil.localhost" }, 403],
      [{ Host: `${own}.evil.example:${port}` }, 403],
      [{ Host: "a b" }, 403],
      [{ Host: "" }, 403],
      [{ Origin: "https://evil.example" }, 403],
      [{ Origin: base }, 403],
      [{ Origin: "null" }, 403],
      [{ "Sec-Fetch-Site": "cross-site" }, 403],
      [{ "Sec-Fetch-Site": "same-site" }, 403],
    ];
    for (const path of ["/metrics", "/probe?target=::1&count=1", "/nothing"]) {
      for (const [headers, status] of rows) {
        const response = await fetch(base + path, { headers });
        const expected = status === 200 && path === "/nothing" ? 404 : status;
        expect([path, headers, response.status]).toEqual([path, headers, expected]);
        const text = await response.text();
        if (status === 403)
          expect(text).toMatch(/^(Metrics are not for|Use an address of this machine).*\.\n$/);
      }
    }
    const allowed = rows.filter(([, status]) => status === 200).length;
    expect(await value(service, "sixscope_probes_sent_total")).toBe(allowed);
  });

  labTest("rate-limited requests are counted", async () => {
    await using service = await startService({ ...SETTINGS, SIXSCOPE_RATE_ANONYMOUS: "2" });
    for (let count = 0; count < 5; count++) await fetch(`${service.url}/myip`);
    expect(await requests(service, { route: "/api/v1/myip", status: 429 })).toBe(3);
    expect(await value(service, "sixscope_http_errors_total", { code: "RATE_LIMITED" })).toBe(3);
  });

  labTest("probes, slots, and clients that have gone", async () => {
    await using service = await startService({
      ...SETTINGS,
      SIXSCOPE_MAX_PROBES: "1",
      SIXSCOPE_PING_INTERVAL_MS: "10000",
    });
    const ping = (signal?: AbortSignal) =>
      fetch(`${service.url}/ping/::1?count=2`, {
        headers: { "X-API-Key": service.key },
        ...(signal && { signal }),
      });
    expect(await value(service, "sixscope_probe_slots")).toBe(1);
    const client = new AbortController();
    const gone = ping(client.signal).catch(() => "gone");
    await until(async () => (await value(service, "sixscope_probe_slots_used")) === 1);
    expect((await ping()).status).toBe(429);
    expect(await value(service, "sixscope_http_errors_total", { code: "TOO_MANY_PROBES" })).toBe(1);
    await until(async () => (await value(service, "sixscope_probes_answered_total")) === 1);
    client.abort();
    expect(await gone).toBe("gone");
    await until(async () => (await value(service, "sixscope_probe_slots_used")) === 0);
    await until(async () => (await requests(service, { status: 499 })) === 1);
    expect(await requests(service, { status: 500 })).toBe(0);
    expect(await value(service, "sixscope_http_errors_total", { code: "INTERNAL_ERROR" })).toBe(0);
    expect(await value(service, "sixscope_probes_sent_total")).toBe(1);
    expect(await value(service, "sixscope_probes_answered_total")).toBe(1);
    expect(await value(service, "sixscope_raw_socket_usable")).toBe(1);
  });

  userTest("a service without a raw socket says so, and is ready", async () => {
    await using service = await startService(SETTINGS, ["setpriv", "--bounding-set=-net_raw"]);
    expect(await value(service, "sixscope_raw_socket_usable")).toBe(0);
    expect((await fetch(`${metricsUrl(service)}/probe?target=::1`)).status).toBe(503);
    for (const base of [new URL(service.url).origin, metricsUrl(service)]) {
      const response = await fetch(`${base}/readyz`);
      expect(response.status).toBe(200);
      expect(await response.text()).toMatch(/^ready, without probes: no raw socket \(.+\)\n$/);
    }
  });

  labTest("DNS queries are counted by resolver, transport and outcome", async () => {
    await using service = await startService({
      ...SETTINGS,
      SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}`,
      SIXSCOPE_RESOLVER_B: `[::1]:${await freePort()}`,
    });
    const ask = (query: string) => fetch(`${service.url}/dns/${query}`);
    const queries = (labels: Record<string, string>) =>
      value(service, "sixscope_dns_query_duration_seconds_count", labels);
    await ask("ns.example.test");
    await ask("none.example.test");
    // Not AAAA, for which the service asks for the resolver's NAT64 prefix too.
    await ask("ns.example.test?type=A&resolver=resolver_b");
    const answered = { resolver: "resolver_a", transport: "udp", outcome: "answer" };
    expect(await queries(answered)).toBe(1);
    expect(await queries({ ...answered, outcome: "name-error" })).toBe(1);
    expect(await queries({ resolver: "resolver_b", outcome: "unreachable" })).toBe(1);
    expect(await queries({ resolver: "resolver_b" })).toBe(1);
    const seconds = await value(service, "sixscope_dns_query_duration_seconds_sum", answered);
    expect(seconds).toBeGreaterThan(0);
  });

  labTest("connections, the process, and the keys file", async () => {
    await using service = await startService(SETTINGS);
    const connections = () => value(service, "sixscope_tcp_connections");
    const before = await connections();
    const { hostname, port } = new URL(service.url);
    const open = () => Bun.connect({ hostname, port: Number(port), socket: { data() {} } });
    const sockets = await Promise.all(Array.from({ length: 5 }, open));
    await until(async () => (await connections()) >= before + 5);
    for (const socket of sockets) socket.end();
    await until(async () => (await connections()) < before + 5);

    await until(async () => (await value(service, "sixscope_event_loop_lag_seconds_count")) > 0);
    const status = readFileSync(`/proc/${service.pid}/status`, "utf8");
    const resident = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
    const memory = await value(service, "process_resident_memory_bytes");
    expect(Math.abs(memory - resident)).toBeLessThan(resident / 2);
    expect(await value(service, "process_cpu_seconds_total")).toBeGreaterThan(0);
    const started = await value(service, "process_start_time_seconds");
    expect(Math.abs(started - Date.now() / 1000)).toBeLessThan(300);
    const { version } = await Bun.file(join(import.meta.dir, "../../package.json")).json();
    expect(await value(service, "sixscope_build_info", { version })).toBe(1);

    expect(await value(service, "sixscope_keys")).toBe(1);
    const reads = (outcome: string) =>
      value(service, "sixscope_file_reads_total", { file: "keys", outcome });
    expect([await reads("done"), await reads("failed")]).toEqual([0, 0]);
    const environment = { SIXSCOPE_KEYS_FILE: service.keysFile };
    expect((await sixscopeHere(["keys", "add", "other"], environment)).status).toBe(0);
    await until(async () => (await reads("done")) === 1);
    expect(await value(service, "sixscope_keys")).toBe(2);
    expect(await value(service, "sixscope_keys_file_usable")).toBe(1);
    writeFileSync(service.keysFile, "[]");
    await until(async () => (await reads("failed")) > 0);
    expect(await value(service, "sixscope_keys")).toBe(2);
  });

  labTest("no label names a client, a target or a key", async () => {
    await using service = await startService({
      ...SETTINGS,
      SIXSCOPE_LISTEN: `[${OTHER}]:0,[::1]:0`,
      SIXSCOPE_PLAIN_HTTP_FROM: `${OTHER}/128`,
      SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}`,
    });
    const headers = { "X-API-Key": service.key };
    for (const path of [
      "/myip",
      "/ping/ns.example.test?count=1",
      "/traceroute/::1",
      "/secret/path",
    ])
      await fetch(service.url + path, { headers });
    const text = await metricsText(service);
    expect(text).toContain('route="/api/v1/traceroute/:target",status="200"');
    for (const name of [OTHER, "example", "::1", '"test"', service.key, "secret"])
      expect(text).not.toContain(name);
  });

  promtoolTest.each([
    ["with a raw socket", []],
    ["without", ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]],
  ])("promtool has nothing against them, %s", async (_, wrapper) => {
    const resolver = { SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}` };
    await using service = await startService({ ...SETTINGS, ...resolver }, wrapper);
    expect(await value(service, "sixscope_raw_socket_usable")).toBe(wrapper.length > 0 ? 0 : 1);
    await fetch(`${service.url}/dns/ns.example.test`);
    const response = await fetch(`${metricsUrl(service)}/metrics`);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await run(["promtool", "check", "metrics"], await response.text())).toBe("");
  });

  labTest("nothing listens without the setting", async () => {
    for (const [settings, listeners] of [
      [{}, 2],
      [SETTINGS, 3],
    ] as const) {
      await using service = await startService(settings);
      const sockets = (await run(["ss", "-Hltnp"])).split("\n");
      const own = sockets.filter((line) => line.includes(`pid=${service.pid},`));
      expect(own).toHaveLength(listeners);
      for (const url of service.urls) {
        expect((await fetch(`${new URL(url).origin}/metrics`)).status).toBe(404);
      }
    }
  });
});

describe("health", () => {
  labTest("is answered over plain HTTP to other machines, neither counted nor logged", async () => {
    await using service = await startService({
      ...SETTINGS,
      SIXSCOPE_LISTEN: `[${OTHER}]:0`,
      SIXSCOPE_LOG_LEVEL: "debug",
    });
    const { origin } = new URL(service.url);
    expect((await fetch(`${service.url}/myip`)).status).toBe(400);
    for (const [path, text] of [
      ["/healthz", "ok\n"],
      ["/readyz", "ready\n"],
    ] as const) {
      for (const base of [origin, metricsUrl(service)]) {
        const response = await fetch(base + path);
        expect([response.status, await response.text()]).toEqual([200, text]);
        expect(response.headers.get("x-ratelimit-remaining")).toBeNull();
      }
    }
    expect(await value(service, "sixscope_http_request_duration_seconds_count")).toBe(1);
    service.signal("SIGTERM");
    await service.exited;
    expect(service.stderr()).toContain("status=400");
    expect(service.stderr()).not.toMatch(/healthz|readyz|status=200/);
  });

  labTest(
    "says that the service stops while requests run, and metrics are still served",
    async () => {
      await using service = await startService({ ...SETTINGS, SIXSCOPE_PING_INTERVAL_MS: "10000" });
      const idle = await connectTo(service.url);
      idle.get("/api/v1/myip");
      await until(async () => idle.received.includes('"isIPv6"'));
      const supervisor = await connectTo(metricsUrl(service));
      supervisor.get("/metrics");
      await until(async () => supervisor.received.includes("process_start_time_seconds "));
      const headers = { "X-API-Key": service.key };
      const client = new AbortController();
      const running = fetch(`${service.url}/ping/::1?count=10`, {
        headers,
        signal: client.signal,
      }).catch(() => "gone");
      await until(async () => (await value(service, "sixscope_probe_slots_used")) === 1);
      service.signal("SIGTERM");
      await service.says("stopping; running requests may finish");
      supervisor.get("/readyz");
      await until(async () => supervisor.isClosed);
      expect(supervisor.received).toMatch(/HTTP\/1\.1 503 .*stopping\n$/s);
      await until(async () => idle.isClosed);
      expect(await value(service, "sixscope_probe_slots_used")).toBe(1);
      client.abort();
      expect(await running).toBe("gone");
      expect(await service.exited).toBe(0);
    },
  );
});
