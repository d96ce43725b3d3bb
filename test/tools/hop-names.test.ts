import { expect, test } from "bun:test";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import type { DnsClient, QueryOptions } from "../../src/dns/client.ts";
import { hopNames, LATE } from "../../src/tools/hop-names.ts";

import { FakeClock } from "../util/fake-clock.ts";

const GLOBAL = "[2606:4700:4700::1111]:53";
const LOCAL = "127.0.0.1:53";

/**
 * A resolver that answers each question after `answerMs` milliseconds, or never if it is null.
 *
 * @param host the first label of all names
 */
function start(
  servers: readonly string[],
  answerMs: number | null,
  onName = () => {},
  host = "host",
) {
  const clock = new FakeClock();
  const asked: string[] = [];
  const aborted: string[] = [];
  const client = {
    query: (name: string, type: string, { signal }: QueryOptions) => {
      asked.push(name);
      return new Promise((resolve) => {
        const value = `${host}-${asked.length}.example.`;
        if (answerMs !== null) {
          clock.after(answerMs, () => resolve({ kind: "answer", records: [{ type, value }] }));
        }
        const abort = () => {
          aborted.push(name);
          resolve({ kind: "aborted" });
        };
        if (signal?.aborted) abort();
        else signal?.addEventListener("abort", abort);
      });
    },
  } as unknown as DnsClient;
  const parsed = servers.map((text) => tryParseSocketAddress(text) as SocketAddress);
  const caller = new AbortController();
  const names = hopNames(client, parsed, { signal: caller.signal, client: "" }, onName, clock);
  return { clock, asked, aborted, names, caller, startMs: clock.nowMs() };
}

const [FIRST, SECOND] = ["2a00:1450::1", "2a00:1450::2"];

test("each hop is asked for once, and its name is there", async () => {
  const { clock, asked, names } = start([GLOBAL], 5);
  for (const address of [FIRST, SECOND, FIRST]) names.ask(address);
  expect([...(await clock.run(names.known()))]).toEqual([
    [FIRST, "host-1.example"],
    [SECOND, "host-2.example"],
  ]);
  expect(asked).toHaveLength(2);
});

test("names are waited for until so long after the last answer, and then given up", async () => {
  const { clock, aborted, names, startMs } = start([GLOBAL], null);
  names.ask(FIRST);
  await clock.advance(100);
  names.ask(SECOND);
  const known = await clock.run(names.known());
  expect(clock.nowMs() - startMs).toBeCloseTo(1600, 3);
  expect([...known.values()]).toEqual([LATE, LATE]);
  expect(aborted).toHaveLength(2);
});

/** A slow resolver has until 1.5 s after the last answer. */
test.each([
  ["recursion of 1.2 s", 1200, 1200, true],
  ["recursion of nearly 1.5 s", 1490, 1490, true],
  ["names that come too late", 1600, 1500, false],
  ["a dead resolver", null, 1500, false],
] as const)("%s", async (_name, answerMs, tookMs, isNamed) => {
  const { clock, names, startMs } = start([GLOBAL], answerMs);
  names.ask(FIRST);
  const known = await clock.run(names.known());
  expect(clock.nowMs() - startMs).toBeCloseTo(tookMs, 3);
  expect([...known.values()].map((name) => name !== LATE)).toEqual([isNamed]);
});

test("a name that comes after all were given up changes nothing", async () => {
  const { promise: late, resolve } = Promise.withResolvers<unknown>();
  const client = { query: async () => late } as unknown as DnsClient;
  const clock = new FakeClock();
  let told = 0;
  const onName = () => void told++;
  const names = hopNames(
    client,
    [],
    { signal: new AbortController().signal, client: "" },
    onName,
    clock,
  );
  names.ask(FIRST);
  const known = await clock.run(names.known());
  resolve({ kind: "answer", records: [{ type: "PTR", value: "late.example." }] });
  await clock.advance(1);
  expect([told, ...known.values()]).toEqual([0, LATE]);
});

test("a trace that goes on for longer does not wait for names", async () => {
  const { clock, names, startMs } = start([GLOBAL], null);
  names.ask(FIRST);
  await clock.advance(2000);
  await clock.run(names.known());
  expect(clock.nowMs() - startMs).toBeCloseTo(2000, 3);
});

test("a caller that goes away ends the wait", async () => {
  const { names, caller } = start([GLOBAL], null);
  names.ask(FIRST);
  const known = names.known();
  caller.abort();
  expect([...(await known).values()]).toEqual([LATE]);
});

test("hops without a name wait for their turn in a share of the resolver's questions", async () => {
  const { clock, asked, names } = start([GLOBAL], 5);
  for (let index = 0; index < 100; index++) names.ask(`2a00:1450::${index.toString(16)}`);
  await clock.advance(1);
  expect(asked).toHaveLength(64);
  const known = await clock.run(names.known());
  expect([...known.values()].filter((name) => name !== null)).toHaveLength(100);
});

test.each([
  ["a global resolver", [GLOBAL], false],
  ["a local resolver", [LOCAL], true],
  ["a resolver with a local and a global server", [LOCAL, GLOBAL], false],
])("%s is asked for private hops: %p", async (_name, servers, isAsked) => {
  const addresses = ["::1", "fe80::1", "fd00::1", "2001:db8::1", "fec0::1"];
  const { clock, asked, names } = start(servers, 5);
  for (const address of addresses) names.ask(address);
  await clock.run(names.known());
  expect(asked).toHaveLength(isAsked ? addresses.length : 0);
});

test("as many names as a run may ask for are asked for, whatever answers", async () => {
  const { clock, asked, names } = start([GLOBAL], 5);
  for (let number = 1; number <= 2000; number++) {
    names.ask(`2a00:1450::${(number % 1500).toString(16)}`);
    if (number % 50 === 0) await clock.advance(10);
  }
  expect((await clock.run(names.known())).size).toBe(256);
  expect(asked).toHaveLength(256);
});

test("a name is kept up to its 253rd character", async () => {
  const { clock, names } = start([GLOBAL], 5, () => {}, "\\007".repeat(63));
  names.ask(FIRST);
  const [name = ""] = [...(await clock.run(names.known())).values()];
  expect(name).toBe(`${"\\007".repeat(63)}-1.example`.slice(0, 253));
});
