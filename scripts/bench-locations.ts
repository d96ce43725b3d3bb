/**
 * Measures what asking another location costs, with the compiled executable and a NATS server on this
 * machine: `bun run bench locations`. It needs nats-server, and root for the probes.
 *
 * Rounds of pings of the loopback address, by the service itself and by an agent, are interleaved; the
 * difference is the way to the agent and back. Then many streams run at once, each with ten events of an
 * agent that does not probe: real ones would share the bound for each /64.
 *
 * With a number, `bun scripts/bench-locations.ts 1000`, it measures the cost of as many agents that do nothing.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@nats-io/transport-node";
import { ANNOUNCE_MS } from "../src/locations/directory.ts";
import { SUBJECTS } from "../src/locations/protocol.ts";
import { startAgent, startNats } from "../test/lab/nats.ts";
import { startService } from "../test/lab/service.ts";
import { compile, hostTarget } from "./build/compile.ts";
import { readSource } from "./build/source.ts";
import { cpuSeconds, median, residentMiB } from "./measure.ts";

const ROUNDS = 2000;
const WARM_UP = 200;
const STREAMS = [100, 1000, 3000];

const folder = mkdtempSync(join(tmpdir(), "sixscope-bench-"));
const program = [join(folder, "sixscope")];
await compile(hostTarget(), await readSource(), program[0] as string);
await using nats = await startNats();
const settings = {
  SIXSCOPE_NATS_URL: nats.url,
  SIXSCOPE_MAX_PROBES: "3000",
  SIXSCOPE_RATE_KEY: "10000000",
  // As in the units and the image.
  BUN_JSC_forceRAMSize: "134217728",
};
await using _agent = await startAgent({ ...settings, SIXSCOPE_LOCATION: "ams" }, [], program);
await using service = await startService(settings, [], program);
await service.says("connected to NATS");
const headers = { "X-API-Key": service.key };

async function ping(from: string): Promise<number> {
  const startMs = performance.now();
  const response = await fetch(`${service.url}/ping/::1?count=1${from}`, { headers });
  await response.text();
  if (!response.ok) throw new Error(`status ${response.status}`);
  return performance.now() - startMs;
}

/** An agent that sends ten samples in two seconds. */
async function startFakeAgent() {
  const EVENTS = 10;
  const INTERVAL_MS = 200;
  const connection = await connect({ servers: [nats.url] });
  const real = await (await fetch(`${service.url}/ping/::1?count=${EVENTS}`, { headers })).json();
  connection.subscribe(SUBJECTS.ask("fake", "*"), {
    callback(_, message) {
      let seq = 0;
      const timer = setInterval(() => {
        seq += 1;
        message.respond(JSON.stringify({ event: "sample", data: { seq, ttl: 64, rtt: 0.1 } }));
        if (seq < EVENTS) return;
        clearInterval(timer);
        message.respond(JSON.stringify({ result: real }));
      }, INTERVAL_MS);
    },
  });
  await connection.flush();
  return connection;
}

/** The events of a stream until its result; over a socket, because fetch has at most 256 connections. */
async function streamEvents(): Promise<number> {
  const { hostname, port } = new URL(service.url);
  const request = [
    "GET /api/v1/ping/::1?count=10&from=fake HTTP/1.1",
    "Host: localhost",
    "Accept: text/event-stream",
    `X-API-Key: ${service.key}`,
  ];
  const { promise, resolve } = Promise.withResolvers<void>();
  let text = "";
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, bytes) {
        text += bytes.toString();
        if (text.includes("event: result")) resolve();
      },
      close: () => resolve(),
    },
  });
  socket.write(`${request.join("\r\n")}\r\n\r\n`);
  await promise;
  socket.end();
  if (!text.includes("event: result")) throw new Error(text.slice(0, 300));
  return text.split("event: sample").length - 1;
}

/** Fake agents that announce themselves, as real ones do. */
async function measureFleet(agents: number): Promise<void> {
  const MEASURED_MS = 8 * ANNOUNCE_MS;
  const connection = await connect({ servers: [nats.url] });
  const before = residentMiB(service.pid, "RssAnon");
  const restCpu = cpuSeconds(service.pid);
  await Bun.sleep(MEASURED_MS);
  const atRest = (cpuSeconds(service.pid) - restCpu) / (MEASURED_MS / 1000);
  const beats = Array.from({ length: agents }, (_, at) => {
    const subject = SUBJECTS.here(`n${at}`, at.toString(16).padStart(8, "0"));
    const about = { version: "0.1.0", families: [4, 6], since: new Date(0).toISOString() };
    const description = JSON.stringify({ ...about, tags: [`t${at % 100}`, "eu"] });
    let timer = setTimeout(function beat() {
      connection.publish(subject, description);
      timer = setTimeout(beat, ANNOUNCE_MS);
    }, Math.random() * ANNOUNCE_MS);
    return () => clearTimeout(timer);
  });
  const list = async (etag = "") => {
    const [startMs, startCpu] = [performance.now(), cpuSeconds(service.pid)];
    const response = await fetch(`${service.url}/locations`, {
      headers: { "If-None-Match": etag },
    });
    const { length } = await response.text();
    const cpu = `${((cpuSeconds(service.pid) - startCpu) * 1000).toFixed(0)} ms of CPU`;
    const took = `${ms(performance.now() - startMs).trim()} (${cpu})`;
    return { took, length, etag: response.headers.get("etag") ?? "" };
  };
  await Bun.sleep(2 * ANNOUNCE_MS);
  const first = await list();
  const second = await list();
  const kept = await list(first.etag);
  console.log(
    `\n${agents} agents: /locations has ${first.length} characters; first in ${first.took}, again in ${second.took}, not modified in ${kept.took}`,
  );
  const startCpu = cpuSeconds(service.pid);
  await Bun.sleep(MEASURED_MS);
  const share = (cpuSeconds(service.pid) - startCpu) / (MEASURED_MS / 1000);
  const after = residentMiB(service.pid, "RssAnon");
  console.log(
    `CPU of the service: ${(share * 100).toFixed(2)} % of a core, ${(atRest * 100).toFixed(2)} % without them; memory: ${before.toFixed(1)} MiB before, ${after.toFixed(1)} MiB with them`,
  );
  for (const stop of beats) stop();
  await connection.close();
}

const ms = (value: number) => `${value.toFixed(2)} ms`.padStart(10);

const { SIXSCOPE_NATS_URL: _, ...alone } = settings;
await using without = await startService(alone, [], program);
await Bun.sleep(1000);
const memory = [without, service].map(({ pid }) => `${residentMiB(pid, "RssAnon").toFixed(1)} MiB`);
console.log(`private memory at rest: ${memory[0]} without NATS, ${memory[1]} with it\n`);

try {
  const [agents] = process.argv.slice(2).map(Number);
  if (agents !== undefined) {
    await measureFleet(agents);
    process.exit(0);
  }
  const times = { "": [] as number[], "&from=ams": [] as number[] };
  for (let round = 0; round < ROUNDS + WARM_UP; round++) {
    for (const [from, taken] of Object.entries(times)) {
      const elapsed = await ping(from);
      if (round >= WARM_UP) taken.push(elapsed);
    }
  }
  console.log("ping of ::1, one request      p50         p99");
  for (const [from, taken] of Object.entries(times)) {
    const p99 = taken.toSorted((a, b) => a - b)[Math.floor(taken.length * 0.99)] ?? Number.NaN;
    console.log(`${(from || "here").padEnd(20)} ${ms(median(taken))}  ${ms(p99)}`);
  }
  const fake = await startFakeAgent();
  console.log("\nstreams at once, 10 events in 2 s    all ended after   CPU of the service");
  for (const count of STREAMS) {
    const [startMs, startCpu] = [performance.now(), cpuSeconds(service.pid)];
    const events = await Promise.all(Array.from({ length: count }, streamEvents));
    const told = events.reduce((sum, each) => sum + each, 0);
    const cpu = cpuSeconds(service.pid) - startCpu;
    console.log(
      `${`${count}, ${told} events`.padEnd(36)} ${ms(performance.now() - startMs)}  ${`${cpu.toFixed(2)} s`.padStart(14)}`,
    );
  }
  await fake.close();
} finally {
  rmSync(folder, { recursive: true });
}
