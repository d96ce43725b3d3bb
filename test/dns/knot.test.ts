import { afterAll, beforeAll, describe, expect } from "bun:test";
import type { IpAddress } from "../../src/addr/ip.ts";
import { tryParseIpv4 } from "../../src/addr/ipv4.ts";
import {
  createDnsClient,
  type DnsClient,
  lookupAddresses,
  lookupHostname,
} from "../../src/dns/client.ts";
import { parseHostname } from "../../src/dns/hostname.ts";
import { RECORD_TYPES, type RecordType, tryParseRecordType } from "../../src/dns/message/record.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { programMissing, testWith } from "../lab/lab.ts";
import { CountedSockets } from "./fake-network.ts";
import { MANY_ADDRESSES, ZONES } from "./zones.ts";

const missing = programMissing("knotd") ?? programMissing("dig");
const testWithKnot = testWith(missing);

const sockets = new CountedSockets();
let knot: KnotServer;
let client: DnsClient;

beforeAll(async () => {
  if (missing !== null) return;
  knot = await startKnot({ zones: ZONES });
  client = createDnsClient({ servers: [knot.endpoint], sockets });
});

afterAll(async () => {
  await knot?.stop();
});

interface Shown {
  readonly rcode: string;
  readonly records: readonly {
    readonly type: string;
    readonly value: string;
    readonly ttl: number;
  }[];
}

/** The output of one `dig` for questions about a name: of each type, the response code, and type, value and TTL of each record. */
async function dig(name: string, ...types: readonly RecordType[]): Promise<Shown[]> {
  const { stdout } = Bun.spawn([
    ...["dig", "@::1", "-p", String(knot.endpoint.port)],
    ...types.flatMap((type) => [
      ...["-q", name, "-t", type, "+noall", "+answer", "+comments"],
      ...["+noidnin", "+noidnout", "+tries=3", "+time=10"],
    ]),
  ]);
  const [, ...answers] = (await new Response(stdout).text()).split(";; Got answer:\n");
  expect(answers).toHaveLength(types.length);
  return answers.map((said, at) => shownBy(said, types[at]));
}

function shownBy(said: string, type: RecordType | undefined): Shown {
  const rcode = /status: ([A-Z]+)/.exec(said)?.[1] ?? said;
  const lines = said.split("\n").filter((line) => line !== "" && !line.startsWith(";"));
  const records = lines.map((line) => {
    const parts = /^\S+\s+(?<ttl>\d+)\s+IN\s+(?<type>\S+)\s+(?<value>.*)$/.exec(line)?.groups;
    const { ttl = "", type: shownType = "", value = line } = parts ?? {};
    return { type: shownType, value, ttl: Number(ttl) };
  });
  // We show the CNAME that a DNAME synthesizes, not the DNAME itself.
  return {
    rcode,
    records: records.filter((record) => type === "DNAME" || record.type !== "DNAME"),
  };
}

/** The same from our client. */
async function ours(name: string, type: RecordType): Promise<Shown> {
  const outcome = await client.query(name, type, { timeoutMs: 30_000 });
  if (!("records" in outcome)) throw new Error(`${name} ${type}: ${outcome.kind}`);
  return { rcode: outcome.rcode, records: outcome.records };
}

function valuesOf(shown: object): string[] {
  return "records" in shown ? (shown as Shown).records.map(({ value }) => value) : [];
}

const HARD_CASES: readonly [string, string][] = [
  ["the top of the zone", "hard.example"],
  ["its name in mixed case", "HaRd.ExAmPlE"],
  ["addresses in every form", "plain.hard.example"],
  ["a TTL of zero", "zero.hard.example"],
  ["the largest TTL", "long.hard.example"],
  ["null MX", "nullmx.hard.example"],
  ["the root as a name", "rootptr.hard.example"],
  ["a dot inside a label", "dot\\.ted.hard.example"],
  ["a space inside a label", "sp\\032ace.hard.example"],
  ["bytes above 127 and NUL in a label", "\\200\\255\\000high.hard.example"],
  ["quote, backslash and semicolon in a label", 'quo\\"te\\\\back\\;semi.hard.example'],
  ["escapes in names of the data", "names.hard.example"],
  ["every kind of text", "texts.hard.example"],
  ["a wildcard", "anything.at.all.wild.hard.example"],
  ["the wildcard itself", "*.wild.hard.example"],
  ["a wildcard that is an alias", "anything.wildcname.hard.example"],
  ["an empty non-terminal", "b.ent.hard.example"],
  ["below it", "a.b.ent.hard.example"],
  ["mixed case through an alias", "mixed.hard.example"],
  ["a chain of four", "one.hard.example"],
  ["an alias to the top of the zone", "soa.sub.hard.example"],
  ["an alias out of the zone", "out.hard.example"],
  ["an alias to a name that does not exist", "nowhere.hard.example"],
  ["below a DNAME", "plain.tree.hard.example"],
  ["names of hosts", "ptr.hard.example"],
  ["a name that does not exist", "missing.hard.example"],
  ["a reverse name", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"],
  ["a reverse name by RFC 2317", "1.2.0.192.in-addr.arpa"],
];

/** The names without records; all others must have some, so that a zone that was not loaded fails the test. */
const WITHOUT_RECORDS = ["b.ent.hard.example", "missing.hard.example"];

describe("equal to what dig prints, for every usual type", () => {
  testWithKnot.each([...HARD_CASES])("%s", async (_, name) => {
    const types = RECORD_TYPES.slice(0, 18);
    const expected = await dig(name, ...types);
    const all = await Promise.all(types.map((type) => ours(name, type)));
    expect(all.map((shown, at) => [types[at], shown])).toEqual(
      expected.map((shown, at) => [types[at], shown]),
    );
    expect(expected.flatMap(({ records }) => records).length > 0).toBe(
      !WITHOUT_RECORDS.includes(name),
    );
  });
});

describe("equal to what dig prints, for further types", () => {
  testWithKnot.each([
    ["types.example", "CAA"],
    ["_sip._tcp.types.example", "SRV"],
    ["https.types.example", "HTTPS"],
    ["alias.types.example", "HTTPS"],
    ["https.types.example", "TYPE65"],
    ["svcb.types.example", "SVCB"],
    ["ds.types.example", "DS"],
    ["key.types.example", "DNSKEY"],
    ["_443._tcp.types.example", "TLSA"],
    ["ssh.types.example", "SSHFP"],
    ["naptr.types.example", "NAPTR"],
    ["unknown.types.example", "TYPE65280"],
    ["signature.types.example", "RRSIG"],
    ...["LOC", "APL", "CERT", "HINFO", "RP", "URI", "CSYNC", "ZONEMD", "DNAME", "NSEC"].map(
      (type) => [`${type.toLowerCase()}.types.example`, type] as const,
    ),
    ...["AFSDB", "KX", "MINFO", "RT", "L32", "LP", "NID", "L64", "HIP", "DHCID", "SPF"].map(
      (type) => [`${type.toLowerCase()}.types.example`, type] as const,
    ),
    ["eui.types.example", "EUI48"],
    ["eui.types.example", "EUI64"],
    ["pgp.types.example", "OPENPGPKEY"],
    ["smime.types.example", "SMIMEA"],
    ["cds.types.example", "CDS"],
    ["cds.types.example", "CDNSKEY"],
    ["dname2.types.example", "DNAME"],
    ["ipsec.types.example", "IPSECKEY"],
    ["amt.types.example", "AMTRELAY"],
  ])("%s %s", async (name, text) => {
    const type = tryParseRecordType(text) as RecordType;
    const [expected] = (await dig(name, type)) as [Shown];
    expect(expected.records.length).toBeGreaterThan(0);
    expect(await ours(name, type)).toEqual(expected);
  });
});

testWithKnot("a chain that the server does not follow to its end is incomplete", async () => {
  const outcome = await client.query("link0.types.example", "AAAA");
  expect(outcome).toMatchObject({ kind: "no-data", incomplete: true });
  expect(outcome).not.toHaveProperty("soa");
  const complete = await client.query("plain.hard.example", "MX");
  expect(complete).toMatchObject({ kind: "no-data", soa: { name: "hard.example.", ttl: 300 } });
  expect(complete).not.toHaveProperty("incomplete");
});

describe("the kind of outcome", () => {
  testWithKnot.each([
    ["an answer", "plain.hard.example", "AAAA", "answer"],
    ["no data", "plain.hard.example", "MX", "no-data"],
    ["an empty non-terminal", "b.ent.hard.example", "AAAA", "no-data"],
    ["an alias that leads out", "out.hard.example", "AAAA", "no-data"],
    ["no such name", "missing.hard.example", "AAAA", "name-error"],
    ["no such name at the end of a chain", "nowhere.hard.example", "AAAA", "name-error"],
    ["not served", "elsewhere.example", "AAAA", "failure"],
    ["a referral to other servers", "x.deleg.hard.example", "AAAA", "failure"],
    ["a loop of two", "loop1.hard.example", "AAAA", "malformed"],
    ["a loop of one", "self.hard.example", "AAAA", "malformed"],
    ["a loop, with the question CNAME", "self.hard.example", "CNAME", "answer"],
  ] as [string, string, RecordType, string][])("%s", async (_, name, type, kind) => {
    expect((await client.query(name, type)).kind).toBe(kind as never);
  });
});

testWithKnot(`${MANY_ADDRESSES} addresses come complete, over TCP`, async () => {
  const outcome = await client.query("many.hard.example", "AAAA");
  expect(outcome).toMatchObject({ kind: "answer", transport: "tcp" });
  const values = valuesOf(outcome);
  expect(new Set(values).size).toBe(MANY_ADDRESSES);
  expect(values.toSorted()).toEqual(
    (await dig("many.hard.example", "AAAA")).flatMap(valuesOf).toSorted(),
  );
});

testWithKnot(
  "an IPv4-compatible address has the RFC 5952 form, which differs from dig",
  async () => {
    expect(valuesOf(await ours("compat.hard.example", "AAAA"))).toEqual(["::c000:201"]);
    expect((await dig("compat.hard.example", "AAAA")).flatMap(valuesOf)).toEqual(["::192.0.2.1"]);
  },
);

testWithKnot("a short answer comes over UDP", async () => {
  expect(await client.query("plain.hard.example", "A")).toMatchObject({ transport: "udp" });
});

testWithKnot("a host name's way from the user's text to the answer", async () => {
  const parsed = parseHostname("2001:DB8::1", "PTR");
  const name = parsed.ok ? parsed.name : "";
  expect(await client.query(name, "PTR")).toMatchObject({
    kind: "answer",
    records: [{ type: "PTR", ttl: 60 }],
  });
});

testWithKnot("addresses and names for targets and hops", async () => {
  const { addresses } = await lookupAddresses(client, "one.hard.example");
  expect(addresses).toContainEqual(parseIpv6("2001:db8:0:0:1::1"));
  expect(addresses).toHaveLength(5);
  const nameOf = (ip: IpAddress) => lookupHostname(client, ip, { timeoutMs: 30_000 });
  expect((await nameOf(parseIpv6("2001:db8::1")))?.toLowerCase()).toBe("host-1.example");
  expect(await nameOf(tryParseIpv4("192.0.2.1") as IpAddress)).toBe("host-1.example");
  expect(await nameOf(parseIpv6("2001:db8::2"))).toBeNull();
});

testWithKnot("500 different questions at once are all answered, over UDP and TCP", async () => {
  // The first 16 are the spellings of one name, whose answer does not fit into a datagram.
  const spelling = (bits: number) =>
    [..."many"].map((letter, at) => ((bits >> at) & 1 ? letter.toUpperCase() : letter)).join("");
  const names = Array.from({ length: 500 }, (_, at) =>
    at < 16 ? `${spelling(at)}.hard.example` : `n${at}.wild.hard.example`,
  );
  const outcomes = await Promise.all(
    names.map((name) => client.query(name, "AAAA", { timeoutMs: 60_000 })),
  );
  const counts = outcomes.map((outcome) =>
    "records" in outcome ? outcome.records.length : outcome.kind,
  );
  expect(counts).toEqual(names.map((_, at) => (at < 16 ? MANY_ADDRESSES : 1)));
  expect(sockets.openCount).toBe(0);
});
