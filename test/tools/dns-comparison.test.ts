import { describe, expect, test } from "bun:test";
import { RESOLVER_NAMES } from "../../src/config/settings.ts";
import type { DnsOutcome, Resolution } from "../../src/dns/outcome.ts";
import { ProbeSlots } from "../../src/limits/probe-slots.ts";
import { dns } from "../../src/tools/dns/endpoint.ts";
import { STAMP } from "./stamp.ts";

const FROM = {
  server: "[2001:db8::53]:53",
  transport: "udp",
  rcode: "NOERROR",
  authenticated: false,
  extendedErrors: [],
  records: [],
  soa: null,
  incomplete: false,
} as const;

const one = { type: "AAAA", value: "2001:db8::1", ttl: 300 } as const;
const two = { type: "AAAA", value: "2001:db8::2", ttl: 300 } as const;

const answer = (...records: (typeof one | typeof two)[]): Resolution => ({
  ...FROM,
  kind: "answer",
  records,
});
const secure = (resolution: Resolution) => ({ ...resolution, authenticated: true }) as Resolution;
const nameError: Resolution = { ...FROM, kind: "name-error", rcode: "NXDOMAIN" };
const refused: Resolution = { ...FROM, kind: "failure", rcode: "REFUSED" };
const timeout: Resolution = { kind: "timeout" };

/** The endpoint's answer with `resolver=all` for these resolutions, and how often each resolver was asked. */
async function ask(resolutions: readonly Resolution[]) {
  const asked: string[] = [];
  const { promise: allAsked, resolve } = Promise.withResolvers<void>();
  const clients = RESOLVER_NAMES.map((name, at) => ({
    async query(): Promise<DnsOutcome> {
      // No resolver answers before all of them are asked.
      if (asked.push(name) === RESOLVER_NAMES.length) resolve();
      await allAsked;
      const question = { name: "www.example.", type: "AAAA" } as const;
      return { ...(resolutions[at] as Resolution), question, queryTimeMs: at, attempts: [] };
    },
  }));
  const resolvers = Object.fromEntries(RESOLVER_NAMES.map((name, at) => [name, clients[at]]));
  const parameters = { hostname: "www.example", type: "AAAA", resolver: "all", dnssec: "no" };
  const call = { signal: new AbortController().signal };
  try {
    const services = { resolvers, querySlots: new ProbeSlots(1) };
    return (await dns.handle(parameters, call as never, services as never)) as object;
  } catch (error) {
    return (error as { body: { error: object } }).body.error;
  }
}

describe("resolver=all", () => {
  test.each<[string, Resolution[], boolean, string[]]>([
    ["the same answers", [answer(one), answer(one), answer(one)], true, []],
    ["another order", [answer(one, two), answer(two, one), answer(one, two)], true, []],
    ["other TTLs", [answer(one), answer({ ...one, ttl: 7 } as never), answer(one)], true, ["ttl"]],
    ["other records", [answer(one), answer(one), answer(two)], false, ["records"]],
    ["a record more", [answer(one), answer(one, two), answer(one)], false, ["records"]],
    ["another response code", [answer(one), nameError, answer(one)], false, ["records", "rcode"]],
    ["a timeout", [nameError, nameError, timeout], false, ["rcode"]],
    ["DNSSEC", [secure(answer(one)), answer(one), answer(one)], false, ["dnssec"]],
  ])("%s", async (_, resolutions, agree, differences) => {
    expect(await ask(resolutions)).toMatchObject({ details: { agree, differences } });
  });

  test("shows the three side by side; the rest is the answer of resolver_a", async () => {
    const said = { question: { name: "www.example.", type: "AAAA" }, attempts: [] };
    const { kind, records, soa, incomplete, ...details } = {
      ...(answer(one) as object),
    } as typeof FROM & { kind: string };
    expect(await ask([answer(one), nameError, timeout])).toEqual({
      hostname: "www.example",
      records: [one],
      resolver: "resolver_a",
      queryTime: 0,
      details: {
        ...STAMP,
        verdict: {
          code: "answer",
          text: "resolver_a has 1 AAAA record for www.example. The three resolvers differ in their records and response codes.",
        },
        ...said,
        ...details,
        agree: false,
        differences: ["records", "rcode"],
        resolvers: [
          { resolver: "resolver_a", outcome: kind, records, queryTime: 0, ...said, ...details },
          {
            ...{ resolver: "resolver_b", outcome: "name-error", records: [], queryTime: 1 },
            ...{ ...said, ...details, rcode: "NXDOMAIN" },
          },
          { resolver: "resolver_c", outcome: "timeout", records: [], queryTime: 2, ...said },
        ],
      },
    });
    expect([soa, incomplete]).toEqual([null, false]);
  });

  test("an error of resolver_a is the error, and its details compare all three", async () => {
    expect(await ask([refused, answer(one), answer(one)])).toMatchObject({
      code: "RESOLVER_FAILURE",
      details: {
        resolver: "resolver_a",
        rcode: "REFUSED",
        agree: false,
        resolvers: [{ outcome: "failure" }, { outcome: "answer" }, { outcome: "answer" }],
      },
    });
  });
});
