/** The slots of `/dns`: a flood waits behind itself, and nobody else does. */
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { parseConfig } from "../../../src/config/settings.ts";
import type { DnsClient } from "../../../src/dns/client.ts";
import { FairSlots, MAX_WAIT_MS } from "../../../src/gate/fair-slots.ts";
import { dns } from "../../../src/tools/dns/endpoint.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const settle = async () => {
  for (let turn = 0; turn < 30; turn++) await null;
};

/** A resolver that answers when the test says so, and the questions of each client that have reached it. */
function start(limit: number) {
  const querySlots = new FairSlots(limit);
  const open: (() => void)[] = [];
  const query: DnsClient["query"] = () =>
    new Promise((_, fail) => open.push(() => fail(new Error("answered"))));
  const resolvers = { resolver_a: { query }, resolver_b: { query }, resolver_c: { query } };
  const services = { resolvers, querySlots, config: parseConfig({}) };
  const codes: string[] = [];
  const messages: string[] = [];
  const allowed: number[] = [];
  const ask = (client: string, signal = new AbortController().signal, resolver = "resolver_a") => {
    const call = {
      signal,
      client,
      address: null,
      allowSeconds: (s: number) => void allowed.push(s),
    };
    const values = { hostname: "a.test", type: "A", resolver, dnssec: "no" };
    const result = dns.handle(values, call, services as never) as Promise<object>;
    void result.catch(({ code, name, message }) => {
      codes.push(typeof code === "string" ? code : name === "Error" ? message : name);
      messages.push(message);
    });
  };
  return { querySlots, open, codes, messages, allowed, ask };
}

describe("256 slots", () => {
  test("1,000 questions of each of eight networks: the next one is asked at once", async () => {
    const { ask, open, codes } = start(256);
    for (let count = 0; count < 1_000; count++) {
      for (let network = 0; network < 8; network++) ask(`flood ${network}`);
    }
    await settle();
    const flooding = open.length;
    expect(flooding).toBeWithin(8 * 28, 8 * 29 + 1);
    for (let honest = 0; honest < 20; honest++) ask(`honest ${honest}`);
    await settle();
    expect(open.length).toBe(flooding + 20);
    expect(new Set(codes)).toEqual(new Set(["TOO_MANY_PROBES"]));
    expect(codes.length).toBeGreaterThan(8_000 - 300);
  });

  test("one client's own answers let its next questions out, in number and in order", async () => {
    const { ask, open, codes, allowed, querySlots } = start(256);
    for (let count = 0; count < 200; count++) ask("a");
    await settle();
    expect([open.length, codes.length]).toEqual([128, 0]);
    // Those that wait may take longer.
    expect(allowed).toEqual(Array(72).fill(15));
    for (let nth = 0; nth < 72; nth++) {
      open[nth]?.();
      await settle();
      expect(open.length).toBe(129 + nth);
    }
    for (const answer of open) answer();
    await settle();
    expect([codes.length, querySlots.running]).toEqual([200, 0]);
  });
});

test("three resolvers take one slot, until the first fails or all have answered", async () => {
  const { ask, open, querySlots } = start(4);
  ask("a", undefined, "all");
  await settle();
  expect([open.length, querySlots.running]).toEqual([3, 1]);
  for (const answer of open) answer();
  await settle();
  expect(querySlots.running).toBe(0);
});

test("a question that gets no slot in five seconds, or whose client leaves, is not asked", async () => {
  const { ask, open, codes, messages, querySlots } = start(4);
  const client = new AbortController();
  for (const signal of [undefined, undefined, undefined, client.signal]) ask("a", signal);
  await settle();
  expect(open.length).toBe(2);
  client.abort();
  await settle();
  expect(codes).toEqual(["AbortError"]);
  jest.advanceTimersByTime(MAX_WAIT_MS);
  await settle();
  expect(codes).toEqual(["AbortError", "TOO_MANY_PROBES"]);
  expect(messages[1]).toBe(
    "The server is busy: 2 of 4 DNS queries are running, and the others are kept for other clients; try again in 2 seconds.",
  );
  expect([open.length, querySlots.running]).toEqual([2, 2]);
});
