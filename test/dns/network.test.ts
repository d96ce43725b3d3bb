import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import {
  formatSocketAddress,
  type SocketAddress,
  tryParseSocketAddress,
} from "../../src/addr/socket-address.ts";
import { createDnsClient } from "../../src/dns/client.ts";
import { type DnsServer, tryParseDnsServer } from "../../src/dns/server.ts";
import { frameMessage } from "../../src/dns/transport/stream.ts";
import { FIRST_PORT } from "../../src/dns/transport/udp.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { FakeClock } from "../util/fake-clock.ts";
import { CountedSockets } from "./fake-network.ts";
import {
  type Datagram,
  type HostileServer,
  type Manners,
  startHostileServer,
} from "./hostile-server.ts";
import { aaaa, askedName, hex, idOf, replyTo } from "./messages.ts";

/*
 * With a fake clock that does not move, an answer shows that the client waited only for the network: a
 * server that refuses costs no time.
 */

const missing = labMissing ?? programMissing("nft");
const testWithLab = testWith(missing);

/** Loopback addresses that reject packets to port 53, and the errors that result over UDP and TCP. */
const FATES = [
  ["fd53::1", "icmpv6 type port-unreachable", "ECONNREFUSED", "no-connection"],
  ["fd53::2", "icmpv6 type admin-prohibited", "EACCES", "EACCES"],
  ["fd53::3", "icmpv6 type addr-unreachable", "EHOSTUNREACH", "no-connection"],
  ["fd53::4", "icmpv6 type no-route", "ENETUNREACH", "no-connection"],
  ["198.51.100.1", "icmp type port-unreachable", "ECONNREFUSED", "no-connection"],
  ["198.51.100.2", "icmp type prot-unreachable", "ENOPROTOOPT", "no-connection"],
] as const;
/** No route leads to it. */
const NO_ROUTE = "2001:db8:ffff::53";
const DEAD_V6 = "fd53::d";
const DEAD_V4 = "198.51.100.13";
/** Accepts datagrams and drops TCP. */
const DEAD_TCP = "fd53::7c";
const ALIVE_V4 = "127.0.0.1";
/** Of the loopback interface. */
const LINK_LOCAL = "fe80::53";
const ADDRESSES = [...FATES.map(([address]) => address), DEAD_V6, DEAD_V4, DEAD_TCP, LINK_LOCAL];

function run(...command: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(command);
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
}

beforeAll(() => {
  if (missing !== null) return;
  const family = (address: string) => (address.includes(":") ? "ip6" : "ip");
  // Without `nodad`, an IPv6 address cannot be used at once.
  for (const address of ADDRESSES) run("ip", "addr", "add", address, "dev", "lo", "nodad");
  run("nft", "add table inet dns-test");
  run("nft", "add chain inet dns-test in { type filter hook input priority 0 ; }");
  for (const [address, reject] of FATES) {
    run(
      "nft",
      `add rule inet dns-test in ${family(address)} daddr ${address} th dport 53 reject with ${reject}`,
    );
  }
  for (const address of [DEAD_V6, DEAD_V4]) {
    run("nft", `add rule inet dns-test in ${family(address)} daddr ${address} drop`);
  }
  run("nft", `add rule inet dns-test in ip6 daddr ${DEAD_TCP} meta l4proto tcp drop`);
});

afterAll(() => {
  if (missing !== null) return;
  run("nft", "delete table inet dns-test");
  for (const address of ADDRESSES) run("ip", "addr", "del", address, "dev", "lo");
});

/** The sockets of every client. */
const sockets = new CountedSockets();

const running: HostileServer[] = [];
afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
});

async function serve(manners: Manners, address?: string): Promise<HostileServer> {
  const server = await startHostileServer(manners, address);
  running.push(server);
  return server;
}

const honest: Manners = {
  udp: ({ query, reply }) => {
    reply(replyTo(query, { answers: [aaaa(askedName(query), "2001:db8::1")] }));
  },
};

function at53(address: string): SocketAddress {
  return tryParseSocketAddress(address, 53) as SocketAddress;
}

/** All open sockets of this process. */
function socketsOfProcess(): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith("socket:");
    } catch {
      return false; // Closed in the meantime, like the descriptor of the folder.
    }
  }).length;
}

/** Waits until the condition is true. */
async function eventually(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(10);
}

describe("a server that refuses is skipped at once", () => {
  testWithLab.each([...FATES])("%s: %s", async (address, _, code) => {
    const alive = await serve(honest);
    const servers = [at53(address), alive.endpoint];
    const client = createDnsClient({ servers, sockets, clock: new FakeClock() });
    expect(await client.query("a", "AAAA")).toMatchObject({
      kind: "answer",
      server: formatSocketAddress(alive.endpoint),
    });
    const alone = createDnsClient({ servers: [at53(address)], sockets, clock: new FakeClock() });
    expect(await alone.query("a", "AAAA")).toMatchObject({ kind: "unreachable", reason: code });
    expect(sockets.openCount).toBe(0);
  });

  testWithLab("no route to it", async () => {
    const alive = await serve(honest);
    const servers = [at53(NO_ROUTE), alive.endpoint];
    const client = createDnsClient({ servers, sockets, clock: new FakeClock() });
    expect(await client.query("a", "AAAA")).toMatchObject({ kind: "answer" });
  });

  testWithLab.each<[string, string]>([
    ...FATES.map(([address, , , overTcp]) => [address, overTcp] as [string, string]),
    [NO_ROUTE, "no-connection"],
  ])("over TCP %s is %s: it is not told why, so not said", async (address, code) => {
    const client = createDnsClient({ servers: [at53(address)], sockets, clock: new FakeClock() });
    expect(await client.query("a", "AAAA", { overTcp: true })).toMatchObject({
      kind: "unreachable",
      reason: `${code} over TCP`,
    });
  });

  test("no server at its port", async () => {
    const gone = await startHostileServer(honest);
    await gone.stop();
    const alive = await serve(honest);
    const servers = [gone.endpoint, alive.endpoint];
    const client = createDnsClient({ servers, sockets, clock: new FakeClock() });
    expect(await client.query("a", "AAAA")).toMatchObject({ kind: "answer" });
  });
});

describe("a dead server", () => {
  testWithLab("over IPv6 does not prevent an answer over IPv4", async () => {
    const alive = await serve(honest, ALIVE_V4);
    const clock = new FakeClock();
    const servers = [at53(DEAD_V6), alive.endpoint, at53(DEAD_V6)];
    const client = createDnsClient({ servers, sockets, clock });
    const outcome = client.query("a", "AAAA");
    await clock.advance(1000);
    expect(await outcome).toMatchObject({
      kind: "answer",
      server: formatSocketAddress(alive.endpoint),
      queryTimeMs: 1000,
    });
    await clock.advance(5000);
    expect(sockets.openCount).toBe(0);
  });

  testWithLab.each([DEAD_V6, DEAD_V4])("alone ends at the deadline: %s", async (address) => {
    const clock = new FakeClock();
    const client = createDnsClient({ servers: [at53(address)], sockets, clock });
    const outcome = client.query("a", "AAAA");
    await clock.advance(5000);
    expect(await outcome).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
    await clock.advance(5000);
    expect(sockets.openCount).toBe(0);
  });

  testWithLab("over TCP ends at the deadline and leaves no open socket", async () => {
    const server = await startHostileServer(
      { udp: ({ query, reply }) => reply(replyTo(query, { flags: 0x8200 })) },
      DEAD_TCP,
    );
    const clock = new FakeClock();
    const client = createDnsClient({ servers: [server.endpoint], sockets, clock });
    const outcome = client.query("a", "AAAA");
    await eventually(() => server.arrivals.length === 1);
    await clock.advance(4999);
    expect(sockets.openCount).toBeGreaterThan(0);
    await clock.advance(1);
    expect(await outcome).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
    await clock.advance(5000);
    expect(sockets.openCount).toBe(0);
    await server.stop();
  });
});

test("a query over TCP is one piece with its length and message", async () => {
  const pieces: Uint8Array[] = [];
  const server = await serve({
    udp: ({ query, reply }) => reply(replyTo(query, { flags: 0x8200 })),
    tcp: (query, connection) => {
      connection.write(frameMessage(replyTo(query)));
    },
    tcpPiece: (piece) => pieces.push(piece),
  });
  const client = createDnsClient({ servers: [server.endpoint], sockets });
  expect(await client.query("a", "AAAA")).toMatchObject({ kind: "no-data", transport: "tcp" });
  expect(pieces.map(({ length }) => length)).toEqual([
    2 + (((pieces[0]?.[0] ?? 0) << 8) | (pieces[0]?.[1] ?? 0)),
  ]);
});

describe("the system clock", () => {
  test("ends a query at its own timeout, before one with the usual timeout", async () => {
    const server = await serve({ udp() {} });
    const client = createDnsClient({ servers: [server.endpoint], sockets });
    const ended: string[] = [];
    const controller = new AbortController();
    const usual = client.query("a", "AAAA", { signal: controller.signal }).then(({ kind }) => {
      ended.push(`usual: ${kind}`);
    });
    const { kind, queryTimeMs } = await client.query("a", "AAAA", { timeoutMs: 100 });
    ended.push(`short: ${kind}`);
    expect(queryTimeMs).toBeGreaterThanOrEqual(99);
    controller.abort();
    await usual;
    expect(ended).toEqual(["short: timeout", "usual: aborted"]);
  });
});

testWithLab.each([
  ["name", "lo"],
  ["number", "1"],
])(
  "a server with a link-local address is reached through its interface, by %s",
  async (_, zone) => {
    const truncated = 0x8200;
    const server = await startHostileServer(
      {
        udp: ({ query, reply }) => reply(replyTo(query, { flags: truncated })),
        tcp: (query, connection) => {
          connection.write(frameMessage(replyTo(query)));
        },
      },
      `${LINK_LOCAL}%lo`,
    );
    const text = `[${LINK_LOCAL}%${zone}]:${server.endpoint.port}`;
    const client = createDnsClient({ servers: [tryParseDnsServer(text) as DnsServer], sockets });
    expect(await client.query("a", "AAAA")).toMatchObject({
      kind: "no-data",
      server: text,
      transport: "tcp",
    });
    await server.stop();
  },
);

test("a flood of wrong datagrams does not keep 32 queries from their answers", async () => {
  const server = await serve({
    // The answer comes at the end of the flood, which fills the socket's buffer.
    udp: ({ query, reply }) => {
      for (let times = 0; times < 2000; times++) reply(new Uint8Array(60));
      honest.udp({ query, reply } as Datagram);
    },
    tcp: (query, connection) => {
      const answers = [aaaa(askedName(query), "2001:db8::1")];
      connection.write(frameMessage(replyTo(query, { answers })));
    },
  });
  const clock = new FakeClock();
  const client = createDnsClient({ servers: [server.endpoint], sockets, clock });
  const all = Array.from({ length: 32 }, (_, at) => client.query(`n${at}`, "AAAA"));
  expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual(Array(32).fill("answer"));
  expect(sockets.openCount).toBe(0);
});

describe("queries are hard to guess", () => {
  test("1,000 queries have more than 950 IDs", async () => {
    const server = await serve(honest);
    const client = createDnsClient({ servers: [server.endpoint], sockets });
    for (let at = 0; at < 1000; at++) await client.query(`n${at}`, "AAAA", { timeoutMs: 60_000 });
    expect(new Set(server.arrivals.map(({ query }) => idOf(query))).size).toBeGreaterThan(950);
  });

  test("each query has a port of its own", async () => {
    const server = await serve(honest);
    const client = createDnsClient({ servers: [server.endpoint], sockets });
    for (let at = 0; at < 1000; at++) await client.query(`n${at}`, "AAAA", { timeoutMs: 60_000 });
    const ports = new Set(server.arrivals.map(({ port }) => port));
    // Now and then, two of the random ports are the same.
    expect(ports.size).toBeGreaterThan(950);
    expect(Math.min(...ports)).toBeGreaterThanOrEqual(FIRST_PORT);
  });

  test("200 queries at once have 200 ports", async () => {
    const server = await serve({ udp() {} });
    // Its clock does not move, so no query is sent again.
    const client = createDnsClient({ servers: [server.endpoint], sockets, clock: new FakeClock() });
    const controller = new AbortController();
    const { signal } = controller;
    const all = Array.from({ length: 200 }, (_, at) =>
      client.query(`n${at}`, "AAAA", { signal, client: String(at % 4) }),
    );
    await eventually(() => server.arrivals.length >= 200);
    controller.abort();
    await Promise.all(all);
    expect(new Set(server.arrivals.map(({ port }) => port)).size).toBe(200);
  });

  test("the case of the name is different each time", async () => {
    const server = await serve(honest);
    const client = createDnsClient({ servers: [server.endpoint], sockets });
    // With 54 letters, the chance that two are alike is 1e-14.
    const name = Array(3).fill("a-name-of-many-letters").join(".");
    for (let at = 0; at < 20; at++) await client.query(name, "AAAA");
    const { size } = new Set(server.arrivals.map(({ query }) => askedName(query)));
    expect(size).toBe(server.arrivals.length);
  });
});

describe("no socket stays open", () => {
  const before = socketsOfProcess();

  test.each<[string, Manners, number]>([
    ["after answers", honest, 60_000],
    ["after timeouts", { udp() {} }, 50],
    ["after garbage", { udp: ({ reply }) => reply(hex("00")) }, 50],
    [
      "after TCP was refused",
      { udp: ({ query, reply }) => reply(replyTo(query, { flags: 0x8200 })) },
      60_000,
    ],
    [
      "after a TCP server stays silent",
      { udp: ({ query, reply }) => reply(replyTo(query, { flags: 0x8200 })), tcp() {} },
      200,
    ],
  ])("%s", async (_, manners, timeoutMs) => {
    const server = await startHostileServer(manners);
    const client = createDnsClient({ servers: [server.endpoint], sockets });
    await Promise.all(
      Array.from({ length: 100 }, (_, at) => client.query(`n${at}`, "AAAA", { timeoutMs })),
    );
    expect(sockets.openCount).toBe(0);
    await server.stop();
  });

  test("after the callers abort", async () => {
    const server = await startHostileServer({ udp() {} });
    const client = createDnsClient({ servers: [server.endpoint], sockets });
    const controller = new AbortController();
    const all = Array.from({ length: 100 }, (_, at) =>
      client.query(`n${at}`, "AAAA", { signal: controller.signal }),
    );
    await eventually(() => sockets.openCount >= 100);
    controller.abort();
    expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual(Array(100).fill("aborted"));
    await eventually(() => sockets.openCount === 0);
    await server.stop();
  });

  test("whatever came before", async () => {
    await eventually(() => sockets.openCount === 0 && socketsOfProcess() <= before);
  });
});

test("500 different questions at once over real sockets all get the right answer", async () => {
  const server = await serve({
    udp({ query, reply }) {
      const number = Number(/\d+/.exec(askedName(query))?.[0]);
      reply(
        replyTo(query, { answers: [aaaa(askedName(query), `2001:db8::${number.toString(16)}`)] }),
      );
    },
  });
  const client = createDnsClient({ servers: [server.endpoint], sockets });
  const outcomes = await Promise.all(
    Array.from({ length: 500 }, (_, at) =>
      client.query(`n${at + 1}`, "AAAA", { timeoutMs: 60_000 }),
    ),
  );
  const values = outcomes.map((outcome) => "records" in outcome && outcome.records[0]?.value);
  expect(values).toEqual(values.map((_, at) => `2001:db8::${(at + 1).toString(16)}`));
  expect(sockets.openCount).toBe(0);
});
