/**
 * CPU time of each request of the compiled executable, beside scripts that return the same bytes: a bare
 * Bun.serve, one with only the calls that the API needs of Bun, and Hono alone; and nginx if it is
 * installed. `bun run bench http`. It needs wrk.
 *
 * All servers listen on loopback and are loaded one after the other, round by round, so that a busy
 * moment of the machine affects every row alike. CPU time does not depend on other programs as the rate
 * does; each figure is the median of the rounds.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tryParseIp } from "../src/addr/ip.ts";
import { identifyCaller } from "../src/http/client-address.ts";
import { generateApiKey, hashApiKey } from "../src/keys/api-key.ts";
import { writeKeyFile } from "../src/keys/key-file.ts";
import { createKeyring } from "../src/keys/keyring.ts";
import { createRateLimiter } from "../src/limits/token-bucket.ts";
import { createLog } from "../src/util/log.ts";
import { freePort } from "../test/lab/port.ts";
import { run } from "../test/lab/run.ts";
import { ROOT } from "./build/source.ts";
import { type Load, load, median, residentMiB } from "./measure.ts";

const ROUNDS = 5;
const SECONDS = 3;
const CONNECTIONS = 32;
const PATHS = ["/api/v1/myip", "/api/v1/validate?address=2001:db8::1"] as const;

interface Server {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  stop(): void;
}

if (Bun.which("wrk") === null) {
  console.error("wrk is not installed");
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), "sixscope-bench-"));
const started: Server[] = [];
const key = generateApiKey();
await writeKeyFile(join(folder, "keys.json"), [
  {
    name: "bench",
    sha256: hashApiKey(key),
    created: new Date().toISOString(),
    limit: 10_000_000,
  },
]);

await run([process.execPath, join(ROOT, "scripts/build.ts")]);
const ours = await startSixscope("sixscope", "warn", "10000000");
const logged = await startSixscope("sixscope, request lines logged", "info", "10000000");
const refusing = await startSixscope("sixscope, over the rate limit", "info", "1");
const observed = await startSixscope("sixscope, with metrics", "warn", "10000000", {
  SIXSCOPE_METRICS_LISTEN: "127.0.0.1:0",
});
const sample = await fetch(`${ours.url}${PATHS[0]}`);
const headers = [...sample.headers].filter(([name]) => !["date", "content-length"].includes(name));
const bodies = await Promise.all(
  PATHS.map(async (path) => await (await fetch(`${ours.url}${path}`)).text()),
);
const nginx = Bun.which("nginx") === null ? [] : [await startNginx()];

try {
  for (const path of PATHS) {
    const peers = [
      await startPeer("bare Bun.serve", "bare", path),
      await startPeer("the calls of Bun that the API needs", "calls", path),
      await startPeer("Hono alone", "hono", path),
      ...nginx,
    ];
    await compare(path, path === PATHS[0], [ours, logged, ...peers]);
  }
  await compare(PATHS[0], false, [logged, refusing]);
  await compare(PATHS[0], false, [ours, observed]);
  memory();
  await middleware();
} finally {
  for (const { stop } of started) stop();
  // nginx removes its own file meanwhile.
  rmSync(folder, { recursive: true, force: true });
}

/** Loads servers with one path, with the key or without, and prints the table. The third and fourth server are the peers. */
async function compare(path: string, withKey: boolean, servers: readonly Server[]): Promise<void> {
  const results = new Map<Server, Load[]>(servers.map((server) => [server, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const server of servers) {
      const header = withKey ? ["-H", `X-API-Key: ${key}`] : [];
      const options = [`-c${CONNECTIONS}`, `-d${SECONDS}s`, ...header];
      const measured = await load(server.url + path, server.pid, options);
      // The first round warms up.
      if (round > 0) results.get(server)?.push(measured);
    }
  }
  const medianOf = (server: Server, field: keyof Load) =>
    median((results.get(server) ?? []).map((measured) => measured[field]));
  console.log(
    `\nGET ${path}${withKey ? " with a key" : ""}, ${CONNECTIONS} connections, median of ${ROUNDS} rounds of ${SECONDS} s`,
  );
  const peers = servers.slice(2, 4);
  for (const server of servers) {
    const cpuUs = medianOf(server, "cpuUs");
    const ratios = peers.map((peer) => (medianOf(peer, "cpuUs") / cpuUs).toFixed(2));
    const columns = [
      server.name.padEnd(36),
      `${cpuUs.toFixed(1)} µs CPU`.padStart(13),
      ...(ratios.length > 0 ? [`${ratios.join(" and ")} of the peers`.padStart(29)] : []),
      `${medianOf(server, "perSecond").toFixed(0)}/s`.padStart(10),
      `p99 ${medianOf(server, "p99Ms").toFixed(2)} ms`.padStart(14),
    ];
    console.log(columns.join(" "));
  }
}

/** Resident memory of each server after the load. */
function memory(): void {
  console.log("\nresident memory after the load, and the peak");
  for (const { name, pid } of started) {
    const [now, peak] = [residentMiB(pid), residentMiB(pid, "VmHWM")];
    console.log(
      `${name.padEnd(36)} ${now.toFixed(1).padStart(8)} ${peak.toFixed(1).padStart(8)} MiB`,
    );
  }
}

/** Nanoseconds of each step of the middleware, and the memory that five million addresses leave behind. */
async function middleware(): Promise<void> {
  const log = createLog({ level: "info", format: "text", priorities: false, write: () => {} });
  const trust = {
    trustedProxies: { unix: true, prefixes: [] },
    plainHttpFrom: [],
    keylessFrom: [],
  };
  const request = new Headers({ Host: "localhost", Accept: "*/*", "User-Agent": "bench" });
  const keyring = await createKeyring(join(folder, "none.json"), log);
  const limiter = createRateLimiter({ anonymous: 1e9, prefix: 1e9 });
  const subject = { address: tryParseIp("2001:db8::1") } as const;
  const wrongKey = generateApiKey();
  const steps: [string, () => unknown][] = [
    ["client address", () => identifyCaller({ peer: "::1", encrypted: false }, request, trust)],
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
    const flooded = createRateLimiter({ anonymous: 100, prefix: 1000 });
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
      flooded.take({ address }, 1);
    }
    const ns = (Bun.nanoseconds() - startNs) / ADDRESSES;
    Bun.gc(true);
    const grown = (process.memoryUsage.rss() - before) / 1024 / 1024;
    console.log(
      `${`five million addresses, ${spread}`.padEnd(32)} ${ns.toFixed(0).padStart(8)} ns each, ${grown.toFixed(1)} MB more`,
    );
  }
}

async function startSixscope(
  name: string,
  level: string,
  rate: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const child = Bun.spawn([join(ROOT, "dist/sixscope")], {
    env: {
      SIXSCOPE_LISTEN: "127.0.0.1:0",
      SIXSCOPE_KEYS_FILE: join(folder, "keys.json"),
      SIXSCOPE_RATE_ANONYMOUS: rate,
      SIXSCOPE_LOG_LEVEL: level,
      ...settings,
      // As in systemd/sixscope.service.
      BUN_JSC_forceRAMSize: "134217728",
    },
    stdout: "pipe",
    stderr: Bun.file(join(folder, "log")),
  });
  return await register(name, child);
}

async function startPeer(name: string, kind: string, path: string): Promise<Server> {
  const child = Bun.spawn(["bun", join(import.meta.dir, "peers/http.ts"), kind, path], {
    env: { ...process.env, PEER_ANSWERS: JSON.stringify({ headers, paths: PATHS, bodies }) },
    stdout: "pipe",
    stderr: "inherit",
  });
  return await register(name, child);
}

async function startNginx(): Promise<Server> {
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
    `daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr;
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
  const server = { name: "nginx", url, pid: child.pid, stop: () => child.kill() };
  started.push(server);
  return server;
}

/** Reads the URL out of the first line that a server prints. */
async function register(
  name: string,
  child: { readonly stdout: ReadableStream<Uint8Array>; readonly pid: number; kill(): void },
): Promise<Server> {
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const [url] = /http:\/\/[^ \n]+/.exec(new TextDecoder().decode(value)) ?? [];
  if (url === undefined) throw new Error(`${name} did not start`);
  const server = { name, url, pid: child.pid, stop: () => child.kill() };
  started.push(server);
  return server;
}
