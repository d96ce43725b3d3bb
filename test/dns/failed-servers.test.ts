import { describe, expect, test } from "bun:test";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { createDnsClient } from "../../src/dns/client.ts";
import { FakeClock } from "../util/fake-clock.ts";
import { type Behaviour, FakeNetwork } from "./fake-network.ts";
import { aaaa, askedName, replyTo } from "./messages.ts";

const A = "192.0.2.1:53";
const B = "192.0.2.2:53";
const C = "192.0.2.3:53";

const answers: Behaviour = (query) =>
  replyTo(query, { answers: [aaaa(askedName(query), "2001:db8::1")] });
const fails: Behaviour = (query) => replyTo(query, { rcode: 2 });
const refuses: Behaviour = () => "ECONNREFUSED";
const silent: Behaviour = () => null;

/** Asks servers whose behaviour the test can change. */
function start(behaviours: Record<string, Behaviour>) {
  const clock = new FakeClock();
  const servers = Object.fromEntries(
    Object.keys(behaviours).map((server) => [
      server,
      { udp: (query: Uint8Array) => (behaviours[server] ?? silent)(query) },
    ]),
  );
  const network = new FakeNetwork(servers, clock);
  const client = createDnsClient({
    servers: Object.keys(servers).map((text) => tryParseSocketAddress(text) as SocketAddress),
    sockets: network,
    clock,
  });
  /** Asks and advances the clock until the outcome is known. */
  const ask = async (name = "a") => {
    await clock.advance(1);
    let isOver = false;
    const outcome = client.query(name, "AAAA").finally(() => {
      isOver = true;
    });
    for (await clock.advance(0); !isOver; await clock.advance(10));
    return outcome;
  };
  return { behaviours, clock, network, ask };
}

describe("a server that was silent", () => {
  test("is asked behind the others, so that only the first question waits", async () => {
    const { ask, network } = start({ [A]: silent, [B]: answers });
    expect(await ask()).toMatchObject({
      kind: "answer",
      server: B,
      queryTimeMs: 1000,
      attempts: [
        { server: A, transport: "udp", ms: 1000, outcome: "timeout" },
        { server: B, transport: "udp", ms: 0, outcome: "NOERROR" },
      ],
    });
    for (let times = 0; times < 100; times++) {
      expect(await ask()).toMatchObject({ server: B, queryTimeMs: 0 });
    }
    expect(network.asked().slice(1)).toEqual(Array(101).fill(`${B} udp`));
  });

  test("is asked first again after half a minute", async () => {
    const { ask, behaviours, clock } = start({ [A]: silent, [B]: answers });
    await ask();
    behaviours[A] = answers;
    await clock.advance(29_000);
    expect(await ask()).toMatchObject({ server: B });
    await clock.advance(1000);
    expect(await ask()).toMatchObject({ server: A, queryTimeMs: 0 });
    expect(clock.pending).toBe(0);
  });

  test("is asked first again once it has answered behind another", async () => {
    const { ask, behaviours } = start({ [A]: silent, [B]: answers });
    await ask();
    behaviours[A] = answers;
    behaviours[B] = silent;
    expect(await ask()).toMatchObject({ server: A, queryTimeMs: 1000 });
    expect(await ask()).toMatchObject({ server: A, queryTimeMs: 0 });
  });
});

describe("a server that", () => {
  test("refuses is asked behind the others too", async () => {
    const { ask, network } = start({ [A]: refuses, [B]: answers });
    await ask();
    await ask();
    expect(network.asked()).toEqual([`${A} udp`, `${B} udp`, `${B} udp`]);
  });

  test("fails is alive, and is asked first again", async () => {
    const { ask, network } = start({ [A]: fails, [B]: answers });
    await ask();
    await ask();
    expect(network.asked()).toEqual([`${A} udp`, `${B} udp`, `${A} udp`, `${B} udp`]);
  });
});

test("with all servers dead, each is reached by every question", async () => {
  const { ask, behaviours, network } = start({ [A]: silent, [B]: silent, [C]: silent });
  for (let times = 0; times < 2; times++) {
    expect(await ask()).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
  }
  expect(network.arrivals).toHaveLength(2 * 3);
  behaviours[C] = answers;
  expect(await ask()).toMatchObject({ kind: "answer", server: C, queryTimeMs: 2500 });
});

test("a shortage of this machine is not held against a server", async () => {
  const clock = new FakeClock();
  const network = new FakeNetwork({ [A]: { udp: answers }, [B]: { udp: answers } }, clock);
  let isShort = true;
  const client = createDnsClient({
    servers: [A, B].map((text) => tryParseSocketAddress(text) as SocketAddress),
    sockets: {
      async open(...how) {
        if (isShort) throw Object.assign(new Error("too many"), { code: "EMFILE" });
        return network.open(...how);
      },
    },
    clock,
  });
  expect(await client.query("a", "AAAA")).toMatchObject({
    kind: "unreachable",
    rcode: "SHORTAGE",
    reason: "EMFILE",
    attempts: [{ server: A, outcome: "EMFILE" }, { server: B }],
  });
  isShort = false;
  await client.query("a", "AAAA");
  expect(network.asked()).toEqual([`${A} udp`]);
});
