/**
 * Requests a second and p99 of the compiled executable, beside a bare Bun.serve and Hono alone that
 * return the same bytes, and nginx if it is installed: `bun run bench http`. It needs wrk.
 *
 * All servers listen on loopback and are loaded one after the other, round by round, so that a busy
 * moment of the machine affects every row; each row shows the median of its rounds.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tryParseIp } from "../src/addr/ip.ts";
import { identifyCaller } from "../src/http/client-address.ts";
import { generateApiKey } from "../src/keys/api-key.ts";
import { Keyring } from "../src/keys/keyring.ts";
import { RateLimiter } from "../src/limits/token-bucket.ts";
import { createLog } from "../src/util/log.ts";
import { freePort } from "../test/lab/port.ts";
import { run } from "../test/lab/run.ts";
import { ROOT } from "./build/source.ts";
import { median, residentMiB } from "./measure.ts";

const ROUNDS = 5;
const SECONDS = 3;
const CONNECTIONS = 32;
const PATHS = ["/api/v1/myip", "/api/v1/validate?address=2001:db8::1"] as const;

if (Bun.which("wrk") === null) {
  console.error("wrk is not installed");
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "sixscope-bench-"));
const started: { name: string; url: string; pid: number; stop: () => void }[] = [];

await run([process.execPath, join(ROOT, "scripts/build.ts")]);
await startSixscope("sixscope", "warn");
await startSixscope("sixscope, request lines logged", "info");
const sample = await fetch(`${started[0]?.url}${PATHS[0]}`);
const headers = [...sample.headers].filter(([name]) => !["date", "content-length"].includes(name));
const bodies = await Promise.all(
  PATHS.map(async (path) => await (await fetch(`${started[0]?.url}${path}`)).text()),
);
await startPeer("bare Bun.serve", "bare");
await startPeer("Hono alone", "hono");
if (Bun.which("nginx") !== null) await startNginx();

try {
  for (const path of PATHS) await compare(path);
  memory();
  middleware();
} finally {
  for (const { stop } of started) stop();
  rmSync(folder, { recursive: true });
}

/** Loads every server with one path and prints the table. */
async function compare(path: string): Promise<void> {
  const results = new Map<string, { perSecond: number[]; p99Ms: number[] }>();
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { name, url } of started) {
      const { perSecond, p99Ms } = await load(`${url}${path}`);
      // The first round warms up.
      if (round === 0) results.set(name, { perSecond: [], p99Ms: [] });
      else {
        results.get(name)?.perSecond.push(perSecond);
        results.get(name)?.p99Ms.push(p99Ms);
      }
    }
  }
  const bare = median(results.get("bare Bun.serve")?.perSecond ?? []);
  console.log(
    `\nGET ${path}, ${CONNECTIONS} connections, median of ${ROUNDS} rounds of ${SECONDS} s`,
  );
  for (const [name, { perSecond, p99Ms }] of results) {
    const rate = median(perSecond);
    console.log(
      `${name.padEnd(32)} ${rate.toFixed(0).padStart(8)}/s  p99 ${median(p99Ms).toFixed(2).padStart(6)} ms  ${(rate / bare).toFixed(2)} of bare`,
    );
  }
}

async function load(url: string): Promise<{ perSecond: number; p99Ms: number }> {
  const report = await run(["wrk", "-t1", `-c${CONNECTIONS}`, `-d${SECONDS}s`, "--latency", url]);
  if (/Non-2xx|Socket errors/.test(report)) throw new Error(report);
  const [, value = "", unit = ""] = /99%\s+([\d.]+)(us|ms|s)/.exec(report) ?? [];
  const p99Ms = Number(value) * ({ us: 0.001, ms: 1, s: 1000 }[unit] ?? Number.NaN);
  return { perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(report)?.[1]), p99Ms };
}

/** Resident memory of each server after the load. */
function memory(): void {
  console.log("\nresident memory after the load");
  for (const { name, pid } of started) {
    console.log(`${name.padEnd(32)} ${residentMiB(pid).toFixed(1).padStart(8)} MiB`);
  }
}

/** Nanoseconds of each step of the middleware, and the memory that five million addresses leave behind. */
function middleware(): void {
  const log = createLog({ level: "info", format: "text", priorities: false, write: () => {} });
  const trusted = { unix: true, prefixes: [] };
  const request = new Headers({ Host: "localhost", Accept: "*/*", "User-Agent": "bench" });
  const keyring = new Keyring(join(folder, "none.json"), log);
  const limiter = new RateLimiter({ anonymous: 1e9, prefix: 1e9 });
  const subject = { kind: "address", address: tryParseIp("2001:db8::1") } as const;
  const wrongKey = generateApiKey();
  const steps: [string, () => unknown][] = [
    [
      "client address",
      () => identifyCaller({ kind: "tcp", peer: "::1", encrypted: false }, request, trusted),
    ],
    ["rate limit, IPv6", () => limiter.take(subject, 1)],
    ["a wrong key, well formed", () => keyring.find(wrongKey)],
    ["a wrong key, malformed", () => keyring.find("sx_wrong")],
    ["request id", () => crypto.randomUUID()],
    ["request line", () => log.info("request", { id: "x", client: "::1", status: 200, ms: 0.1 })],
  ];
  console.log("\nsteps of the middleware");
  for (const [name, step] of steps) {
    const COUNT = 200_000;
    for (let count = 0; count < COUNT; count++) step();
    const startNs = Bun.nanoseconds();
    for (let count = 0; count < COUNT; count++) step();
    const ns = (Bun.nanoseconds() - startNs) / COUNT;
    console.log(`${name.padEnd(32)} ${ns.toFixed(0).padStart(8)} ns`);
  }

  for (const spread of ["one /32", "many"] as const) {
    const flooded = new RateLimiter({ anonymous: 100, prefix: 1000 });
    const ADDRESSES = 5_000_000;
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    let randomState = 1;
    const next = () => {
      randomState = (Math.imul(randomState, 1_664_525) + 1_013_904_223) >>> 0;
      return randomState;
    };
    const startNs = Bun.nanoseconds();
    for (let count = 0; count < ADDRESSES; count++) {
      const word0 = spread === "many" ? next() : 0x20010db8;
      const address = { version: 6, word0, word1: next(), word2: 0, word3: count } as const;
      flooded.take({ kind: "address", address }, 1);
    }
    const ns = (Bun.nanoseconds() - startNs) / ADDRESSES;
    Bun.gc(true);
    const grown = (process.memoryUsage.rss() - before) / 1024 / 1024;
    console.log(
      `${`five million addresses, ${spread}`.padEnd(32)} ${ns.toFixed(0).padStart(8)} ns each, ${grown.toFixed(1)} MB more`,
    );
  }
}

async function startSixscope(name: string, level: string): Promise<void> {
  const child = Bun.spawn([join(ROOT, "dist/sixscope")], {
    env: {
      SIXSCOPE_LISTEN: "127.0.0.1:0",
      SIXSCOPE_KEYS_FILE: join(folder, "keys.json"),
      SIXSCOPE_RATE_ANONYMOUS: "10000000",
      SIXSCOPE_LOG_LEVEL: level,
    },
    stdout: "pipe",
    stderr: Bun.file(join(folder, "log")),
  });
  await register(name, child);
}

async function startPeer(name: string, kind: string): Promise<void> {
  const child = Bun.spawn(["bun", join(import.meta.dir, "peers/http.ts"), kind], {
    env: { ...process.env, PEER_ANSWERS: JSON.stringify({ headers, paths: PATHS, bodies }) },
    stdout: "pipe",
    stderr: "inherit",
  });
  await register(name, child);
}

async function startNginx(): Promise<void> {
  const port = await freePort();
  const lines = headers
    .filter(([name]) => name !== "content-type")
    .map(([name, value]) => `add_header ${name} "${value}";`)
    .join("\n");
  const locations = PATHS.map(
    (path, index) => `location = ${path.split("?")[0]} { ${lines} return 200 '${bodies[index]}'; }`,
  ).join("\n");
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr;
events {}
http {
  access_log off; default_type application/json; keepalive_requests 100000000;
  client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder};
  uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
  server { listen 127.0.0.1:${port}; ${locations} }
}
`,
  );
  const child = Bun.spawn(["nginx", "-c", join(folder, "nginx.conf")], { stderr: "inherit" });
  const url = `http://127.0.0.1:${port}`;
  while ((await fetch(url).catch(() => null)) === null) await Bun.sleep(20);
  started.push({ name: "nginx, one worker", url, pid: child.pid, stop: () => child.kill() });
}

/** Reads the URL out of the first line that a server prints. */
async function register(
  name: string,
  child: { readonly stdout: ReadableStream<Uint8Array>; readonly pid: number; kill(): void },
): Promise<void> {
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const [url] = /http:\/\/[^ \n]+/.exec(new TextDecoder().decode(value)) ?? [];
  if (url === undefined) throw new Error(`${name} did not start`);
  started.push({ name, url, pid: child.pid, stop: () => child.kill() });
}
