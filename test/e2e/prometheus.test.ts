/** A real Prometheus reads the service's metrics, the alerts, and the dashboard's queries. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linkGateway } from "../here/places.ts";
import { makeCertificate } from "../lab/certificate.ts";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { metricsText, metricsUrl, until } from "../lab/metrics.ts";
import { startNats } from "../lab/nats.ts";
import { startPrometheus } from "../lab/prometheus.ts";
import { run } from "../lab/run.ts";
import { startService } from "../lab/service.ts";
import { ValkeyServer, valkeyMissing } from "../lab/valkey.ts";

const FOLDER = join(import.meta.dir, "../../docs/monitoring");
const missing = labMissing ?? programMissing("knotd");
const promtoolTest = testWith(missing, programMissing("promtool"));
const prometheusTest = testWith(
  missing,
  programMissing("prometheus"),
  programMissing("openssl"),
  programMissing("nats-server"),
  valkeyMissing,
);

const SETTINGS = { SIXSCOPE_METRICS_LISTEN: "127.0.0.1:0" };

let knot: KnotServer;
let folder: string;

beforeAll(async () => {
  if (missing !== null) return;
  await linkGateway();
  folder = mkdtempSync(join(tmpdir(), "sixscope-prometheus-"));
  knot = await startKnot({
    zones: { "example.test.": "@ SOA ns host 1 60 60 60 60\n@ NS ns\nns AAAA ::1\n" },
  });
});

afterAll(async () => {
  if (missing !== null) return;
  await knot.stop();
  rmSync(folder, { recursive: true });
});

describe("a real Prometheus", () => {
  const file = (name: string) => readFileSync(join(FOLDER, name), "utf8");

  /** Every expression of the dashboard, with Grafana's variables replaced. */
  function dashboardExpressions(): string[] {
    const texts = [...file("dashboard.json").matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)];
    return texts.map(([, text = ""]) =>
      (JSON.parse(text) as string)
        .replaceAll("$__rate_interval", "1m")
        .replaceAll("$instance", ".*"),
    );
  }

  /** The names of our metrics in an expression. */
  const namesIn = (expression: string) =>
    expression.match(/\b(sixscope|probe|process)_[a-z]\w+/g) ?? [];

  prometheusTest(
    "reads them as documented, and evaluates each alert and each panel of the dashboard",
    async () => {
      const files = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
      const certificate = { commonName: "localhost", days: 30, ...files };
      await makeCertificate(certificate);
      const watchFile = join(folder, "watches");
      writeFileSync(watchFile, "ping ::1 every=10s count=1\n");
      await using valkey = await ValkeyServer.start();
      await using nats = await startNats();
      await using service = await startService({
        ...SETTINGS,
        SIXSCOPE_VALKEY_URL: valkey.url,
        SIXSCOPE_NATS_URL: nats.url,
        SIXSCOPE_LOCATION: "ams",
        SIXSCOPE_LOCATIONS_EXPECTED: "ams",
        SIXSCOPE_TLS_CERT: files.certFile,
        SIXSCOPE_TLS_KEY: files.keyFile,
        SIXSCOPE_PING_INTERVAL_MS: "10",
        SIXSCOPE_WATCH_FILE: watchFile,
        SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}`,
      });
      const { host } = new URL(metricsUrl(service));
      const config = file("prometheus.yml")
        .replaceAll("localhost:9090", host)
        .replace("www.example.com", "ns.example.test")
        .replace("2001:db8::80", "::1")
        .replace("scrape_interval: 2m", "scrape_interval: 5s");
      await using prometheus = await startPrometheus({
        // A scrape that takes longer than the interval fails, and then its series end for a while.
        "prometheus.yml": `global: {scrape_interval: 5s, evaluation_interval: 1s}\n${config}`,
        "alerts.yml": file("alerts.yml"),
      });
      const evaluate = async (expression: string) =>
        Number((await prometheus.query(expression))[0]?.value[1]);

      const tls = { rejectUnauthorized: false };
      const headers = { "X-API-Key": service.key };
      const use = async () => {
        for (const path of ["/myip", "/dns/ns.example.test", "/ping/::1?count=1"])
          await fetch(service.url + path, { headers, tls });
      };
      await use();
      const requests =
        'sixscope_http_request_duration_seconds_count{route="/api/v1/myip",status="200"}';
      await until(async () => (await evaluate(`sum(${requests})`)) === 1);
      await use();
      await until(async () => (await evaluate(`increase(${requests}[1m])`)) > 0);

      /** The value for each instance, of which each has its own moment for its first scrape. */
      const onceUp = async (series: string, instances: number) => {
        for (;;) {
          const samples = await prometheus.query(series);
          const rows = samples.map(({ metric, value }) => [metric["instance"], value[1]]);
          const up = rows.filter(([, value]) => value === "1");
          if (up.length === rows.length && up.length >= instances) return rows.toSorted();
          await Bun.sleep(50);
        }
      };
      expect(await onceUp("up", 4)).toEqual(
        [
          [host, "1"],
          [host, "1"],
          ["::1", "1"],
          ["ns.example.test", "1"],
        ].toSorted(),
      );
      expect(await onceUp("probe_success", 3)).toEqual(
        [
          [host, "1"],
          ["::1", "1"],
          ["ns.example.test", "1"],
        ].toSorted(),
      );

      const expires = Date.parse(
        (await run(["openssl", "x509", "-noout", "-enddate", "-in", files.certFile])).split(
          "=",
        )[1] ?? "",
      );
      expect(await evaluate("sixscope_certificate_expiry_timestamp_seconds")).toBe(expires / 1000);
      await makeCertificate({ ...certificate, days: 60 });
      const reads = 'sixscope_file_reads_total{file="certificate",outcome="done"}';
      await until(async () => (await evaluate(reads)) === 1);
      expect(await evaluate("sixscope_certificate_expiry_timestamp_seconds")).toBeGreaterThan(
        expires / 1000,
      );

      await until(async () => (await evaluate("sixscope_watch_verdict")) === 1);
      // promtool reads them too, with all that a service can have.
      await metricsText(service);
      const known = new Set(
        (await prometheus.query('{job=~"sixscope.*"}')).map(
          ({ metric }) => metric["__name__"] ?? "",
        ),
      );
      const expressions = dashboardExpressions();
      expect(expressions.length).toBeGreaterThan(20);
      const rates: string[] = [];
      for (const expression of expressions) {
        const result = await prometheus.query(expression);
        // No error of a kind has happened twice, so there is no rate of one.
        if (result.length === 0) rates.push(expression);
        for (const name of namesIn(expression)) expect(known).toContain(name);
      }
      expect(rates).toEqual([expect.stringContaining("sixscope_http_errors_total")]);
      for (const name of namesIn(file("alerts.yml"))) expect(known).toContain(name);
      const documented = namesIn(readFileSync(join(FOLDER, "../operations.md"), "utf8"));
      const ours = [...known].filter((name) => name.startsWith("sixscope_"));
      const families = ours.map((name) => name.replace(/_seconds_(bucket|count|sum)$/, "_seconds"));
      expect(new Set(documented.filter((name) => name.startsWith("sixscope_")))).toEqual(
        new Set(families),
      );
      expect(await prometheus.query("ALERTS")).toEqual([]);
    },
  );
});

promtoolTest("each alert fires for its cause, and only then", async () => {
  const service = '{job="sixscope",instance="a"}';
  const failing = '{job="sixscope",instance="a",resolver="resolver_a",outcome="timeout"}';
  const answering = '{job="sixscope",instance="a",resolver="resolver_a",outcome="answer"}';
  const queries = "sixscope_dns_query_duration_seconds_count";
  const errors = (code: string) =>
    `sixscope_http_errors_total{job="sixscope",instance="a",code="${code}"}`;
  const rows: [alert: string, bad: Record<string, string>, good: Record<string, string>][] = [
    ["SixscopeDown", { [`up${service}`]: "0x30" }, { [`up${service}`]: "1x30" }],
    [
      "SixscopeInternalErrors",
      { [errors("INTERNAL_ERROR")]: "0x25 1x5" },
      { [errors("INTERNAL_ERROR")]: "3x30", [errors("NOT_FOUND")]: "0+9x30" },
    ],
    [
      "SixscopeResolverFails",
      { [queries + failing]: "0+6x30", [queries + answering]: "0+4x30" },
      { [queries + failing]: "0+4x30", [queries + answering]: "0+6x30" },
    ],
    [
      "SixscopeCannotProbe",
      { [`sixscope_keys_file_usable${service}`]: "0x30" },
      {
        [`sixscope_keys_file_usable${service}`]: "1x30",
        [`sixscope_raw_socket_usable${service}`]: "1x30",
      },
    ],
    [
      "SixscopeIpv6Broken",
      { 'sixscope_here{job="sixscope",instance="a",code="no-router"}': "1x30" },
      { 'sixscope_here{job="sixscope",instance="a",code="works"}': "1x30" },
    ],
    [
      "SixscopeWatchChanged",
      // The first change of its kind since the start.
      {
        'sixscope_watch_changes_total{job="sixscope",instance="a",name="ping b",kind="path"}':
          "_x20 1x9",
      },
      {
        'sixscope_watch_changes_total{job="sixscope",instance="a",name="ping b",kind="path"}':
          "3x30",
        'sixscope_watch_changes_total{job="sixscope",instance="a",name="ping b",kind="flap"}':
          "0+1x30",
      },
    ],
    [
      "SixscopeProbeSlotsFull",
      { [errors("TOO_MANY_PROBES")]: "0+1x30" },
      { [errors("TOO_MANY_PROBES")]: "1x30" },
    ],
    [
      "SixscopeValkeyDown",
      { [`sixscope_valkey_up${service}`]: "0x30" },
      { [`sixscope_valkey_up${service}`]: "1x30" },
    ],
    [
      "SixscopeNatsDown",
      { [`sixscope_nats_connected${service}`]: "0x30" },
      { [`sixscope_nats_connected${service}`]: "1x30" },
    ],
    [
      "SixscopeLocationDown",
      {
        'sixscope_location_up{job="sixscope",instance="a",location="ams"}': "0x30",
        [`sixscope_nats_connected${service}`]: "1x30",
      },
      {
        'sixscope_location_up{job="sixscope",instance="a",location="ams"}': "0x30",
        'sixscope_location_up{job="sixscope",instance="b",location="ams"}': "1x30",
        [`sixscope_nats_connected${service}`]: "0x30",
        'sixscope_nats_connected{job="sixscope",instance="b"}': "1x30",
      },
    ],
    [
      "SixscopeCertificateExpires",
      { [`sixscope_certificate_expiry_timestamp_seconds${service}`]: "600000x30" },
      { [`sixscope_certificate_expiry_timestamp_seconds${service}`]: "700000x30" },
    ],
  ];
  const alerts = readFileSync(join(FOLDER, "alerts.yml"), "utf8");
  expect([...alerts.matchAll(/alert: (\w+)/g)].map(([, name]) => name)).toEqual(
    rows.map(([name]) => name),
  );
  const path = join(folder, "test.yml");
  const fires = async (alert: string, series: Record<string, string>) => {
    const input = Object.entries(series).map(([name, values]) => ({ series: name, values }));
    const expected = [{ eval_time: "30m", alertname: alert, exp_alerts: [] }];
    const tests = [{ interval: "1m", input_series: input, alert_rule_test: expected }];
    // YAML includes JSON.
    writeFileSync(path, JSON.stringify({ rule_files: [join(FOLDER, "alerts.yml")], tests }));
    const [said] = await Promise.allSettled([run(["promtool", "test", "rules", path])]);
    if (said.status === "rejected") expect(`${said.reason}`).toContain(`alertname="${alert}"`);
    return said.status === "rejected";
  };
  for (const [alert, bad, good] of rows) {
    expect([alert, await fires(alert, bad), await fires(alert, good)]).toEqual([
      alert,
      true,
      false,
    ]);
  }
  await run(["promtool", "check", "rules", join(FOLDER, "alerts.yml")]);
  await run(["promtool", "check", "config", join(FOLDER, "prometheus.yml")]);
});
