import { describe, expect, test } from "bun:test";
import { formatIp } from "../../src/addr/ip.ts";
import { parseConfig } from "../../src/config/settings.ts";
import { createDnsClient, type DnsClient } from "../../src/dns/client.ts";
import { FLAG } from "../../src/dns/message/message.ts";
import type { RecordType, ResourceRecord } from "../../src/dns/message/record.ts";
import { typeName } from "../../src/dns/message/record.ts";
import { tryParseDnsServer } from "../../src/dns/server.ts";
import { Gate } from "../../src/gate/gate.ts";
import { askZone } from "../../src/tools/dns/zone.ts";
import { FakeClock, settle } from "../util/fake-clock.ts";
import { type Behaviour, FakeNetwork } from "./fake-network.ts";
import { aaaa, askedName, cname, questionOf, replyTo, withAuthority } from "./messages.ts";

/* The servers of a zone in a network without packets, where each is a function. */

const RESOLVER = "[2001:db8:ffff::1]:53";
const ZONE = "zone.test.";
const WWW = `www.${ZONE}`;
const RECORDS = [aaaa(WWW, "2001:db8::80")];

const record = (owner: string, type: RecordType, value: string): ResourceRecord => ({
  ...{ owner, type, ttl: 300, value },
});
const soa = (serial: number, owner = ZONE) =>
  record(owner, "SOA", `ns.${owner} host.${owner} ${serial} 2 3 4 5`);
const rrsig = record(ZONE, "RRSIG", `SOA 13 2 300 20300101000000 20200101000000 1 ${ZONE} AAEC`);

const AUTHORITY = FLAG.response | FLAG.authoritative;
const RESOLVING = FLAG.response | FLAG.recursionDesired | FLAG.recursionAvailable;

/** Answers from records: a server's, or those that a resolver knows. */
const answering =
  (records: readonly ResourceRecord[], flags: number = AUTHORITY): Behaviour =>
  (query) => {
    const name = askedName(query).toLowerCase();
    const type = typeName(questionOf(query).type);
    const own = records.filter(({ owner }) => owner === name);
    const found = own.filter((each) => [type, "CNAME", "RRSIG"].includes(each.type));
    const isThere = records.some(({ owner }) => owner.endsWith(name));
    const answers = type === "SOA" ? found : found.filter((each) => each.type !== "RRSIG");
    return replyTo(query, { flags, answers, rcode: isThere ? 0 : 3 });
  };

const serving = (serial = 7, records: readonly ResourceRecord[] = RECORDS) =>
  answering([soa(serial), ...records]);
const refusing: Behaviour = (query) => replyTo(query, { rcode: 5 });
const failing: Behaviour = (query) => replyTo(query, { rcode: 2 });
const silent: Behaviour = () => null;
const silentForAaaa: Behaviour = (query) =>
  questionOf(query).type === 28 ? null : serving()(query);
const closed: Behaviour = () => "ECONNREFUSED";

interface World {
  /** The addresses of each server of the zone, and what they do; null for one without a route. */
  readonly servers: Readonly<Record<string, Readonly<Record<string, Behaviour | null>>>>;
  readonly name?: string;
  readonly type?: RecordType;
  /** What the resolver knows beside the zone's servers. */
  readonly known?: readonly ResourceRecord[];
  readonly resolver?: Behaviour;
  readonly environment?: Readonly<Record<string, string>>;
  readonly isGateShut?: true;
}

/** Lets time pass only while nothing else happens. */
async function run<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  promise.then(end, end);
  for (await settle(); !isOver; await settle()) clock.fire();
  return promise;
}

async function look({ servers, name = WWW, type = "AAAA", known = [], ...world }: World) {
  const clock = new FakeClock();
  const names = Object.entries(servers);
  const addresses = names.flatMap(([server, all]) =>
    Object.keys(all).map((ip) => record(server, ip.includes(":") ? "AAAA" : "A", ip)),
  );
  const delegation = names.map(([server]) => record(ZONE, "NS", server));
  const knows = answering([...delegation, ...addresses, ...known], RESOLVING);
  const resolverNetwork = new FakeNetwork({ [RESOLVER]: { udp: world.resolver ?? knows } }, clock);
  const all = names.flatMap(([, each]) => Object.entries(each));
  const network = new FakeNetwork(
    Object.fromEntries(
      all.map(([ip, behaviour]) => [
        ip.includes(":") ? `[${ip}]:53` : `${ip}:53`,
        behaviour ? { udp: behaviour, tcp: behaviour } : {},
      ]),
    ),
    clock,
  );
  const client: DnsClient = createDnsClient({
    servers: [tryParseDnsServer(RESOLVER)].filter((server) => server !== null),
    sockets: resolverNetwork,
    clock,
  });
  const sourceTo = async (ip: string) => {
    if (all.some(([other, behaviour]) => other === ip && behaviour === null)) throw new Error();
    return ip === "2001:db8:ffff::2" ? ip : "2001:db8:ffff::2";
  };
  const gate = new Gate(clock);
  const departures: string[] = [];
  const ask = gate.mayLeave.bind(gate);
  gate.mayLeave = (leaving, signal) => {
    const { target, probedPort, caller } = leaving;
    departures.push(
      `${formatIp(target)} ${probedPort?.protocol} ${probedPort?.port} ${caller?.client}`,
    );
    return world.isGateShut ? Promise.resolve(false) : ask(leaving, signal);
  };
  const services = {
    config: parseConfig(world.environment ?? {}),
    resolvers: { resolver_a: client, resolver_b: client, resolver_c: client },
    gate,
  };
  const options = { signal: new AbortController().signal, client: "a" };
  const machine = { sockets: network, clock, sourceTo };
  const asked = askZone({ name, type, options }, name, services, machine);
  const { found, reply, text } = await run(clock, asked);
  return {
    ...{ ...found, reply, text },
    departures,
    packets: network.asked().length,
    questions: resolverNetwork.arrivals.length,
    codes: found.findings.map(({ code, servers: of = [] }) => [code, ...of].join(" ")),
    outcomes: found.servers.map((row) => `${row.name} ${row.ip} ${row.outcome}`),
  };
}

const [SIX, OTHER_SIX, THIRD_SIX] = ["2001:db8:1::1", "2001:db8:2::1", "2001:db8:3::1"] as const;
const [FOUR, OTHER_FOUR] = ["192.0.2.1", "198.51.100.1"] as const;

/** Two servers without a fault, and what a third does at its IPv6 address. */
const beside = (third: Behaviour, ...records: ResourceRecord[]) => ({
  servers: {
    "a.": { [SIX]: serving(7, [...RECORDS, ...records]), [FOUR]: serving() },
    "b.": { [OTHER_SIX]: serving(7, [...RECORDS, ...records]) },
    "c.": { [THIRD_SIX]: third },
  },
});

describe("findings", () => {
  // biome-ignore format: a table
  test.each<[string, World, string[]]>([
    ["none", beside(serving()), []],
    ["none in another order", beside(serving(7, [aaaa(WWW, "2001:DB8::80")])), []],
    ["none for IPv6 alone", { servers: { "a.": { [SIX]: serving() } } }, []],
    ["a server that refuses", beside(refusing), ["lame c."]],
    ["a server that fails", beside(failing), ["lame c."]],
    ["a resolver among the servers", beside(answering([soa(7), ...RECORDS], RESOLVING)), ["lame c."]],
    ["a server of another zone", beside(answering([soa(7, "other.test.")])), ["lame c."]],
    ["a server without the zone's SOA", beside(answering(RECORDS)), ["lame c."]],
    ["garbage", beside((query) => (serving()(query) as Uint8Array).subarray(0, -9)), ["lame c."]],
    ["garbage without the question", beside((query) => query.slice(0, 8)), ["silent c."]],
    ["a server that refers to others", beside((query) => withAuthority(replyTo(query, { flags: FLAG.response }), ["NS"])), ["lame c."]],
    ["silence", beside(silent), ["silent c."]],
    ["a closed port", beside(closed), ["silent c."]],
    ["an old copy", beside(serving(6)), ["serials-differ c."]],
    ["a newer copy", beside(serving(8)), ["serials-differ c."]],
    ["a server with two copies", { servers: { "a.": { [SIX]: serving(7), [FOUR]: serving(8) } } }, ["serials-differ a."]],
    ["two that differ: neither is to blame", { servers: { "a.": { [SIX]: serving(7) }, "b.": { [OTHER_SIX]: serving(8) } } }, ["serials-differ a. b."]],
    ["other records", beside(serving(7, [aaaa(WWW, "2001:db8::81")])), ["answers-differ c."]],
    ["a record more", beside(serving(7, [...RECORDS, aaaa(WWW, "2001:db8::81")])), ["answers-differ c."]],
    ["no such name", beside(serving(7, [])), ["answers-differ c."]],
    ["a name that fails", beside((query) => questionOf(query).type === 28 ? failing(query) : serving()(query)), ["answers-differ c."]],
    ["a name that one is silent about", beside(silentForAaaa), ["silent c."]],
    ["the same alias, of which one knows more", { ...beside(serving(7, [cname(WWW, "x.test.")])), servers: { "a.": { [SIX]: serving(7, [cname(WWW, "x.test."), aaaa("x.test.", "2001:db8::1")]) }, "b.": { [OTHER_SIX]: serving(7, [cname(WWW, "x.test.")]) } } }, []],
    ["other aliases", { servers: { "a.": { [SIX]: serving(7, [cname(WWW, "x.test.")]) }, "b.": { [OTHER_SIX]: serving(7, [cname(WWW, "y.test.")]) } } }, ["answers-differ a. b."]],
    ["no signatures beside some", beside(serving(), rrsig), ["unsigned-server a. c."]],
    ["a server without IPv6", { servers: { "a.": { [SIX]: serving(), [FOUR]: serving() }, "b.": { [OTHER_FOUR]: serving() } } }, ["no-ipv6 b."]],
    ["a server that a resolver makes an address for", { servers: { "a.": { "64:ff9b::c000:201": serving(), [FOUR]: serving() } } }, ["no-ipv6 a."]],
  ])("%s", async (_, world, codes) => {
    expect((await look(world)).codes).toEqual(codes);
  });

  test("servers that drop questions of one type say nothing of the name, and it is told which", async () => {
    const { outcomes, reply, text } = await look({ servers: { "a.": { [SIX]: silentForAaaa } } });
    expect([outcomes, reply.records]).toEqual([[`a. ${SIX} silent`], []]);
    expect(text).toContain(
      `0 of 1 answer for zone.test. No answer from a (${SIX} for AAAA alone).`,
    );
  });

  test("a lame server that sets AA is not said to be without authority", async () => {
    const { servers, text } = await look(beside(answering([aaaa(`sub.${ZONE}`, "::2")])));
    expect(servers.at(-1)).toMatchObject({ outcome: "lame", authoritative: true });
    expect(text).toContain(`c (${THIRD_SIX} no SOA record)`);
  });

  test("an unsigned one among signed ones is named alone", async () => {
    const signing = serving(7, [...RECORDS, rrsig]);
    const { codes, servers } = await look({
      servers: { "a.": { [SIX]: signing }, "b.": { [FOUR]: serving(), [OTHER_SIX]: signing } },
    });
    expect(codes).toEqual(["unsigned-server b."]);
    expect(servers.map(({ ip, signed }) => [ip, signed])).toEqual([
      [SIX, true],
      [OTHER_SIX, true],
      [FOUR, false],
    ]);
  });
});

describe("rows", () => {
  // biome-ignore format: a table
  test.each<[string, World, string[]]>([
    ["each address", beside(serving()), [`a. ${SIX} answer`, `a. ${FOUR} answer`, `b. ${OTHER_SIX} answer`, `c. ${THIRD_SIX} answer`]],
    ["no address", { servers: { "a.": { [SIX]: serving() }, "b.": {} } }, [`a. ${SIX} answer`, "b. null no-address"]],
    ["no route", { servers: { "a.": { [SIX]: null, [FOUR]: serving() } } }, [`a. ${SIX} no-route`, `a. ${FOUR} answer`]],
    ["this machine", { servers: { "a.": { "2001:db8:ffff::2": serving(), "::1": serving(), "127.0.0.53": serving() } } }, ["a. 2001:db8:ffff::2 not-allowed", "a. 127.0.0.53 not-allowed", "a. ::1 not-allowed"]],
    ["this machine, which is allowed", { servers: { "a.": { "::1": serving() } }, environment: { SIXSCOPE_TARGETS_ALLOW: "::1" } }, ["a. ::1 answer"]],
    ["addresses that no host has", { servers: { "a.": { "ff02::1": serving(), "::": serving() } } }, ["a. ff02::1 not-allowed", "a. :: not-allowed"]],
    ["a denied network", { servers: { "a.": { [SIX]: serving(), [FOUR]: serving() } }, environment: { SIXSCOPE_TARGETS_DENY: "192.0.2.0/24" } }, [`a. ${SIX} answer`, `a. ${FOUR} not-allowed`]],
    ["private addresses where targets are global", { servers: { "a.": { "10.0.0.1": serving(), "9.9.9.9": serving() } }, environment: { SIXSCOPE_TARGETS: "global" } }, ["a. 10.0.0.1 not-allowed", "a. 9.9.9.9 answer"]],
  ])("%s", async (_, world, outcomes) => {
    const found = await look(world);
    expect(found.outcomes).toEqual(outcomes);
    const packets = outcomes.filter((outcome) => outcome.endsWith(" answer")).length;
    expect(found.packets).toBe(2 * packets);
  });

  test("a server whose addresses the resolver cannot look up is not one without", async () => {
    const ns = answering([record(ZONE, "NS", "a."), record("a.", "A", FOUR)], RESOLVING);
    const resolver: Behaviour = (query) =>
      questionOf(query).type === 28 ? failing(query) : ns(query);
    const found = await look({ servers: {}, resolver });
    expect(found.codes).toEqual(["silent a."]);
    const neither: Behaviour = (query) =>
      questionOf(query).type === 2 ? ns(query) : failing(query);
    expect((await look({ servers: {}, resolver: neither })).outcomes).toEqual([
      "a. null not-known",
    ]);
  });
});

describe("the gate", () => {
  test("knows every packet, and for whom it leaves", async () => {
    const truncating: Behaviour = (query) => replyTo(query, { flags: AUTHORITY | FLAG.truncated });
    const { departures, packets } = await look({
      servers: { "a.": { [SIX]: serving(), [FOUR]: truncating } },
    });
    expect(departures.toSorted()).toEqual([
      `${FOUR} tcp 53 a`,
      `${FOUR} udp 53 a`,
      `${SIX} udp 53 a`,
      `${SIX} udp 53 a`,
    ]);
    expect(packets).toBe(4);
  });

  test("lets nothing leave if it is shut, and nobody is blamed", async () => {
    const { packets, outcomes, codes, text } = await look({
      ...{ ...beside(serving()), isGateShut: true },
    });
    // Of no answers there is no share.
    expect(text).toMatch(/^0 of \d addresses of \d name servers? were asked\.$/);
    expect(packets).toBe(0);
    expect(codes).toEqual([]);
    expect(outcomes.every((outcome) => outcome.endsWith("not-asked"))).toBe(true);
  });
});

describe("the zone", () => {
  const elsewhere = [cname("alias.zone.test.", "a.other.test."), soa(1, "other.test.")];
  // biome-ignore format: a table
  test.each<[string, string, RecordType, readonly ResourceRecord[], number]>([
    ["of a name in it", `a.b.c.${ZONE}`, "AAAA", [], 4],
    ["of its own name", ZONE, "AAAA", [], 1],
    ["of its own name in capitals", "ZONE.test", "AAAA", [], 1],
    ["of an alias into another zone is that of the alias", "alias.zone.test", "AAAA", elsewhere, 2],
    ["of its DS records is the one above", `sub.${ZONE}`, "DS", [record(`sub.${ZONE}`, "NS", "x.")], 1],
  ])("%s", async (_, name, type, known, questions) => {
    const found = await look({ name, type, known, servers: { "a.": { [SIX]: serving() } } });
    expect(found.outcomes).toEqual([`a. ${SIX} answer`]);
    expect(found.questions).toBe(questions + 2);
  });

  test("is found by the SOA record that the resolver shows, if it is of a zone around the name", async () => {
    const delegation = [record(ZONE, "NS", "a."), record("a.", "AAAA", SIX)];
    const knows = answering(delegation, RESOLVING);
    // That of the root says nothing of where the zone begins.
    const resolver: Behaviour = (query) =>
      askedName(query).split(".").length > 4
        ? withAuthority(replyTo(query), ["SOA"])
        : knows(query);
    const servers = { "a.": { [SIX]: serving() } };
    const found = look({ name: `a.b.${ZONE}`, servers, resolver });
    expect((await found).outcomes).toEqual([]);
  });

  test.each<[string, Behaviour, string]>([
    ["silent", silent, SIX],
    ["lame", refusing, SIX],
    ["without IPv6 here", silent, FOUR],
  ])(
    "that the resolver does not reach is named by the zone above, also if its first server is %s",
    async (_, first, ip) => {
      const [sub, server] = [`sub.${ZONE}`, `n.sub.${ZONE}`];
      const delegation = [record(sub, "NS", server), aaaa(server, THIRD_SIX)];
      const above = [record(ZONE, "NS", "a."), record(ZONE, "NS", "b."), aaaa("b.", OTHER_SIX)];
      const addresses = [record("a.", ip === SIX ? "AAAA" : "A", ip)];
      const knows = answering([...above, ...addresses], RESOLVING);
      const { outcomes } = await look({
        name: `www.${sub}`,
        resolver: (query) =>
          askedName(query).toLowerCase().endsWith(sub) ? failing(query) : knows(query),
        servers: {
          "a.": { [ip]: first },
          "b.": {
            [OTHER_SIX]: (query) => replyTo(query, { flags: AUTHORITY, answers: delegation }),
          },
          [server]: { [THIRD_SIX]: answering([soa(7, sub), aaaa(`www.${sub}`, "2001:db8::80")]) },
        },
      });
      expect(outcomes).toEqual([`${server} ${THIRD_SIX} answer`]);
    },
  );

  test("is not said to be out of reach if it is the resolver that fails for a name in it", async () => {
    const knows = answering([record(ZONE, "NS", "a."), aaaa("a.", SIX)], RESOLVING);
    const { outcomes, text } = await look({
      resolver: (query) => (askedName(query).toLowerCase() === WWW ? failing(query) : knows(query)),
      servers: { "a.": { [SIX]: serving() } },
    });
    expect([outcomes, text]).toEqual([
      [`a. ${SIX} answer`],
      expect.stringMatching(
        /^resolver_a fails for a name below zone\.test \(SERVFAIL\), and no server/,
      ),
    ]);
  });

  test("is not guessed where the resolver fails", () => {
    expect(look({ servers: {}, resolver: failing })).rejects.toMatchObject({
      code: "RESOLVER_FAILURE",
      details: { rcode: "SERVFAIL" },
    });
  });
});

describe("hostile zones", () => {
  const many = (count: number, behaviour: Behaviour) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, server) => [
        `ns${server}.`,
        Object.fromEntries(
          Array.from({ length: count }, (_, at) => [
            at % 2 === 0 ? `2001:db8:${server}::${at}` : `10.${server}.0.${at}`,
            behaviour,
          ]),
        ),
      ]),
    );
  const truncating: Behaviour = (query) => replyTo(query, { flags: AUTHORITY | FLAG.truncated });
  const refusingEdns: Behaviour = (query) => replyTo(query, { rcode: 1, edns: null });
  test.each<[string, Behaviour]>([
    ["silent", silent],
    ["answering", serving()],
    ["truncating, over UDP and TCP", truncating],
    ["refusing EDNS", refusingEdns],
    ["refusing connections", closed],
  ])(
    "100 servers with 100 addresses each, %s: at most 60 packets and 60 questions",
    async (_, behaviour) => {
      const { packets, questions, servers, text } = await look({ servers: many(100, behaviour) });
      expect(packets).toBeWithin(30, 61);
      expect(questions).toBeWithin(50, 61);
      expect(servers.length).toBe(30);
      // One address of each server comes before the second of any.
      expect(new Set(servers.map(({ name }) => name)).size).toBeWithin(15, 31);
      expect(text).toContain("of 2900 addresses of 29 of 100 name servers were asked");
      expect(text.length).toBeLessThan(2000);
    },
  );

  test("13 servers of both families fit", async () => {
    const servers = Object.fromEntries(
      Array.from({ length: 13 }, (_, at) => [
        `${at}.`,
        { [`2001:db8::${at + 1}`]: serving(), [`192.0.2.${at + 1}`]: serving() },
      ]),
    );
    const { packets, questions, text } = await look({ servers });
    expect({ packets, questions }).toEqual({ packets: 52, questions: 28 });
    expect(text).toBe(
      "26 of 26 addresses of 13 name servers were asked, and 26 of 26 answer for zone.test, with serial 7.",
    );
  });

  test.each<[string, Behaviour]>([
    ["silent", silent],
    [
      "referring to other zones",
      answering([record("other.test.", "NS", "x."), record("x.", "A", FOUR)]),
    ],
    ["referring to themselves", answering([record(".", "NS", "root.")], FLAG.response)],
  ])("a resolver that reaches nothing but the root, whose servers are %s", async (_, behaviour) => {
    const roots = [
      record(".", "NS", "root."),
      record("root.", "AAAA", SIX),
      record("root.", "A", FOUR),
    ];
    const knows = answering(roots, RESOLVING);
    const resolver: Behaviour = (query) =>
      askedName(query).toLowerCase().endsWith("test.") ? failing(query) : knows(query);
    const servers = { "root.": { [SIX]: behaviour, [FOUR]: behaviour } };
    const name = `${"a.".repeat(20)}zone.test.`;
    const { packets, questions, text } = await look({ name, servers, resolver });
    expect(packets).toBeLessThan(10);
    expect(questions).toBe(22 + 1 + 2 * 2);
    expect(text).toContain("0 of 2 answer for the root");
  });

  test("a name with as many labels as there can be", async () => {
    const name = `${"a.".repeat(122)}zone.test.`;
    const resolver: Behaviour = (query) => replyTo(query);
    await expect(look({ name, servers: {}, resolver })).rejects.toMatchObject({
      code: "RESOLVER_TIMEOUT",
    });
  });
});

describe("the reply", () => {
  test("is that of most servers", async () => {
    const [one, two] = [aaaa(WWW, "2001:db8::1"), aaaa(WWW, "2001:db8::2")];
    const { reply } = await look({
      servers: {
        "a.": { [SIX]: serving(7, [one]) },
        "b.": { [FOUR]: serving(7, [two]) },
        "c.": { [OTHER_SIX]: serving(7, [two]) },
      },
    });
    expect(reply).toMatchObject({
      resolver: "zone",
      outcome: "answer",
      records: [{ value: two.value }],
    });
  });

  test.each<[string, Behaviour]>([
    ["silent", silent],
    ["lame", refusing],
  ])("is none if all are %s", async (_, behaviour) => {
    const { reply } = await look({ servers: { "a.": { [SIX]: behaviour } } });
    expect(reply).toMatchObject({ outcome: "unreachable", records: [], attempts: [] });
  });
});
