/** The switches of a query, as they are seen on the wire, and what real servers answer to them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createDnsClient } from "../../src/dns/client.ts";
import { FLAG, HEADER_BYTES } from "../../src/dns/message/message.ts";
import { readName } from "../../src/dns/message/name.ts";
import { OPT_CODE, typeName } from "../../src/dns/message/record.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { dns } from "../../src/tools/dns/endpoint.ts";
import type { DnsResult } from "../../src/tools/dns/result.ts";
import { ByteReader } from "../../src/util/bytes.ts";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { programMissing, testWith } from "../lab/lab.ts";
import { FakeClock } from "../util/fake-clock.ts";
import { type HostileServer, startHostileServer } from "./hostile-server.ts";
import { aaaa, askedName, cname, replyTo } from "./messages.ts";

/** A query as a server sees it. */
interface Seen {
  readonly transport: "udp" | "tcp";
  readonly type: string;
  readonly class: number;
  readonly isRecursive: boolean;
  readonly isChecked: boolean;
  readonly wantsSignatures: boolean;
  /** Its EDNS options, by their codes; RFC 6891 section 6.1.2. */
  readonly options: readonly number[];
}

function see(transport: Seen["transport"], query: Uint8Array): Seen {
  const reader = new ByteReader(query);
  reader.take(2);
  const flags = reader.uint16();
  reader.offset = HEADER_BYTES;
  readName(reader);
  const [type, asked] = [typeName(reader.uint16()), reader.uint16()];
  expect([reader.uint8(), reader.uint16()]).toEqual([0, OPT_CODE]);
  reader.take(4);
  const wantsSignatures = (reader.uint16() & 0x8000) !== 0;
  const options = new ByteReader(reader.take(reader.uint16()));
  expect(reader.remaining).toBe(0);
  const codes: number[] = [];
  while (options.remaining > 0) {
    codes.push(options.uint16());
    options.take(options.uint16());
  }
  return {
    ...{ transport, type, class: asked, wantsSignatures, options: codes },
    isRecursive: (flags & FLAG.recursionDesired) !== 0,
    isChecked: (flags & FLAG.checkingDisabled) === 0,
  };
}

let server: HostileServer;
let seen: Seen[] = [];
let names: string[] = [];
/** Questions for the resolver's translators. */
let translatorQuestions = 0;

beforeAll(async () => {
  const answer = (transport: Seen["transport"], query: Uint8Array) => {
    const name = askedName(query);
    // An AAAA question asks this on the side.
    if (/^ipv4only\.arpa\.$/i.test(name)) {
      translatorQuestions += 1;
      return replyTo(query, {});
    }
    seen.push(see(transport, query));
    names.push(name.toLowerCase());
    const answers = name.toLowerCase().startsWith("alias.")
      ? [cname(name, "elsewhere.test.")]
      : [aaaa(name, "::1")];
    return replyTo(query, { answers });
  };
  server = await startHostileServer({
    udp: ({ query, reply }) => reply(answer("udp", query)),
    tcp(query, connection) {
      const reply = answer("tcp", query);
      connection.write(Uint8Array.from([reply.length >>> 8, reply.length, ...reply]));
    },
  });
});

afterAll(async () => await server.stop());

const PARAMETERS = {
  ...{ hostname: "www.test", type: "AAAA", resolver: "resolver_a", dnssec: "no" },
  ...{ class: "IN", nsid: "no", transport: "any", recursion: "yes" },
} as const;

/** A client whose clock does not move, so that it asks once. */
const patientClient = (endpoint: HostileServer["endpoint"]) =>
  createDnsClient({ servers: [endpoint], clock: new FakeClock() });

async function ask(
  endpoint: HostileServer["endpoint"],
  parameters: object,
  client = patientClient(endpoint),
): Promise<DnsResult> {
  const resolvers = { resolver_a: client };
  const { signal } = new AbortController();
  const call = { signal, client: "test", address: null, allowSeconds() {} };
  const services = { resolvers, querySlots: new FairSlots(1), config: {} } as never;
  return (await dns.handle({ ...PARAMETERS, ...parameters }, call, services)) as DnsResult;
}

describe("on the wire", () => {
  const PLAIN: Seen = {
    ...{ transport: "udp", type: "A", class: 1, options: [] },
    ...{ isRecursive: true, isChecked: true, wantsSignatures: false },
  };

  test.each<[object, Partial<Seen>]>([
    [{}, {}],
    [
      { class: "CH", type: "TXT" },
      { class: 3, type: "TXT" },
    ],
    [{ nsid: "yes" }, { options: [3] }],
    [{ transport: "tcp" }, { transport: "tcp" }],
    [{ recursion: "no" }, { isRecursive: false }],
    [
      { class: "CH", type: "TXT", nsid: "yes", transport: "tcp", recursion: "no" },
      { class: 3, type: "TXT", options: [3], transport: "tcp", isRecursive: false },
    ],
    [
      { class: "CH", type: "TXT", dnssec: "yes" },
      { class: 3, type: "TXT", wantsSignatures: true },
    ],
  ])("%j", async (parameters, expected) => {
    seen = [];
    await ask(server.endpoint, { type: "A", ...parameters });
    expect(seen).toEqual([{ ...PLAIN, ...expected }]);
  });

  test("only a recursive question of the Internet's class asks for the translators, once", async () => {
    const client = patientClient(server.endpoint);
    translatorQuestions = 0;
    for (const parameters of [{ class: "CH" }, { recursion: "no" }, { type: "A" }]) {
      await ask(server.endpoint, parameters, client);
    }
    // A question on the side is sent before the one that it comes with.
    expect(translatorQuestions).toBe(0);
    for (let times = 0; times < 3; times++) await ask(server.endpoint, {}, client);
    expect(translatorQuestions).toBe(1);
  });

  test.each<[string[], Partial<Seen>]>([
    [[], {}],
    [["--chaos"], { class: 3 }],
    [["--nsid"], { options: [3] }],
    [["--tcp"], { transport: "tcp" }],
    [["--norecurse"], { isRecursive: false }],
  ])("the command with %j", async (options, expected) => {
    seen = [];
    const at = `@[::1]:${server.endpoint.port}`;
    const { status } = await sixscopeHere(["dns", "www.test", "A", at, ...options]);
    // A machine that was busy for a second has asked again.
    const wanted = { ...PLAIN, ...expected };
    expect([status, seen]).toEqual([1, [wanted, ...seen.slice(1).fill(wanted)]]);
  });

  test("an alias that leads away is not followed by ourselves without recursion", async () => {
    seen = [];
    const { details, records } = await ask(server.endpoint, {
      hostname: "alias.test",
      recursion: "no",
    });
    expect(seen).toHaveLength(1);
    expect(records).toMatchObject([{ type: "CNAME", value: "elsewhere.test." }]);
    expect(details).toMatchObject({ verdict: { code: "incomplete" }, incomplete: true });
  });

  test("a server with a name is looked up, both families, then asked and named", async () => {
    [seen, names] = [[], []];
    const at = `ns.test:${server.endpoint.port}`;
    const { stdout, stderr, status } = await sixscopeHere(["dns", "www.test", `@${at}`], {
      SIXSCOPE_RESOLVER_A: `[::1]:${server.endpoint.port}`,
    });
    const asked = new Set(names.map((name, at) => `${name} ${seen[at]?.type}`));
    expect([...asked].slice(0, 2).toSorted()).toEqual(["ns.test. A", "ns.test. AAAA"]);
    expect([...asked].slice(2)).toEqual(["www.test. AAAA"]);
    expect({ status, stdout, stderr }).toMatchObject({ status: 0, stderr: "" });
    expect(stdout).toContain(`${at} has 1 AAAA record for www.test.`);
    expect(stdout).not.toContain("resolver_a");
  });
});

describe("knot", () => {
  const labTest = testWith(programMissing("knotd"));
  const zone = (name: string, more: string) =>
    `$ORIGIN ${name}.\n$TTL 300\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns AAAA ::1\n${more}`;
  let knot: KnotServer;

  beforeAll(async () => {
    if (programMissing("knotd") !== null) return;
    const zones = {
      "zone.test": zone("zone.test", "www AAAA 2001:db8::1\nsub NS ns.sub\nns.sub AAAA ::1\n"),
    };
    knot = await startKnot({ zones, identity: "lab-1" });
  });

  afterAll(async () => await knot?.stop());

  labTest.each(["id.server", "hostname.bind"])("%s: what it calls itself", async (hostname) => {
    const { records, details } = await ask(knot.endpoint, { hostname, type: "TXT", class: "CH" });
    expect(records).toEqual([{ type: "TXT", value: '"lab-1"', ttl: 0 }]);
    expect(details).toMatchObject({
      question: { name: `${hostname}.`, type: "TXT", class: "CH" },
      verdict: { code: "answer" },
    });
  });

  labTest("its NSID, only if it was asked for", async () => {
    const hostname = "www.zone.test";
    const named = await ask(knot.endpoint, { hostname, nsid: "yes" });
    expect(named.details.nsid).toBe("lab-1");
    const { details } = await ask(knot.endpoint, { hostname });
    expect(details).not.toHaveProperty("nsid");
  });

  labTest("over TCP", async () => {
    const { details } = await ask(knot.endpoint, { hostname: "www.zone.test", transport: "tcp" });
    expect(details).toMatchObject({ transport: "tcp", attempts: [{ transport: "tcp" }] });
  });

  labTest("without recursion: its own records, and a referral below them", async () => {
    const own = await ask(knot.endpoint, { hostname: "www.zone.test", recursion: "no" });
    expect(own.records).toMatchObject([{ value: "2001:db8::1" }]);
    const below = ask(knot.endpoint, { hostname: "a.sub.zone.test", recursion: "no" });
    await expect(below).rejects.toThrow(
      'resolver_a only referred to other servers for "a.sub.zone.test"',
    );
    const foreign = ask(knot.endpoint, { hostname: "a.elsewhere.test", recursion: "no" });
    await expect(foreign).rejects.toThrow('resolver_a refused to answer for "a.elsewhere.test"');
  });
});
