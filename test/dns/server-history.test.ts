import { describe, expect, test } from "bun:test";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { createDnsClient } from "../../src/dns/client.ts";
import { FakeClock } from "./fake-clock.ts";
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
  const checked = () => network.checks.map(({ server, atMs }) => `${server}@${atMs}`);
  return { behaviours, clock, network, ask, checked };
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

  test("is checked in the background at most once a second, and only while there are questions", async () => {
    const { ask, clock, checked } = start({ [A]: silent, [B]: answers });
    await ask();
    for (let times = 0; times < 30; times++) {
      await ask();
      await clock.advance(100);
    }
    expect(checked()).toEqual([`${A}@1001`, `${A}@2012`, `${A}@3022`]);
    await clock.advance(60_000);
    expect(checked()).toHaveLength(3);
    expect(clock.pending).toBe(0);
  });

  test("is the first again once it has answered a check", async () => {
    const { ask, behaviours, clock } = start({ [A]: silent, [B]: answers });
    await ask();
    behaviours[A] = answers;
    await clock.advance(1000);
    expect(await ask()).toMatchObject({ server: B });
    expect(await ask()).toMatchObject({ server: A, queryTimeMs: 0 });
  });

  test("is not taken for dead if it answers the check: it is only slow for this name", async () => {
    const slow: Behaviour = (query) => (askedName(query) === "." ? answers(query) : null);
    const { ask, behaviours } = start({ [A]: slow });
    expect(await ask()).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
    expect(await ask()).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
    behaviours[A] = answers;
    expect(await ask()).toMatchObject({ kind: "answer", queryTimeMs: 0 });
  });
});

describe("a server that", () => {
  test("answers every other question is asked first again after each check", async () => {
    let turn = 0;
    const alternates: Behaviour = (query) =>
      askedName(query) === "." || turn++ % 2 === 1 ? answers(query) : null;
    const { ask } = start({ [A]: alternates, [B]: answers });
    for (let times = 0; times < 4; times++) {
      expect(await ask()).toMatchObject({ kind: "answer", server: B, queryTimeMs: 1000 });
      expect(await ask()).toMatchObject({ kind: "answer", server: A, queryTimeMs: 0 });
    }
  });

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

describe("with all servers dead", () => {
  test("each is reached by the first question; the next ones ask all at once and end soon", async () => {
    const { ask, network } = start({ [A]: silent, [B]: silent, [C]: silent });
    expect(await ask()).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
    for (let times = 0; times < 3; times++) {
      expect(await ask()).toMatchObject({
        kind: "timeout",
        queryTimeMs: 250,
        attempts: [A, B, C].map((server) => ({ server, ms: 250, outcome: "timeout" })),
      });
    }
    expect(network.arrivals).toHaveLength(3 + 9);
  });

  test("the first that answers again is used at once", async () => {
    const { ask, behaviours } = start({ [A]: silent, [B]: silent, [C]: silent });
    await ask();
    behaviours[C] = answers;
    expect(await ask()).toMatchObject({ kind: "answer", server: C, queryTimeMs: 0 });
  });

  test("one that only needs long is waited for", async () => {
    const { ask, behaviours, network, clock } = start({ [A]: silent });
    await ask();
    behaviours[A] = (query) => {
      if (askedName(query) === ".") return answers(query);
      const at = network.arrivals.length;
      clock.after(1700, () => network.arrivals[at]?.answer(answers(query) as Uint8Array));
      return null;
    };
    expect(await ask()).toMatchObject({ kind: "answer", server: A, queryTimeMs: 1700 });
  });

  test("a longer usual response time gives them more time", async () => {
    const { ask, behaviours, network, clock } = start({ [A]: silent });
    behaviours[A] = (query) => {
      const at = network.arrivals.length;
      clock.after(150, () => network.arrivals[at]?.answer(answers(query) as Uint8Array));
      return null;
    };
    expect(await ask()).toMatchObject({ kind: "answer", queryTimeMs: 150 });
    behaviours[A] = silent;
    await ask();
    expect(await ask()).toMatchObject({ kind: "timeout", queryTimeMs: 600 });
  });
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

describe("a server that is silent, or answers when nobody waits any more", () => {
  /** Asks `perSecond` questions for some seconds; returns the most sockets and timers that were in use beyond those of questions. */
  async function flood(perSecond: number, seconds: number, lateMs: number | null) {
    const { behaviours, clock, network } = start({ [A]: silent });
    const client = createDnsClient({
      servers: [tryParseSocketAddress(A) as SocketAddress],
      sockets: network,
      clock,
    });
    behaviours[A] = silent;
    let waiting = 0;
    let most = 0;
    let answered = 0;
    for (let nth = 0; nth < perSecond * seconds; nth++) {
      waiting += 1;
      void client.query(`n${nth}`, "AAAA", { timeoutMs: 100 }).finally(() => {
        waiting -= 1;
      });
      await clock.advance(1000 / perSecond);
      for (const { query, answer, isOpen, atMs } of network.arrivals.slice(answered)) {
        if (lateMs === null || clock.nowMs() - atMs < lateMs) break;
        answered += 1;
        // A flood: the answer comes more than once, and with others.
        for (let times = 0; isOpen() && times < 20; times++) {
          answer(times % 2 === 0 ? query : (answers(query) as Uint8Array));
        }
      }
      const open = [...network.arrivals, ...network.checks].filter(({ isOpen }) => isOpen());
      // A question has one timer and, of one server, one socket.
      most = Math.max(most, open.length - waiting, clock.pending - waiting);
    }
    await clock.advance(5_000);
    const left = [...network.arrivals, ...network.checks].filter(({ isOpen }) => isOpen());
    return { most, left: left.length, timers: clock.pending };
  }

  test.each([
    ["silent", null],
    ["late by 0.2 s", 200],
    ["late by 2 s", 2_000],
    ["late by 4.9 s", 4_900],
  ])(
    "%s: at most 20 exchanges and 5 checks go on, and none for more than 5 s",
    async (_, lateMs) => {
      const { most, ...after } = await flood(50, 12, lateMs);
      expect(after).toEqual({ left: 0, timers: 0 });
      expect(most).toBeLessThanOrEqual(20 + 5 + 1);
      if (lateMs === null) expect(most).toBeGreaterThan(15);
    },
  );
});
