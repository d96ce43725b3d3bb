/**
 * Measures the cost of Valkey: CPU and latency of a request without it, with it, and while it is away; the
 * calls that a client of 50 requests a second causes; and the rate of three instances that count together. `bun run bench valkey`. It needs wrk, and redis-server or
 * valkey-server.
 *
 * All servers listen on loopback and are loaded one after the other, round by round; each figure is the
 * median of the rounds. It builds the executable first.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BEAT_MS } from "../src/valkey/valkey.ts";
import { run } from "../test/lab/run.ts";
import { ValkeyServer } from "../test/lab/valkey.ts";
import { ROOT } from "./build/source.ts";
import { cpuSeconds, type Load, load, median, residentMiB } from "./measure.ts";

const ROUNDS = 5;
const SECONDS = 3;
const PATH = "/api/v1/myip";
const LIMIT = "10000000";

interface Server {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  stop(): void;
}

const folder = mkdtempSync(join(tmpdir(), "sixscope-bench-"));
const started: Server[] = [];
await using valkey = await ValkeyServer.start();
await using frozen = await ValkeyServer.start();
try {
  await run([process.execPath, join(ROOT, "scripts/build.ts")]);
  const alone = await start("alone", {});
  const shared = await start("with Valkey", { SIXSCOPE_VALKEY_URL: valkey.url });
  const others = [
    shared,
    await start("second", { SIXSCOPE_VALKEY_URL: valkey.url }),
    await start("third", { SIXSCOPE_VALKEY_URL: valkey.url }),
  ];
  const away = await start("with Valkey frozen", { SIXSCOPE_VALKEY_URL: frozen.url });
  frozen.signal("SIGSTOP");
  for (const connections of [1, 32]) await compare([alone, shared, away], connections);
  await calls(others);
  await together(others);
  console.log("\nresident memory after the load");
  for (const { name, pid } of started) {
    console.log(`${name.padEnd(20)} ${residentMiB(pid).toFixed(1).padStart(8)} MiB`);
  }
} finally {
  for (const { stop } of started) stop();
  rmSync(folder, { recursive: true });
}

async function compare(servers: readonly Server[], connections: number): Promise<void> {
  const results = new Map<Server, Load[]>(servers.map((server) => [server, []]));
  // The first round warms up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [{ url, pid }, measured] of results) {
      const one = await load(url, pid, [`-c${connections}`, `-d${SECONDS}s`]);
      if (round > 0) measured.push(one);
    }
  }
  console.log(`\nGET ${PATH}, connections: ${connections}`);
  for (const [{ name }, measured] of results) {
    const of = (field: keyof Load) => median(measured.map((one) => one[field]));
    const columns = [
      name.padEnd(20),
      `${of("cpuUs").toFixed(1)} µs CPU`.padStart(13),
      `${of("perSecond").toFixed(0)}/s`.padStart(9),
      `p50 ${of("p50Ms").toFixed(2)} ms`.padStart(13),
      `p99 ${of("p99Ms").toFixed(2)} ms`.padStart(13),
    ];
    console.log(columns.join(" "));
  }
}

/** Sends 50 requests a second for ten seconds, to one instance and to all in turn. */
async function calls(servers: readonly Server[]): Promise<void> {
  const [one] = servers as [Server];
  const ways = [
    ["one instance", [one]],
    ["three in turn", servers],
  ] as const;
  const count = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(await valkey.cli("INFO", "commandstats"))?.[1]);
  console.log("\ncalls to Valkey for a request, at 50 requests a second of one client");
  for (const [name, used] of ways) {
    const before = await count();
    const startMs = performance.now();
    for (let request = 0; request < 500; request++) {
      await Promise.all([fetch(used[request % used.length]?.url ?? ""), Bun.sleep(20)]);
    }
    const all = (await count()) - before;
    // All instances say that they are there, also those that are not asked.
    const beats = ((performance.now() - startMs) / BEAT_MS) * servers.length;
    console.log(
      `${name.padEnd(20)} ${((all - beats) / 500).toFixed(2).padStart(8)}, ${(all / 500).toFixed(2)} with the beats`,
    );
  }
}

/** Loads all instances at once. */
async function together(servers: readonly Server[]): Promise<void> {
  const rates: number[] = [];
  const shares: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = cpuSeconds(valkey.pid);
    const loads = await Promise.all(
      servers.map(({ url, pid }) => load(url, pid, ["-c32", `-d${SECONDS}s`])),
    );
    rates.push(loads.reduce((sum, { perSecond }) => sum + perSecond, 0));
    shares.push(((cpuSeconds(valkey.pid) - before) / SECONDS) * 100);
  }
  console.log("\nthree instances at once, 32 connections each");
  console.log(
    `${median(rates).toFixed(0)}/s together, of a core for Valkey: ${median(shares).toFixed(0)} %`,
  );
}

async function start(name: string, settings: Readonly<Record<string, string>>): Promise<Server> {
  const child = Bun.spawn([join(ROOT, "dist/sixscope")], {
    env: {
      SIXSCOPE_LISTEN: "127.0.0.1:0",
      SIXSCOPE_KEYS_FILE: join(folder, "keys.json"),
      SIXSCOPE_RATE_ANONYMOUS: LIMIT,
      SIXSCOPE_LOG_LEVEL: "error",
      ...settings,
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  const [url] = /http:\/\/[^ \n]+/.exec(new TextDecoder().decode(value)) ?? [];
  if (url === undefined) throw new Error(`${name} did not start`);
  const server = { name, url: url + PATH, pid: child.pid, stop: () => child.kill() };
  started.push(server);
  return server;
}
