/**
 * Runs the service for some time under everything at once: all endpoints, keys that come and go, floods,
 * clients that do not read or never end a header, reloads, and new certificates:
 *
 *     bun scripts/soak.ts SECONDS [EXECUTABLE]
 *
 * It fails if memory, heap, timers, or descriptors beside those of clients grow, the log has a fault, a
 * well-behaved request fails, or an answer is not as the interface document says. Growth is the slope of a regression after the first ten
 * minutes, with its 95 % interval, at a constant rate of requests of 31 kinds. Heap and timers show only from
 * source, without EXECUTABLE. It runs in its own network namespace, as the tests do, and needs knot, openssl
 * and iproute2 from Debian.
 */
import "../test/lab/enter.ts";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatSocketAddress } from "../src/addr/socket-address.ts";
import { makeCertificate } from "../test/lab/certificate.ts";
import { startKnot } from "../test/lab/dns-server.ts";
import { startKernelChain } from "../test/lab/kernel-chain.ts";
import { type Service, sixscope, startService } from "../test/lab/service.ts";
import { residentMiB } from "./measure.ts";
import { figuresFile, type Inside } from "./soak-inside.ts";

/** The memory limit of the unit. */
const MAX_MIB = 256;

/** Until then caches fill and code is compiled: seconds, and the part of a short run. */
const WARM_UP = { seconds: 600, part: 1 / 3 };

/** The growth in an hour that is a fault, if the whole 95 % interval is above it. */
const MAX_GROWTH = { residentMiB: 8, heapMiB: 4, descriptors: 20, timers: 20 };

/** How often each of the cheap, the other, and the dear kinds of request is sent. */
const CHEAP_MS = 50;
const OTHER_MS = 250;
const DEAR_MS = 2_000;
/**
 * How often a key comes and goes. Each one that was revoked is remembered, and its bucket takes a page of memory
 * until all 1,536 pages of the table are taken: a key every 2 s made the service grow by 4 MiB in an hour.
 */
const KEY_MS = 30_000;
const RELOAD_MS = 3_000;
const SAMPLE_MS = 500;
/** Longer than the service needs to close the connections with the old certificate. */
const RENEWAL_MS = 12_000;

const [seconds = "", executable] = Bun.argv.slice(2);
if (!/^[1-9]\d*$/.test(seconds)) {
  console.error("usage: bun scripts/soak.ts SECONDS [EXECUTABLE]");
  process.exit(2);
}
const inProject = (path: string) => join(import.meta.dir, "..", path);
const fromSource = [
  process.execPath,
  "--max-http-header-size=4096",
  "--preload",
  inProject("scripts/soak-inside.ts"),
  inProject("src/main.ts"),
];
const program = executable === undefined ? fromSource : [executable];

/** The requests of one kind: their times in milliseconds, by status. */
type Load = Map<number | "failed", number[]>;

const loads = new Map<string, Load>();
const faults = new Map<string, number>();
const done = { reloads: 0, certificates: 0, keys: 0 };
/** Seconds since the start, and the figures of the service then. */
const samples: ({ readonly seconds: number } & Partial<Record<keyof typeof MAX_GROWTH, number>>)[] =
  [];
const kernelMiBs: number[] = [];

const fault = (text: string) => faults.set(text, (faults.get(text) ?? 0) + 1);

const folder = mkdtempSync(join(tmpdir(), "sixscope-soak-"));
const pemFile = join(folder, "both.pem");
try {
  await using chain = await startKernelChain({ routers: 2 });
  await using knot = await startKnot({
    zones: { "example.test": `@ 60 SOA ns host 1 60 60 60 60\n@ NS ns\nns AAAA ${chain.target}\n` },
  });
  const certificates = await Promise.all(["first", "second"].map(makePem));
  useCertificate(certificates[0] ?? "");
  const resolver = formatSocketAddress(knot.endpoint);
  await using service = await startService(
    {
      SIXSCOPE_LISTEN: `[::1]:0,[${chain.source}]:0`,
      SIXSCOPE_TLS_CERT: pemFile,
      SIXSCOPE_TLS_KEY: pemFile,
      SIXSCOPE_RATE_KEY: "10000000",
      SIXSCOPE_RESOLVER_A: resolver,
      SIXSCOPE_RESOLVER_B: resolver,
      SIXSCOPE_RESOLVER_C: resolver,
      // As in systemd/sixscope.service.
      BUN_JSC_forceRAMSize: "134217728",
    },
    [],
    program,
  );
  const attackers = [1, 2].map((node) => {
    const tinyWindow = "echo 2048 2048 2048 > /proc/sys/net/ipv4/tcp_rmem";
    const attack = `${tinyWindow}; exec ${process.execPath} ${join(import.meta.dir, "soak-attack.ts")}`;
    const [, outside = ""] = service.urls;
    return Bun.spawn(chain.inside(node, ["sh", "-c", `${attack} ${outside}`]));
  });
  await run(service, chain.target, certificates);
  // The attackers go on, because a stop must not wait for them.
  const stopStartMs = performance.now();
  service.signal("SIGTERM");
  const status = await service.exited;
  if (status !== 0) fault(`the exit status is ${status}`);
  const stopMs = performance.now() - stopStartMs;
  for (const attacker of attackers) attacker.kill();
  checkMemory();
  rmSync(figuresFile(service.pid), { force: true });
  report(readLog(service.stderr()), stopMs);
} finally {
  rmSync(folder, { recursive: true });
}
for (const [text, count] of faults) console.log(`FAULT ${count} times: ${text}`);
process.exit(faults.size === 0 ? 0 : 1);

/** Does everything at once, until the time is over. */
async function run(service: Service, target: string, certificates: string[]): Promise<void> {
  const startMs = performance.now();
  const endMs = startMs + Number(seconds) * 1000;
  const withKey = { "X-API-Key": service.key };
  const ports = service.urls.map((url) => Number(new URL(url).port));
  const ask = (path: string, headers: Record<string, string> = {}) =>
    fetch(service.url + path, { headers, tls: { rejectUnauthorized: false } });
  /** Works at a constant rate, as far as the service follows: growth cannot be told from a rate that changes. */
  const repeat = async (periodMs: number, work: () => unknown) => {
    for (let atMs = startMs; atMs < endMs; atMs = Math.max(atMs + periodMs, performance.now())) {
      await Bun.sleep(Math.max(0, atMs - performance.now()));
      await work();
    }
  };
  const request = async (path: string, expected: number[], headers: Record<string, string>) => {
    const name = path.replace(target, "TARGET");
    const load = loads.get(name) ?? new Map();
    loads.set(name, load);
    const startMs = performance.now();
    let status: number | "failed" = "failed";
    try {
      const response = await ask(path, headers);
      await response.arrayBuffer();
      status = response.status;
      if (!expected.includes(status)) fault(`${path} answers ${status}`);
    } catch (error) {
      fault(`${path}: ${error}`);
    }
    const times = load.get(status) ?? [];
    times.push(performance.now() - startMs);
    load.set(status, times);
    return status;
  };
  const keyComesAndGoes = async () => {
    const environment = { SIXSCOPE_KEYS_FILE: service.keysFile };
    const { stdout } = await sixscope(["keys", "add", "soak"], environment, program);
    const headers = { "X-API-Key": stdout.split("\n")[0] ?? "" };
    const isValid = async () =>
      (await request("/ping/::1?newKey", [200, 401, 429], headers)) === 200;
    while (performance.now() < endMs && !(await isValid())) await Bun.sleep(100);
    await sixscope(["keys", "revoke", "soak"], environment, program);
    while (performance.now() < endMs && (await isValid())) await Bun.sleep(100);
    done.keys++;
  };
  const events = { ...withKey, Accept: "text/event-stream" };
  // biome-ignore format: a table
  const kinds: readonly [path: string, expected: number[], periodMs?: number, headers?: Record<string, string>][] = [
    ["/myip", [200], CHEAP_MS],
    ["/validate?address=2001:db8::1", [200], CHEAP_MS],
    ["/validate?address=2001:db8::g", [400], CHEAP_MS],
    ["/validate", [400]],
    ["/none", [404], CHEAP_MS],
    ["/dns/ns.example.test", [200], CHEAP_MS],
    ["/dns/ns.example.test?resolver=all", [200]],
    ["/dns/ns.example.test?dnssec=yes", [200]],
    ["/dns/example.test?type=SOA", [200]],
    ["/dns/missing.example.test", [404], CHEAP_MS],
    ["/dns/a..test", [400]],
    ["/openapi.json", [200]],
    ["/openapi.json?zipped", [200], OTHER_MS, { ...withKey, "Accept-Encoding": "gzip" }],
    ["/locations", [200]],
    ["/ping/ns.example.test?count=2", [200]],
    ["/ping/::1", [200], OTHER_MS, events],
    ["/ping/192.0.2.1", [400]],
    ["/ping/missing.example.test", [404]],
    [`/traceroute/${target}`, [200]],
    [`/traceroute/${target}?events`, [200], OTHER_MS, events],
    [`/traceroute/${target}?paths=4`, [200]],
    [`/mtr/${target}?count=2`, [200]],
    [`/mtr/${target}?count=3`, [200], OTHER_MS, events],
    [`/mtu/${target}`, [200]],
    [`/ping/${target}?protocol=udp&port=33434`, [200]],
    [`/mtr/${target}?protocol=tcp&port=443&count=2`, [200], DEAR_MS],
    ["/check/ns.example.test", [200], DEAR_MS],
    ["/check/ns.example.test?events", [200], DEAR_MS, events],
    ["/myip?anonymous", [200, 429], CHEAP_MS, {}],
    ["/ping/::1?wrongKey", [401, 429], CHEAP_MS, { "X-API-Key": "sx_wrong" }],
  ];
  await Promise.all([
    ...kinds.map(([path, expected, periodMs = OTHER_MS, headers = withKey]) =>
      repeat(periodMs, () => request(path, expected, headers)),
    ),
    repeat(KEY_MS, keyComesAndGoes),
    repeat(RELOAD_MS, () => {
      service.signal("SIGHUP");
      done.reloads++;
    }),
    repeat(RENEWAL_MS, () => {
      useCertificate(certificates[++done.certificates % certificates.length] ?? "");
    }),
    repeat(SAMPLE_MS, () => {
      samples.push({
        seconds: (performance.now() - startMs) / 1000,
        ...figuresOf(service.pid, ports),
      });
      kernelMiBs.push(kernelMiB());
    }),
  ]);
}

/** Makes a certificate; returns it and its key in one text, so that both change at once. */
async function makePem(commonName: string): Promise<string> {
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")].map(
    (path) => `${path}.${commonName}`,
  ) as [string, string];
  await makeCertificate({ commonName, days: 60, certFile, keyFile });
  return (await Bun.file(certFile).text()) + (await Bun.file(keyFile).text());
}

function useCertificate(pem: string): void {
  writeFileSync(`${pemFile}.new`, pem, { mode: 0o600 });
  renameSync(`${pemFile}.new`, pemFile);
}

/** The memory that the kernel holds for all TCP connections of this machine. */
function kernelMiB(): number {
  const pages = /^TCP: .* mem (\d+)$/m.exec(readFileSync("/proc/net/sockstat", "utf8"))?.[1];
  return (Number(pages) * 4096) / 1024 / 1024;
}

/** The figures of a service on some ports now. */
function figuresOf(pid: number, ports: readonly number[]) {
  const file = Bun.file(figuresFile(pid));
  const inside =
    file.size > 0 ? (JSON.parse(readFileSync(figuresFile(pid), "utf8")) as Inside) : {};
  const descriptors = readdirSync(`/proc/${pid}/fd`).length - connections(ports);
  return { residentMiB: residentMiB(pid), descriptors, ...inside };
}

/** The connections of clients, whose number changes with the machine's pace; proc_net_tcp(5). */
function connections(ports: readonly number[]): number {
  const LISTEN = "0A";
  const GONE = "0";
  const rows = readFileSync("/proc/net/tcp6", "utf8").trim().split("\n").slice(1);
  return rows.filter((row) => {
    const [, local = "", , state, , , , , , inode] = row.trim().split(/\s+/);
    const port = Number.parseInt(local.split(":")[1] ?? "", 16);
    return state !== LISTEN && inode !== GONE && ports.includes(port);
  }).length;
}

/** The growth of each figure in an hour, with half of its 95 % interval. */
function growth() {
  const from = Math.min(WARM_UP.seconds, Number(seconds) * WARM_UP.part);
  const names = Object.keys(MAX_GROWTH) as (keyof typeof MAX_GROWTH)[];
  return names.flatMap((name) => {
    // Means of a minute depend on each other less than samples do.
    const minutes = Map.groupBy(
      samples.filter((each) => each.seconds >= from && each[name] !== undefined),
      (each) => Math.floor(each.seconds / 60),
    );
    const points = [...minutes].map(([minute, all]) => {
      const sum = all.reduce((total, each) => total + (each[name] ?? 0), 0);
      return [minute / 60, sum / all.length] as const;
    });
    if (points.length < 4) return [];
    const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / points.length;
    const [x, y] = [mean(0), mean(1)];
    const spread = points.reduce((sum, [hour]) => sum + (hour - x) ** 2, 0);
    const slope = points.reduce((sum, [hour, value]) => sum + (hour - x) * (value - y), 0) / spread;
    const rest = points.reduce(
      (sum, [hour, value]) => sum + (value - y - slope * (hour - x)) ** 2,
      0,
    );
    const half = 2 * Math.sqrt(rest / (points.length - 2) / spread);
    return [{ name, mean: y, slope, half, minutes: points.length }];
  });
}

function checkMemory(): void {
  const most = Math.max(...samples.map((each) => each.residentMiB ?? 0));
  if (most > MAX_MIB) fault(`it takes more than ${MAX_MIB} MiB`);
  for (const { name, slope, half } of growth()) {
    if (slope - half > MAX_GROWTH[name]) fault(`${name} grows by ${slope.toFixed(1)} an hour`);
  }
}

/** Counts the lines of each level; an error, and what the service did not write itself, is a fault. */
function readLog(text: string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const line of text.split("\n").filter(Boolean)) {
    const level = /^time=\S+ level=(\w+) /.exec(line)?.[1] ?? "foreign";
    counts[level] = (counts[level] ?? 0) + 1;
    if (level === "error" || level === "foreign") fault(`the log has: ${line}`);
  }
  return counts;
}

function report(lines: Record<string, number>, stopMs: number): void {
  const rows = [...loads].flatMap(([path, load]) =>
    [...load].map(([status, times]) => {
      const sorted = times.toSorted((a, b) => a - b);
      const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]?.toFixed(1);
      return { path, status, requests: times.length, "p50 ms": at(0.5), "p99 ms": at(0.99) };
    }),
  );
  console.table(rows);
  console.table(
    growth().map(({ name, mean, slope, half, minutes }) => ({
      figure: name,
      mean: mean.toFixed(1),
      "growth an hour": `${slope.toFixed(2)} ± ${half.toFixed(2)}`,
      minutes,
    })),
  );
  console.table({
    "resident MiB, most": Math.max(...samples.map((each) => each.residentMiB ?? 0)).toFixed(1),
    "MiB in the kernel's TCP, most": Math.max(...kernelMiBs).toFixed(1),
    ...done,
    ...Object.fromEntries(Object.entries(lines).map(([level, n]) => [`log lines, ${level}`, n])),
    "ms to stop": Math.round(stopMs),
    faults: faults.size,
  });
}
