import { describe, expect, test } from "bun:test";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { createDnsClient } from "../../src/dns/client.ts";
import type { DnsOutcome } from "../../src/dns/outcome.ts";
import { FakeClock, settle } from "../util/fake-clock.ts";
import { FakeNetwork } from "./fake-network.ts";
import { aaaa, replyTo } from "./messages.ts";

const RCODES = { SERVFAIL: 2, NOTIMP: 4, REFUSED: 5 } as const;

/** Asks servers that answer only when the test says so. */
function start(addresses: readonly string[], timeoutMs = 5000) {
  const clock = new FakeClock();
  const network = new FakeNetwork({}, clock);
  const controller = new AbortController();
  const client = createDnsClient({
    servers: addresses.map((text) => tryParseSocketAddress(text, 53) as SocketAddress),
    sockets: network,
    clock,
  });
  let outcome: DnsOutcome | undefined;
  const ended = client
    .query("a", "AAAA", { timeoutMs, signal: controller.signal })
    .then((value) => {
      outcome = value;
    });
  return {
    clock,
    controller,
    ended,
    outcome: () => outcome,
    /** Server and time of each attempt so far. */
    attempts: () =>
      network.arrivals.map(({ server, atMs }) => `${server.replace(/:53$/, "")}@${atMs}`),
    /** For each attempt, true if it still waits for its response. */
    waiting: () => network.arrivals.map(({ isOpen }) => isOpen()),
    /** Responds to an attempt. */
    respond: async (index: number, what: "answer" | keyof typeof RCODES) => {
      await settle();
      const arrival = network.arrivals[index];
      if (arrival === undefined) throw new Error(`no attempt ${index}`);
      const reply = what === "answer" ? { answers: [aaaa("a.", "::1")] } : { rcode: RCODES[what] };
      arrival.answer(replyTo(arrival.query, reply));
      await settle();
    },
  };
}

const A = "192.0.2.1";
const B = "192.0.2.2";
const C = "192.0.2.3";
const D = "192.0.2.4";
const SIXTEEN = Array.from({ length: 16 }, (_, at) => `192.0.2.${101 + at}`);

describe("silent servers", () => {
  test.each([
    ["one", [A], [`${A}@0`, `${A}@1000`, `${A}@2500`]],
    ["two: other addresses before a repeat", [A, B], [`${A}@0`, `${B}@1000`, `${A}@2500`]],
    ["three", [A, B, C], [`${A}@0`, `${B}@1000`, `${C}@2500`]],
    ["four", [A, B, C, D], [`${A}@0`, `${B}@1000`, `${C}@2000`, `${D}@3000`]],
    ["16", SIXTEEN, SIXTEEN.map((server, at) => `${server}@${at * 250}`)],
  ])("%s", async (_, servers, attempts) => {
    const run = start(servers);
    await run.clock.advance(4999);
    expect(run.attempts()).toEqual(attempts);
    expect(run.waiting()).toEqual(attempts.map(() => true));
    expect(run.outcome()).toBeUndefined();
    await run.clock.advance(1);
    expect(run.outcome()).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
    await run.clock.advance(5000);
    expect(run.waiting()).toEqual(attempts.map(() => false));
    expect(run.clock.pending).toBe(0);
  });

  test("are all reached before a short deadline", async () => {
    const run = start([A, B, C, D], 2000);
    await run.clock.advance(2000);
    expect(run.attempts()).toEqual([`${A}@0`, `${B}@400`, `${C}@800`, `${D}@1200`]);
    expect(run.outcome()?.kind).toBe("timeout");
  });

  test("alone is asked again until the deadline", async () => {
    const run = start([A], 2000);
    await run.clock.advance(2000);
    expect(run.attempts()).toEqual([`${A}@0`, `${A}@1000`]);
    expect(run.outcome()?.kind).toBe("timeout");
  });
});

describe("servers that fail", () => {
  test("are followed by the next at once, and are not asked again", async () => {
    const run = start([A, B]);
    await run.clock.advance(10);
    await run.respond(0, "REFUSED");
    expect(run.attempts()).toEqual([`${A}@0`, `${B}@10`]);
    await run.clock.advance(4000);
    expect(run.attempts()).toEqual([`${A}@0`, `${B}@10`, `${B}@1000`, `${B}@2500`]);
  });

  test("all: the outcome is what the first said, at once", async () => {
    const run = start([A, B, C]);
    await run.respond(0, "SERVFAIL");
    await run.respond(1, "REFUSED");
    expect(run.outcome()).toBeUndefined();
    await run.respond(2, "NOTIMP");
    expect(run.attempts()).toEqual([`${A}@0`, `${B}@0`, `${C}@0`]);
    expect(run.outcome()).toMatchObject({
      kind: "failure",
      rcode: "SERVFAIL",
      server: `${A}:53`,
      queryTimeMs: 0,
    });
    expect(run.clock.pending).toBe(0);
  });

  test("one of two, while the other is silent: the silent one has until the deadline", async () => {
    const run = start([A, B]);
    await run.clock.advance(1000);
    await run.respond(1, "SERVFAIL");
    expect(run.outcome()).toBeUndefined();
    await run.clock.advance(4000);
    expect(run.attempts()).toEqual([`${A}@0`, `${B}@1000`, `${A}@2500`]);
    expect(run.outcome()).toMatchObject({ kind: "failure", rcode: "SERVFAIL", queryTimeMs: 5000 });
  });

  test("one after a silent one: the next server that was not asked yet comes at once", async () => {
    const run = start([A, B, C]);
    await run.clock.advance(1100);
    await run.respond(1, "SERVFAIL");
    expect(run.attempts()).toEqual([`${A}@0`, `${B}@1000`, `${C}@1100`]);
  });

  test("more servers than start times: all are asked", async () => {
    const run = start([A, B, C, D]);
    for (let index = 0; index < 4; index++) await run.respond(index, "REFUSED");
    expect(run.attempts()).toEqual([`${A}@0`, `${B}@0`, `${C}@0`, `${D}@0`]);
    expect(run.outcome()?.kind).toBe("failure");
  });
});

describe("an answer", () => {
  test("ends the other attempts", async () => {
    const run = start([A, B]);
    await run.clock.advance(1000);
    await run.respond(1, "answer");
    expect(run.outcome()).toMatchObject({ kind: "answer", server: `${B}:53` });
    expect(run.waiting()).toEqual([false, false]);
    await run.clock.advance(5000);
    expect(run.clock.pending).toBe(0);
  });

  test("to an earlier attempt is not lost", async () => {
    const run = start([A, B]);
    await run.clock.advance(4900);
    await run.respond(0, "answer");
    expect(run.outcome()).toMatchObject({ kind: "answer", server: `${A}:53`, queryTimeMs: 4900 });
  });

  test("after a failure wins", async () => {
    const run = start([A, B]);
    await run.respond(0, "SERVFAIL");
    await run.respond(1, "answer");
    expect(run.outcome()).toMatchObject({ kind: "answer", server: `${B}:53` });
  });
});

test("the signal ends the question", async () => {
  const run = start([A, B]);
  await run.clock.advance(1000);
  run.controller.abort();
  await run.ended;
  expect(run.outcome()).toMatchObject({ kind: "aborted", queryTimeMs: 1000 });
  await run.clock.advance(5000);
  expect(run.waiting()).toEqual([false, false]);
  expect(run.clock.pending).toBe(0);
});
