/** `/probe`: targets as Prometheus watches them through the service. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { startInternet } from "../lab/internet.ts";
import { labMissing, programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { metricsUrl, requireGoodMetrics, seriesIn, until, value } from "../lab/metrics.ts";
import { type Service, startService } from "../lab/service.ts";

const missing = labMissing ?? programMissing("knotd");
const labTest = testWith(missing);
const internetTest = testWith(missing, tunMissing);

const SETTINGS = { SIXSCOPE_METRICS_LISTEN: "127.0.0.1:0" };

let knot: KnotServer;

beforeAll(async () => {
  if (missing !== null) return;
  knot = await startKnot({
    zones: { "example.test.": "@ SOA ns host 1 60 60 60 60\n@ NS ns\nns AAAA ::1\n" },
  });
});

afterAll(async () => await knot?.stop());

describe("/probe", () => {
  /** The answer of /probe as numbers by series, or its status. */
  async function probe(service: Service, query: string, timeoutSeconds?: string) {
    const headers = new Headers();
    if (timeoutSeconds) headers.set("X-Prometheus-Scrape-Timeout-Seconds", timeoutSeconds);
    const response = await fetch(`${metricsUrl(service)}/probe?${query}`, { headers });
    if (response.status !== 200) return response.status;
    return seriesIn(await requireGoodMetrics(await response.text()));
  }

  labTest("measures a target with the names of blackbox_exporter", async () => {
    await using service = await startService({
      ...SETTINGS,
      SIXSCOPE_PING_INTERVAL_MS: "10",
      SIXSCOPE_PROBE_PORTS: "any",
      SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}`,
    });
    const hash = Bun.hash.crc32("::1");
    const number = expect.any(Number);
    const pinged = {
      probe_duration_seconds: number,
      probe_ip_protocol: 6,
      probe_ip_addr_hash: hash,
      probe_loss_ratio: 0,
      'probe_rtt_seconds{quantile="0"}': number,
      'probe_rtt_seconds{quantile="0.5"}': number,
      'probe_rtt_seconds{quantile="0.9"}': number,
      'probe_rtt_seconds{quantile="1"}': number,
    };
    expect(await probe(service, "module=ping6&target=ns.example.test")).toEqual({
      probe_success: 1,
      ...pinged,
      'probe_icmp_duration_seconds{phase="rtt"}': number,
      probe_icmp_reply_hop_limit: 64,
    });
    expect(await value(service, "sixscope_probes_sent_total")).toBe(10);
    await probe(service, "target=::1&count=2");
    expect(await value(service, "sixscope_probes_sent_total")).toBe(12);
    expect(await probe(service, "module=trace6&target=::1")).toEqual({
      probe_success: 1,
      probe_duration_seconds: number,
      probe_ip_protocol: 6,
      probe_ip_addr_hash: hash,
      probe_hops: 1,
      probe_path_hash: hash,
    });
    expect(await probe(service, "module=mtr6&target=::1&rounds=2")).toEqual({
      probe_success: 1,
      probe_duration_seconds: number,
      probe_ip_protocol: 6,
      probe_ip_addr_hash: hash,
      probe_hops: 1,
      probe_path_hash: hash,
      probe_loss_ratio: 0,
    });
    using server = Bun.listen({ hostname: "::1", port: 0, socket: { data() {} } });
    const port = (protocol: string, asked: number, state: string, success: number) => ({
      probe_success: success,
      ...pinged,
      [`probe_port_info{protocol="${protocol}",port="${asked}",state="${state}"}`]: 1,
    });
    const open = port("tcp", server.port, "open", 1);
    for (const target of [`[::1]:${server.port}`, `ns.example.test:${server.port}`])
      expect(await probe(service, `module=tcp6&target=${target}`)).toEqual(open);
    expect(await probe(service, `module=tcp6&target=::1&port=${server.port}`)).toEqual(open);
    expect(await probe(service, "module=tcp6&target=[::1]:9")).toEqual(port("tcp", 9, "closed", 0));
    const closed = port("udp", 33_434, "closed", 1);
    expect(await probe(service, "module=udp6&target=::1&count=1")).toEqual(closed);
    expect(await probe(service, "module=mtu6&target=::1")).toEqual({
      probe_success: 1,
      probe_duration_seconds: number,
      probe_ip_protocol: 6,
      probe_ip_addr_hash: hash,
      probe_mtu_bytes: 65_536,
    });
    const answered = {
      probe_success: 1,
      probe_duration_seconds: number,
      probe_ip_protocol: 6,
      probe_dns_answer_rrs: 1,
      'probe_dns_duration_seconds{phase="request"}': number,
    };
    expect(await probe(service, "module=dns6&target=ns.example.test")).toEqual(answered);
    expect(await probe(service, "module=dns6&target=ns.example.test&type=TXT")).toEqual({
      ...answered,
      probe_success: 0,
      probe_dns_answer_rrs: 0,
    });
  });

  internetTest("loss, round-trip times and the path are those of the network", async () => {
    const router = (host: string) => ({ address: `2001:db8:1::${host}` });
    await using _ = await startInternet({
      destinations: [
        { to: "2001:db8:2::1", routers: [router("1"), router("2")], end: { rttMs: 20 } },
        { to: "2001:db8:2::2", routers: [router("1"), router("3")] },
        {
          to: "2001:db8:3::1",
          end: { rttMs: 20, loss: [2, 5], rules: [{ probes: [1], copies: 3 }] },
        },
        {
          to: "2001:db8:5::1",
          equalPaths: ["4", "5", "6", "7", "8"].map((host) => ({ routers: [router(host)] })),
        },
        { to: "2001:db8:4::/64", routers: [router("1")], end: "blackhole" },
      ],
    });
    await using service = await startService({
      ...SETTINGS,
      SIXSCOPE_PING_INTERVAL_MS: "10",
      SIXSCOPE_PROBE_TIMEOUT_MS: "1000",
    });
    expect(await probe(service, "module=trace6&target=2001:db8:2::1")).toMatchObject({
      probe_success: 1,
      probe_hops: 3,
      probe_path_hash: Bun.hash.crc32("2001:db8:1::1 2001:db8:1::2 2001:db8:2::1"),
    });
    expect(await probe(service, "module=trace6&target=2001:db8:2::2")).toMatchObject({
      probe_path_hash: Bun.hash.crc32("2001:db8:1::1 2001:db8:1::3 2001:db8:2::2"),
    });
    // Every scrape has the same flow label, so it takes the same of several paths.
    const host = 4 + ((Bun.hash.crc32("2001:db8:5::1") & 0xf_ffff) % 5);
    for (const module of ["trace6", "trace6", "mtr6"]) {
      expect(await probe(service, `module=${module}&target=2001:db8:5::1`)).toMatchObject({
        probe_path_hash: Bun.hash.crc32(`2001:db8:1::${host} 2001:db8:5::1`),
      });
    }
    const lossy = await probe(service, "target=2001:db8:3::1");
    expect(lossy).toMatchObject({ probe_success: 1, probe_loss_ratio: 0.2 });
    const quantiles = [0, 0.5, 0.9, 1].map(
      (quantile) => Object(lossy)[`probe_rtt_seconds{quantile="${quantile}"}`],
    );
    expect(quantiles).toEqual(quantiles.toSorted((a, b) => a - b));
    expect(quantiles[0]).toBeGreaterThanOrEqual(0.02);
    const duplicates = { kind: "duplicate" };
    expect(await value(service, "sixscope_probe_packets_total", duplicates)).toBe(2);
    expect(await probe(service, "target=2001:db8:4::1&count=2")).toEqual({
      probe_success: 0,
      probe_duration_seconds: expect.any(Number),
      probe_ip_protocol: 6,
      probe_ip_addr_hash: Bun.hash.crc32("2001:db8:4::1"),
      probe_loss_ratio: 1,
    });
    expect(await probe(service, "module=trace6&target=2001:db8:4::1")).toMatchObject({
      probe_success: 0,
      probe_hops: expect.any(Number),
    });
  });

  labTest("a failed probe is a result; a wrong request and a busy service are not", async () => {
    await using service = await startService({
      ...SETTINGS,
      SIXSCOPE_MAX_PROBES: "1",
      SIXSCOPE_PING_INTERVAL_MS: "10000",
      SIXSCOPE_TARGETS_DENY: "2001:db8:bad::/48",
      SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}`,
    });
    const failed = (reason: string) => ({
      probe_success: 0,
      probe_duration_seconds: expect.any(Number),
      [`probe_failure_info{reason="${reason}"}`]: 1,
    });
    expect(await probe(service, "target=none.example.test")).toEqual(failed("HOSTNAME_NOT_FOUND"));
    expect(await probe(service, "target=2001:db8:ffff::1")).toEqual(failed("NETWORK_UNREACHABLE"));
    for (const query of [
      "",
      "module=http_2xx&target=::1",
      "module=toString&target=::1",
      "target=192.0.2.1",
      "target=",
      "Target=::1",
      "target=::1&target=::1",
      "target=::1&module=ping6&module=ping6",
      "target=::1&count=1&count=2",
      "target=::1&COUNT=1",
      "target=::1&from=A!",
      "target=::1&from=",
      "target=::1&from=all,here",
      "target=::1&from=here&from=here",
      "target=::1&count=11",
      "target=[::1]:443",
      "target=::1&port=443",
      "module=tcp6&target=[::1]:443&port=443",
      "module=tcp6&target=[::1]:444",
      "module=tcp6&target=[::1]:65536",
      "module=tcp6&target=[192.0.2.1]:443",
      "module=tcp6&target=192.0.2.1:443",
      "module=tcp6&target=:443",
      "target=2001:db8:bad::1",
    ]) {
      const response = await fetch(`${metricsUrl(service)}/probe?${query}`);
      const { error } = (await response.json()) as { error: { code: string } };
      const code = expect.stringMatching(/^INVALID_|^TARGET_NOT_ALLOWED$/);
      expect([query, response.status, error.code]).toEqual([query, 400, code]);
    }
    expect(await probe(service, "target=::1&from=gone")).toBe(503);
    const slow = probe(service, "target=::1&count=2", "600");
    await until(async () => (await value(service, "sixscope_probe_slots_used")) === 1);
    expect(await probe(service, "target=::1")).toBe(503);
    service.signal("SIGTERM");
    await slow.catch(() => "stopped");
  });

  labTest("measures at locations, each with its label", async () => {
    await using service = await startService({ ...SETTINGS, SIXSCOPE_LOCATION: "here" });
    const number = expect.any(Number);
    const measured = (location: string) => ({
      [`probe_success{location="${location}"}`]: 1,
      [`probe_duration_seconds{location="${location}"}`]: number,
      [`probe_ip_protocol{location="${location}"}`]: 6,
      [`probe_ip_addr_hash{location="${location}"}`]: number,
      [`probe_hops{location="${location}"}`]: 1,
      [`probe_path_hash{location="${location}"}`]: number,
    });
    expect(await probe(service, "module=trace6&target=::1&from=here")).toEqual(measured("here"));
    // A place that cannot measure says nothing about the target.
    expect(await probe(service, "module=trace6&target=::1&from=here,gone")).toEqual({
      ...measured("here"),
      'probe_duration_seconds{location="gone"}': number,
      'probe_failure_info{location="gone",reason="LOCATION_NOT_FOUND"}': 1,
    });
    expect(await probe(service, "target=::1&from=here&count=10", "0.6")).toEqual({
      'probe_success{location="here"}': 0,
      'probe_duration_seconds{location="here"}': number,
      'probe_failure_info{location="here",reason="TIMEOUT"}': 1,
    });
  });

  labTest("takes no notice of a scrape timeout that is none", async () => {
    await using service = await startService(SETTINGS);
    for (const timeout of ["1e308", "Infinity", "3601", "0", "-1", "NaN", "x", ""]) {
      const result = await probe(service, "target=::1&count=1", timeout);
      expect([timeout, result]).toMatchObject([timeout, { probe_success: 1 }]);
    }
  });

  labTest("ends before Prometheus gives up, and gives its slot back", async () => {
    await using service = await startService({ ...SETTINGS, SIXSCOPE_PING_INTERVAL_MS: "10000" });
    expect(await probe(service, "target=::1&count=10", "0.6")).toMatchObject({
      probe_success: 0,
      'probe_failure_info{reason="TIMEOUT"}': 1,
    });
    expect(await value(service, "sixscope_probe_slots_used")).toBe(0);
  });
});
