import { describe, expect, test } from "bun:test";
import { parseConfig, RESOLVER_NAMES } from "../../../src/config/settings.ts";
import type { RecordType } from "../../../src/dns/message/record.ts";
import { type DnsOutcome, NO_SERVER, type Resolution } from "../../../src/dns/outcome.ts";
import { FairSlots } from "../../../src/gate/fair-slots.ts";
import { dns } from "../../../src/tools/dns/endpoint.ts";
import { STAMP } from "../stamp.ts";

const FROM = {
  server: "[2001:db8::53]:53",
  transport: "udp",
  rcode: "NOERROR",
  authenticated: false,
  extendedErrors: [],
  records: [],
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
const closed = {
  ...FROM,
  kind: "unreachable",
  rcode: "UNREACHABLE",
  reason: "ECONNREFUSED",
} as const;
const said = (resolution: Resolution, code: number) =>
  ({ ...resolution, extendedErrors: [{ code, name: "Said" }] }) as Resolution;
const records = (type: string, ...values: string[]) =>
  answer(...values.map((value) => ({ type, value, ttl: 300 }) as never));
const link = (value: string) => ({ type: "CNAME", value, ttl: 300 }) as never;

/** The endpoint's answer with `resolver=all` for these resolutions; a resolver without one has no server, as at the command line. */
async function ask(
  resolutions: readonly Resolution[],
  type: RecordType = "AAAA",
  onEvent = (..._: unknown[]) => {},
) {
  const asked: string[] = [];
  const there = RESOLVER_NAMES.slice(0, resolutions.length);
  const { promise: allAsked, resolve } = Promise.withResolvers<void>();
  const clients = there.map((name, at) => ({
    async query(): Promise<DnsOutcome> {
      // No resolver answers before all of them are asked.
      if (asked.push(name) === there.length) resolve();
      await allAsked;
      const question = { name: "www.example.", type };
      const resolution = resolutions[at] as Resolution;
      const [server, transport] = [FROM.server, FROM.transport];
      const attempts =
        resolution === closed ? [{ server, transport, ms: 1, outcome: closed.reason }] : [];
      return { ...resolution, question, queryTimeMs: at, attempts };
    },
  }));
  const resolvers = Object.fromEntries(there.map((name, at) => [name, clients[at]]));
  const parameters = { hostname: "www.example", type, resolver: "all", dnssec: "no" };
  const call = { signal: new AbortController().signal, client: "", onEvent };
  try {
    const config = parseConfig({});
    const missing = RESOLVER_NAMES.slice(there.length).map((name) => [name, []]);
    const servers = { ...config.resolvers, ...Object.fromEntries(missing) };
    const services = { resolvers, querySlots: new FairSlots(1), config: { resolvers: servers } };
    return (await dns.handle(parameters, call as never, services as never)) as object;
  } catch (error) {
    return (error as { body: { error: object } }).body.error;
  }
}

describe("resolver=all", () => {
  test("tells of each resolver that it has not answered, if none has", async () => {
    expect(await ask([closed, refused, closed])).toMatchObject({
      code: "RESOLVER_FAILURE",
      message:
        'resolver_a could not be reached for "www.example" ([2001:db8::53]:53: ECONNREFUSED); try another resolver. resolver_b refused to answer. resolver_c has not answered (ECONNREFUSED).',
    });
    expect(await ask([closed, nameError, closed])).toMatchObject({
      message: '"www.example" does not exist (NXDOMAIN from resolver_b); check the spelling.',
    });
  });

  test.each<[string, Resolution[], boolean, string[]]>([
    ["the same answers", [answer(one), answer(one), answer(one)], true, []],
    ["another order", [answer(one, two), answer(two, one), answer(one, two)], true, []],
    ["other TTLs", [answer(one), answer({ ...one, ttl: 7 } as never), answer(one)], true, ["ttl"]],
    ["other records", [answer(one), answer(one), answer(two)], false, ["records"]],
    ["a record more", [answer(one), answer(one, two), answer(one)], false, ["records"]],
    ["another response code", [answer(one), nameError, answer(one)], false, ["records", "rcode"]],
    ["a timeout", [answer(one), answer(one), timeout], true, []],
    ["a refusal", [refused, answer(one), answer(two)], false, ["records"]],
    ["a record twice", [answer(one, one), answer(one), answer(one)], true, []],
    [
      "another chain",
      [answer(link("a."), one), answer(link("b."), one), answer(one)],
      false,
      ["chain"],
    ],
    [
      "a chain in another case",
      [answer(link("A."), one), answer(link("a."), one), timeout],
      true,
      [],
    ],
    ["stale", [said(answer(one), 3), answer(one), answer(one)], true, []],
    ["the AD bit alone", [secure(answer(one)), answer(one), answer(one)], true, []],
  ])("%s", async (_, resolutions, agree, differences) => {
    expect(await ask(resolutions)).toMatchObject({ details: { agree, differences } });
  });

  test.each<[string, RecordType, string[], boolean]>([
    ["names", "MX", ["10 Mail.Example.", "10 mail.example."], true],
    ["texts", "TXT", ['"A"', '"a"'], false],
    ["keys", "DNSKEY", ["257 3 13 AAEC", "257 3 13 aaec"], false],
    ["the last word", "NAPTR", ['1 1 "S" "a" "" A.', '1 1 "S" "a" "" a.'], true],
    ["a text before it", "NAPTR", ['1 1 "S" "a" "" a.', '1 1 "S" "A" "" a.'], false],
    ["texts alone", "HINFO", ['"a" "B"', '"a" "b"'], false],
    ["the target of a service", "HTTPS", ["1 A. alpn=h2", "1 a. alpn=h2"], true],
    ["its parameters", "HTTPS", ['1 a. key7="A"', '1 a. key7="a"'], false],
  ])("regards case in %s of %s", async (_, type, [first = "", other = ""], agree) => {
    const replies = [records(type, first), records(type, other), timeout];
    expect(await ask(replies, type)).toMatchObject({ details: { agree } });
  });

  test.each<[string, Resolution[], string[], string[]]>([
    ["a block", [said(nameError, 15), answer(one), answer(one)], [], ["resolver_a filtered"]],
    [
      "a refusal that is one",
      [said(refused, 17), answer(one), answer(one)],
      ["resolver_a"],
      ["resolver_a filtered"],
    ],
    ["a lone denial", [answer(one), nameError, answer(one)], [], ["resolver_b perhaps-filtered"]],
    [
      "no host",
      [answer(one), records("AAAA", "::"), answer(one)],
      [],
      ["resolver_b perhaps-filtered"],
    ],
    ["a denial by all that answer", [nameError, nameError, timeout], ["resolver_c"], []],
    [
      "an old answer",
      [answer(one), said(answer(one), 3), timeout],
      ["resolver_c"],
      ["resolver_b stale"],
    ],
    [
      "another place",
      [{ ...answer(one), nsid: "fra1" } as never, answer(two), answer(two)],
      [],
      ["resolver_a place"],
    ],
    [
      "a place without a difference",
      [{ ...answer(one), nsid: "fra1" } as never, answer(one), answer(one)],
      [],
      [],
    ],
  ])("names %s", async (_, resolutions, unanswered, findings) => {
    const { details } = (await ask(resolutions)) as { details: Record<string, unknown> };
    expect(details["unanswered"]).toEqual(unanswered);
    const found = details["findings"] as { resolver: string; code: string; text: string }[];
    expect(found.map(({ resolver, code }) => `${resolver} ${code}`)).toEqual(findings);
    for (const { text, resolver } of found) expect(text).toStartWith(`${resolver} `);
  });

  test("passes on each reply as it comes, and shows the three side by side; the rest is the first answer", async () => {
    const events: unknown[] = [];
    const document = (await ask([timeout, nameError, answer(one)], "AAAA", (name, data) => {
      events.push([name, data]);
    })) as { details: { resolvers: object[] } };
    expect(document).toMatchObject({
      records: [one],
      resolver: "resolver_c",
      queryTime: 2,
      details: {
        ...STAMP,
        verdict: {
          code: "answer",
          text: "resolver_c has 1 AAAA record for www.example. The two that answered differ in their records and response codes. resolver_a has not answered (timeout).",
        },
        agree: false,
        differences: ["records", "rcode"],
        unanswered: ["resolver_a"],
        resolvers: [
          { resolver: "resolver_a", outcome: "timeout", records: [], queryTime: 0 },
          { resolver: "resolver_b", outcome: "name-error", records: [], rcode: "NXDOMAIN" },
          { resolver: "resolver_c", outcome: "answer", records: [one], rcode: "NOERROR" },
        ],
      },
    });
    expect(events).toEqual(document.details.resolvers.map((reply) => ["reply", reply]));
  });

  test("nothing is compared where one alone has answered", async () => {
    const { details } = (await ask([refused, answer(one), timeout])) as { details: object };
    expect(details).not.toHaveProperty("agree");
    expect(details).toMatchObject({
      verdict: {
        text: "resolver_b has 1 AAAA record for www.example. No two resolvers have answered, so nothing is compared. resolver_a refused to answer. resolver_c has not answered (timeout).",
      },
    });
  });

  test.each<[string, Resolution[], string]>([
    ["both", [answer(one), answer(one)], " Both resolvers agree."],
    [
      "one of both",
      [NO_SERVER, answer(one)],
      " No two resolvers have answered, so nothing is compared. resolver_a could not be reached.",
    ],
    ["the only one", [answer(one)], ""],
  ])("compares the answers of those that have servers: %s", async (_, resolutions, compared) => {
    const { resolver, details } = (await ask(resolutions)) as {
      resolver: string;
      details: { verdict: object; resolvers?: object[] };
    };
    const text = `${resolver} has 1 AAAA record for www.example.${compared}`;
    expect(details.verdict).toEqual({ code: "answer", text });
    expect(details.resolvers?.length).toBe(resolutions.length > 1 ? resolutions.length : undefined);
  });

  test("is an error if none has answered, whose details have all three", async () => {
    expect(await ask([refused, timeout, refused])).toMatchObject({
      code: "RESOLVER_FAILURE",
      details: {
        resolver: "resolver_a",
        rcode: "REFUSED",
        unanswered: ["resolver_a", "resolver_b", "resolver_c"],
        resolvers: [{ outcome: "failure" }, { outcome: "timeout" }, { outcome: "failure" }],
      },
    });
  });
});
