/**
 * Measures the DNS client beside its peers, all against one local knotd: `bun run bench dns`, and with
 * `dnssec` behind it only the verdicts of DNSSEC. It runs in its own network namespace, as the tests do.
 */
import "../test/lab/enter.ts";
import { Resolver } from "node:dns";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatIp } from "../src/addr/ip.ts";
import { ipv6ToBytes } from "../src/addr/ipv6.ts";
import {
  formatSocketAddress,
  type SocketAddress,
  tryParseSocketAddress,
} from "../src/addr/socket-address.ts";
import { createDnsClient, type QueryOptions } from "../src/dns/client.ts";
import type { TrustAnchor } from "../src/dns/dnssec/chain.ts";
import { createWork } from "../src/dns/dnssec/limits.ts";
import { validate } from "../src/dns/dnssec/validate.ts";
import { createQuery, createQuestion, decodeMessage } from "../src/dns/message/message.ts";
import { decodeName } from "../src/dns/message/name.ts";
import { typeName } from "../src/dns/message/record.ts";
import { C, loadLibc } from "../src/platform/libc.ts";
import { AF_INET6, SOCK, SOCKADDR } from "../src/platform/linux.ts";
import { checkDnssec } from "../src/tools/dns/dnssec.ts";
import { World } from "../test/dns/dnssec/signed-world.ts";
import { startKnot } from "../test/lab/dns-server.ts";
import { labMissing, programMissing } from "../test/lab/lab.ts";
import { median } from "./measure.ts";

const ZONE = `
$ORIGIN bench.example.
$TTL 300
@ SOA ns hostmaster 1 2 3 4 5
@ NS ns
ns AAAA ::1
* AAAA 2001:db8::1
${Array.from({ length: 10 }, (_, at) => `ten AAAA 2001:db8::${at}`).join("\n")}
`;

const AT_ONCE = [1, 32, 200] as const;
const ROUNDS = 5;
const QUERIES_A_ROUND = 10_000;
const DNSPERF_SECONDS = 3;
const TIMED_QUERIES = 200;
const MAX_REPLY_BYTES = 1500;

/** Queries to a resolver with some silent servers. */
const FAIL_OVER_QUERIES = 100;

interface Speed {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  /** Milliseconds of each query in ascending order; empty if the peer does not tell. */
  readonly tookMs: readonly number[];
}

/** A new name, because Bun's own resolver has a cache. */
let nameCount = 0;
const newName = () => `n${nameCount++}.bench.example`;

const question = (label: string) => createQuestion(`${label}.bench.example.`, "AAAA");

/** Sends `count` queries, `atOnce` at a time. */
async function measure(ask: () => Promise<unknown>, atOnce: number, count: number): Promise<Speed> {
  const cpuStart = process.cpuUsage();
  const startMs = performance.now();
  const tookMs: number[] = [];
  let left = count;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (left-- > 0) {
        const askedMs = performance.now();
        await ask();
        tookMs.push(performance.now() - askedMs);
      }
    }),
  );
  const allMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuStart);
  const perSecond = (count / allMs) * 1000;
  tookMs.sort((a, b) => a - b);
  return { perSecond, cpuMicroseconds: (user + system) / count, tookMs };
}

function ourAsk(server: SocketAddress): () => Promise<unknown> {
  const client = createDnsClient({ servers: [server] });
  return async () => {
    const outcome = await client.query(newName(), "AAAA");
    if (outcome.kind !== "answer") throw new Error(`our client: ${outcome.kind}`);
  };
}

function nodeAsk(server: SocketAddress): () => Promise<unknown> {
  const resolver = new Resolver();
  resolver.setServers([formatSocketAddress(server)]);
  return () =>
    new Promise<void>((resolve, reject) => {
      resolver.resolve6(newName(), (error) => (error ? reject(error) : resolve()));
    });
}

/** The cost of one socket per query in Bun, without reading the bytes. */
function bareAsk({ address, port }: SocketAddress): () => Promise<unknown> {
  const { bytes } = createQuery(question("n"), true, () => {});
  return async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const socket = await Bun.udpSocket({
      hostname: "::",
      connect: { hostname: formatIp(address), port },
      socket: { data: () => resolve(), error() {} },
    });
    socket.send(bytes);
    await promise;
    socket.close();
  };
}

/**
 * The cost of one socket per query in the kernel alone, without an event loop and without reading the
 * bytes: the minimum for a client with one socket per query.
 */
function measureSystemCalls(
  { address, port }: SocketAddress,
  atOnce: number,
  count: number,
): Speed {
  const libc = loadLibc({
    socket: { args: [C.int, C.int, C.int], returns: C.int },
    connect: { args: [C.int, C.pointer, C.uint], returns: C.int },
    send: { args: [C.int, C.pointer, C.size, C.int], returns: C.long },
    recv: { args: [C.int, C.pointer, C.size, C.int], returns: C.long },
    close: { args: [C.int], returns: C.int },
  });
  if (address.version !== 6) throw new Error("the server has no IPv6 address");
  const server = new Uint8Array(new ArrayBuffer(SOCKADDR.bytes));
  const view = new DataView(server.buffer);
  view.setUint16(SOCKADDR.family, AF_INET6, true);
  view.setUint16(SOCKADDR.port, port);
  server.set(ipv6ToBytes(address), SOCKADDR.address);
  const query = Uint8Array.from(createQuery(question("n"), true, () => {}).bytes);
  const reply = new Uint8Array(new ArrayBuffer(MAX_REPLY_BYTES));
  const cpuStart = process.cpuUsage();
  const startMs = performance.now();
  for (let asked = 0; asked < count; asked += atOnce) {
    const sockets = Array.from({ length: atOnce }, () => libc.socket(AF_INET6, SOCK.dgram, 0));
    for (const socket of sockets) libc.connect(socket, server, server.length);
    for (const socket of sockets) libc.send(socket, query, query.length, 0);
    for (const socket of sockets) {
      if (libc.recv(socket, reply, reply.length, 0) <= 0) throw new Error("no reply");
      libc.close(socket);
    }
  }
  const tookMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuStart);
  const perSecond = (count / tookMs) * 1000;
  return { perSecond, cpuMicroseconds: (user + system) / count, tookMs: [] };
}

/** The figures of dnsperf, which uses few sockets and decodes only the header. */
async function dnsperf({ address, port }: SocketAddress, atOnce: number): Promise<Speed> {
  const names = join(tmpdir(), `sixscope-bench-${process.pid}`);
  await Bun.write(names, Array.from({ length: 10_000 }, () => `${newName()} AAAA\n`).join(""));
  const run = Bun.spawnSync([
    ...["dnsperf", "-s", formatIp(address), "-p", String(port), "-d", names],
    ...["-q", String(atOnce), "-c", "1", "-T", "1", "-l", String(DNSPERF_SECONDS)],
  ]);
  await Bun.file(names).delete();
  const said = run.stdout.toString();
  const completed = Number(/Queries completed:\s+(\d+)/.exec(said)?.[1]);
  return {
    perSecond: Number(/Queries per second:\s+([\d.]+)/.exec(said)?.[1]),
    cpuMicroseconds: Number(run.resourceUsage?.cpuTime.total ?? 0) / completed,
    tookMs: [],
  };
}

function show(label: string, speeds: readonly Speed[]): void {
  const perSecond = Math.round(median(speeds.map((speed) => speed.perSecond)));
  const cpu = median(speeds.map((speed) => speed.cpuMicroseconds)).toFixed(1);
  const at = (part: number) =>
    median(speeds.map(({ tookMs }) => tookMs[Math.floor(part * tookMs.length)] ?? 0)).toFixed(2);
  const times = speeds[0]?.tookMs.length === 0 ? "" : `  p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
  console.log(
    `  ${label.padEnd(34)}${String(perSecond).padStart(8)} queries/s ${cpu.padStart(7)} µs CPU each${times}`,
  );
}

async function compareThroughput(server: SocketAddress): Promise<void> {
  const ours = ourAsk(server);
  const node = nodeAsk(server);
  const bare = bareAsk(server);
  for (const ask of [ours, node, bare]) await measure(ask, 32, QUERIES_A_ROUND);
  for (const atOnce of AT_ONCE) {
    console.log(`\n${atOnce} at once, median of ${ROUNDS} rounds`);
    const peers: [string, () => Promise<unknown>][] = [
      ["sixscope, kept sockets", ours],
      ["node:dns of Bun, one socket", node],
    ];
    // This peer does not repeat a datagram that the server drops.
    if (atOnce <= 32) peers.push(["a bare Bun socket per query", bare]);
    const speeds = new Map<string, Speed[]>();
    for (let round = 0; round < ROUNDS; round++) {
      for (const [label, ask] of peers) {
        const speed = await measure(ask, atOnce, QUERIES_A_ROUND);
        speeds.set(label, [...(speeds.get(label) ?? []), speed]);
      }
    }
    for (const [label, all] of speeds) show(label, all);
    if (atOnce <= 32) {
      const rounds = Array.from({ length: ROUNDS }, () =>
        measureSystemCalls(server, atOnce, QUERIES_A_ROUND),
      );
      show("system calls alone, one socket per query", rounds);
    }
    // With one query at a time, dnsperf measures its own pauses.
    if (atOnce > 1 && programMissing("dnsperf") === null) {
      show("dnsperf, one socket", [await dnsperf(server, atOnce)]);
    }
  }
}

/** An answer with ten records as the server sends it, compressed. */
async function tenRecords({ address, port }: SocketAddress): Promise<Uint8Array> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  const socket = await Bun.udpSocket({
    hostname: "::",
    connect: { hostname: formatIp(address), port },
    binaryType: "uint8array",
    socket: { data: (_, bytes) => resolve(bytes), error() {} },
  });
  socket.send(createQuery(question("ten"), true, () => {}).bytes);
  const bytes = await promise;
  socket.close();
  return bytes;
}

function measureDecoding(bytes: Uint8Array): void {
  const { answers } = decodeMessage(bytes);
  const batches = Array.from({ length: 200 }, () => {
    const startMs = performance.now();
    for (let times = 0; times < 1000; times++) decodeMessage(bytes);
    return performance.now() - startMs;
  });
  // Milliseconds per thousand are microseconds per one.
  const [best, middle] = [Math.min(...batches), median(batches)];
  console.log(
    `\ndecoding an answer of ${answers.length} records: best ${best.toFixed(2)} µs, ${middle.toFixed(2)} µs median`,
  );
}

/** A server that never answers, at an address of its own. */
async function silentServer(): Promise<SocketAddress> {
  const { port } = await Bun.udpSocket({ hostname: "::1", socket: {} });
  return tryParseSocketAddress("::1", port) as SocketAddress;
}

/** The time of queries while one, two or all servers of a resolver are silent. */
async function measureFailOver(server: SocketAddress): Promise<void> {
  console.log("\nfail-over: time of the 1st, 2nd and 100th query");
  const silent = [await silentServer(), await silentServer(), await silentServer()];
  for (const [label, servers] of [
    ["one of two silent", [...silent.slice(0, 1), server]],
    ["two of three silent", [...silent.slice(0, 2), server]],
    ["all three silent", silent],
  ] as const) {
    const client = createDnsClient({ servers });
    const tookMs: number[] = [];
    for (let query = 0; query < FAIL_OVER_QUERIES; query++) {
      const startMs = performance.now();
      await client.query(newName(), "AAAA");
      tookMs.push(performance.now() - startMs);
    }
    const shown = [0, 1, 99].map((at) => `${tookMs[at]?.toFixed(1)} ms`);
    console.log(`  ${label.padEnd(34)}${shown.join(", ")}`);
  }
}

async function compareQueryTime(server: SocketAddress): Promise<void> {
  const client = createDnsClient({ servers: [server] });
  const [ours, shown, digs]: [number[], number[], number[]] = [[], [], []];
  for (let times = 0; times < TIMED_QUERIES; times++) {
    const startMs = performance.now();
    const { queryTimeMs } = await client.query(newName(), "AAAA");
    ours.push((performance.now() - startMs) * 1000);
    shown.push(queryTimeMs);
    const dig = Bun.spawnSync([
      ...[
        "dig",
        "-u",
        `@${formatIp(server.address)}`,
        "-p",
        String(server.port),
        newName(),
        "AAAA",
      ],
    ]).stdout.toString();
    digs.push(Number(/Query time: (\d+) usec/.exec(dig)?.[1]));
  }
  console.log(
    `\none query, median of ${TIMED_QUERIES}: sixscope ${median(ours).toFixed(0)} µs (queryTime ${median(shown)} ms), dig ${median(digs)} µs`,
  );
}

/** The ways in which the zones of a verdict are signed. */
const SIGNED = [8, 13, 14, 15].flatMap((algorithm) => [
  { algorithm, denial: "nsec", iterations: 0 } as const,
  { algorithm, denial: "nsec3", iterations: 0 } as const,
  { algorithm, denial: "nsec3", iterations: 100 } as const,
]);

/** A name that does not exist, three zones below the root: its proof needs the most work. */
const DENIED = "nothing.a.example.com.";

const newWorld = (zone: (typeof SIGNED)[number]) => {
  const names = [".", "com.", "example.com.", "a.example.com."];
  const now = Math.floor(Date.now() / 1000);
  return new World(
    names.map((name) => ({ ...zone, name, records: ["www AAAA ::1"] })),
    now,
  );
};

/** Serves each of these worlds at a port of its own, with all replies at hand, until it is killed. */
async function serveWorlds(): Promise<void> {
  const rows = SIGNED.map(async (signed) => {
    const world = newWorld(signed);
    const replies = new Map<string, Uint8Array>();
    const socket = await Bun.udpSocket({
      hostname: "::1",
      socket: {
        data(socket, query, port, address) {
          const nameEnd = query.indexOf(0, 12) + 1;
          const type = typeName(query.readUInt16BE(nameEnd));
          const name = decodeName(query, 12).toLowerCase();
          const reply = replies.getOrInsertComputed(`${name} ${type}`, () => {
            const found = world.reply(name, type);
            if (typeof found === "string") throw new Error(found);
            return found.message;
          });
          const header = Buffer.from(reply.subarray(0, 12));
          query.copy(header, 0, 0, 2);
          header.writeUInt16BE(1, 4);
          // Its only answer without records is the one about this name.
          if (name === DENIED && header.readUInt16BE(6) === 0) header[3] = 0x83;
          const question = query.subarray(12, nameEnd + 4);
          socket.send(Buffer.concat([header, question, reply.subarray(12)]), port, address);
        },
      },
    });
    return { port: socket.port, anchors: world.anchors(), now: world.now };
  });
  console.log(JSON.stringify(await Promise.all(rows)));
}

/** The median CPU time of 100 runs in milliseconds, and the verdict. */
async function cpuOf(check: () => Promise<{ readonly verdict: string }>) {
  const { verdict } = await check();
  const tookMs: number[] = [];
  for (let round = 0; round < 100; round++) {
    const started = process.cpuUsage();
    await check();
    const { user, system } = process.cpuUsage(started);
    tookMs.push((user + system) / 1000);
  }
  return { ms: median(tookMs).toFixed(2), verdict };
}

/** The CPU time of a DNSSEC verdict on four zones: with replies at hand, and with its questions over UDP. */
async function measureVerdicts(): Promise<void> {
  console.log("\nDNSSEC: CPU of a verdict on four zones, median of 100");
  const server = Bun.spawn([process.execPath, import.meta.path, "serve-worlds"]);
  const { value: text } = await server.stdout
    .pipeThrough(new TextDecoderStream())
    .getReader()
    .read();
  const rows = JSON.parse(text ?? "[]") as { port: number; anchors: TrustAnchor[] }[];
  const { signal } = new AbortController();
  for (const [at, zone] of SIGNED.entries()) {
    const world = newWorld(zone);
    const reply = world.reply(DENIED, "AAAA");
    const replies = new Map<string, ReturnType<World["reply"]>>();
    const ask = async (name: string, type: string) =>
      replies.getOrInsertComputed(`${name} ${type}`, () => world.reply(name, type));
    const options = { name: DENIED, type: "AAAA", reply, ask, anchors: world.anchors() } as const;
    const atHand = await cpuOf(() => validate({ ...options, work: createWork() }));
    const { port = 0, anchors = [] } = rows[at] ?? {};
    const client = createDnsClient({
      servers: [tryParseSocketAddress("::1", port) as SocketAddress],
    });
    const asked = await cpuOf(async () => {
      const query = (flags: QueryOptions) => client.query(DENIED, "AAAA", flags);
      const check = { name: "resolver_a", dnsClient: client, signal, client: "", query } as const;
      const parsed = anchors.map((anchor) => ({
        ...{ ...anchor, digest: Buffer.from(anchor.digest) },
      }));
      const outcome = await query({ dnssec: true });
      return (await checkDnssec(outcome, { ...check, anchors: parsed })).dnssec;
    });
    console.log(
      `  algorithm ${zone.algorithm}, ${zone.denial} with ${zone.iterations} iterations: ${atHand.ms} ms, ${atHand.verdict}; with its questions ${asked.ms} ms, ${asked.verdict}`,
    );
  }
  server.kill();
}

if (process.argv.includes("serve-worlds")) {
  await serveWorlds();
  await new Promise(() => {});
}
if (process.argv.includes("dnssec")) {
  await measureVerdicts();
  process.exit(0);
}
const missing = labMissing ?? programMissing("knotd") ?? programMissing("dig");
if (missing !== null) {
  console.error(`no measurement: ${missing}`);
  process.exit(1);
}
const knot = await startKnot({ zones: { "bench.example": ZONE } });
try {
  await compareThroughput(knot.endpoint);
  measureDecoding(await tenRecords(knot.endpoint));
  await compareQueryTime(knot.endpoint);
  await measureFailOver(knot.endpoint);
  await measureVerdicts();
} finally {
  await knot.stop();
}
process.exit(0);
