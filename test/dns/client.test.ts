import { describe, expect, test } from "bun:test";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { createDnsClient, type DnsClientOptions } from "../../src/dns/client.ts";
import { DnsFormatError } from "../../src/dns/format-error.ts";
import { lookupAddresses, lookupHostname } from "../../src/dns/lookup.ts";
import { FLAG, type Message } from "../../src/dns/message.ts";
import type { RecordType } from "../../src/dns/record.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { FakeClock, settle } from "./fake-clock.ts";
import { type Arrival, type Behaviour, FakeNetwork } from "./fake-network.ts";
import {
  aaaa,
  askedName,
  cname,
  replyMessage,
  replyTo,
  withAuthority,
  withDname,
} from "./messages.ts";

const V6 = "[2001:db8::53]:53";
const V6_TOO = "[2001:db8::54]:53";
const V4 = "192.0.2.53:53";

const RESPONSE = FLAG.response;
const [NS, SOA] = [2, 6];

const silent: Behaviour = () => null;
const refuses: Behaviour = () => "ECONNREFUSED";
const answers: Behaviour = (query) =>
  replyTo(query, { answers: [aaaa(askedName(query), "2001:db8::1")] });
const replies =
  (changes: Partial<Message>): Behaviour =>
  (query) =>
    replyTo(query, changes);
const truncates = replies({ flags: RESPONSE | FLAG.truncated });
const otherId: Behaviour = (query) => replyTo(query, { id: replyMessage(query).id ^ 1 });
/** Answers in all lower case, or in all upper case where the question is in lower case already. */
const folds: Behaviour = (query) => {
  const sent = askedName(query);
  const lower = sent.toLowerCase();
  const name = sent === lower ? sent.toUpperCase() : lower;
  const answers = [aaaa("www.example.", "2001:db8::f")];
  return replyTo(query, { question: { name, type: 28, class: 1 }, answers });
};

function start(
  servers: Record<string, { udp?: Behaviour; tcp?: Behaviour }>,
  options: Partial<DnsClientOptions> = {},
) {
  const clock = new FakeClock();
  const network = new FakeNetwork(servers);
  const client = createDnsClient({
    servers: Object.keys(servers).map((text) => tryParseSocketAddress(text) as SocketAddress),
    sockets: network,
    clock,
    ...options,
  });
  /** Asks, lets the time pass, and gives the outcome, or undefined where there is none yet. */
  const ask = async (name: string, type: RecordType, afterMs = 0, timeoutMs?: number) => {
    let outcome: Awaited<ReturnType<typeof client.query>> | undefined;
    client.query(name, type, timeoutMs === undefined ? {} : { timeoutMs }).then((value) => {
      outcome = value;
    });
    await clock.advance(afterMs);
    return outcome;
  };
  return { clock, network, client, ask };
}

describe("an outcome", () => {
  test("tells everything about an answer", async () => {
    const answer: Behaviour = (query) =>
      replyTo(query, {
        flags: RESPONSE | FLAG.authenticated,
        answers: [cname(askedName(query), "B."), aaaa("b.", "2001:db8::1", 60)],
        edns: {
          payloadBytes: 1232,
          version: 0,
          dnssecOk: false,
          extendedErrors: [{ code: 3, text: "old" }],
        },
      });
    const { ask } = start({ [V6]: { udp: answer } });
    expect(await ask("a", "AAAA")).toEqual({
      kind: "answer",
      records: [
        { type: "CNAME", value: "B.", ttl: 300 },
        { type: "AAAA", value: "2001:db8::1", ttl: 60 },
      ],
      server: V6,
      transport: "udp",
      rcode: "NOERROR",
      authenticated: true,
      extendedErrors: [{ code: 3, name: "Stale Answer", text: "old" }],
      queryTimeMs: 0,
    });
  });

  const blocked = {
    payloadBytes: 512,
    version: 0,
    dnssecOk: false,
    extendedErrors: [{ code: 15 }],
  };
  test.each<[string, Behaviour, object]>([
    ["no data", replies({}), { kind: "no-data", records: [], rcode: "NOERROR" }],
    ["name error", replies({ rcode: 3 }), { kind: "name-error", records: [], rcode: "NXDOMAIN" }],
    ["SERVFAIL", replies({ rcode: 2 }), { kind: "failure", rcode: "SERVFAIL" }],
    ["REFUSED", replies({ rcode: 5 }), { kind: "failure", rcode: "REFUSED" }],
    ["NOTIMP", replies({ rcode: 4 }), { kind: "failure", rcode: "NOTIMP" }],
    ["a code without a name", replies({ rcode: 3841 }), { kind: "failure", rcode: "RCODE3841" }],
    [
      "a failure with its reason",
      replies({ rcode: 2, edns: blocked }),
      { kind: "failure", extendedErrors: [{ code: 15, name: "Blocked" }] },
    ],
    ["malformed", (query) => replyTo(query).with(7, 1), { kind: "malformed", rcode: "MALFORMED" }],
    ["a loop", replies({ answers: [cname("a.", "a.")] }), { kind: "malformed", server: V6 }],
    ["unreachable", refuses, { kind: "unreachable", reason: "ECONNREFUSED", server: V6 }],
  ])("%s", async (_, udp, expected) => {
    const { ask, client } = start({ [V6]: { udp } });
    expect(await ask("a", "AAAA")).toMatchObject(expected);
    expect(client.openSockets).toBe(0);
  });

  test.each<[string, Behaviour[], string]>([
    [
      "what a server said counts more than that one is unreachable",
      [refuses, replies({ rcode: 2 })],
      "failure",
    ],
    [
      "a response code counts more than a malformed reply",
      [(query) => replyTo(query).with(7, 1), replies({ rcode: 5 })],
      "failure",
    ],
    ["the first failure counts", [replies({ rcode: 5 }), replies({ rcode: 2 })], "REFUSED"],
    ["a server that answers counts more than any", [replies({ rcode: 5 }), answers], "answer"],
  ])("%s", async (_, [first, second], expected) => {
    const { ask } = start({
      [V6]: { udp: first as Behaviour },
      [V6_TOO]: { udp: second as Behaviour },
    });
    const outcome = await ask("a", "AAAA");
    expect([outcome?.kind, outcome && "rcode" in outcome && outcome.rcode]).toContain(expected);
  });

  test("is a failure where one server failed and the other stayed silent to the end", async () => {
    const { ask } = start({ [V6]: { udp: replies({ rcode: 2 }) }, [V4]: { udp: silent } });
    expect(await ask("a", "AAAA", 4999)).toBeUndefined();
    expect(await ask("b", "AAAA", 5000)).toMatchObject({ kind: "failure", queryTimeMs: 5000 });
  });

  test("is a timeout where one server was unreachable and the other silent", async () => {
    const { ask } = start({ [V6]: { udp: refuses }, [V4]: { udp: silent } });
    expect(await ask("a", "AAAA", 5000)).toEqual({ kind: "timeout", queryTimeMs: 5000 });
  });
});

describe("the deadline holds to the millisecond whatever a server does", () => {
  test.each<[string, { udp: Behaviour; tcp?: Behaviour }]>([
    ["silence", { udp: silent }],
    ["truncation, then silence over TCP", { udp: truncates, tcp: silent }],
    ["a forged ID, then silence over TCP", { udp: otherId, tcp: silent }],
    ["only what is not ours", { udp: replies({ flags: 0 }) }],
    [
      "FORMERR to EDNS, then silence",
      {
        udp: (query) =>
          replyMessage(query).edns ? replyTo(query, { rcode: 1, edns: null }) : null,
      },
    ],
  ])("%s", async (_, behaviour) => {
    const { ask, client, network, clock } = start({ [V6]: behaviour });
    expect(await ask("a", "AAAA", 4999)).toBeUndefined();
    expect(client.openSockets).toBeGreaterThan(0);
    await clock.advance(1);
    expect(client.openSockets).toBe(0);
    expect(network.open).toBe(0);
    expect(await ask("a", "AAAA", 5000)).toEqual({ kind: "timeout", queryTimeMs: 5000 });
    expect(clock.pending).toBe(0);
  });

  test("with a time of its own", async () => {
    const { ask } = start({ [V6]: { udp: silent } });
    expect(await ask("a", "AAAA", 1499, 1500)).toBeUndefined();
    expect(await ask("b", "AAAA", 1500, 1500)).toEqual({ kind: "timeout", queryTimeMs: 1500 });
  });
});

describe("TCP", () => {
  test("is asked where the answer was truncated, at the same server", async () => {
    const { ask, network } = start({
      [V6]: { udp: truncates, tcp: answers },
      [V4]: { udp: answers },
    });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "answer", transport: "tcp", server: V6 });
    expect(network.asked()).toEqual([`${V6} udp`, `${V6} tcp`]);
  });

  test("refused after truncation: the part is not passed off as the whole", async () => {
    const part = replies({
      flags: RESPONSE | FLAG.truncated,
      answers: [aaaa("a.", "2001:db8::1")],
    });
    const { ask } = start({ [V6]: { udp: part, tcp: refuses } });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "unreachable", transport: "tcp" });
  });

  test("refused after truncation: the next server is asked at once", async () => {
    const { ask } = start({ [V6]: { udp: truncates, tcp: refuses }, [V4]: { udp: answers } });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "answer", server: V4 });
  });

  test("decides where the case of a reply differs", async () => {
    const { ask } = start({ [V6]: { udp: folds, tcp: answers } });
    expect(await ask("www.example", "AAAA")).toMatchObject({
      transport: "tcp",
      records: [{ value: "2001:db8::1" }],
    });
  });

  test.each<[string, Behaviour, number]>([
    ["refused", refuses, 0],
    ["silent for a second", silent, 1000],
    ["malformed", (query) => replyTo(query).with(0, 0).with(1, 0), 0],
  ])("%s: a reply in other case is better than none", async (_, tcp, afterMs) => {
    const { ask, client, clock } = start({ [V6]: { udp: folds, tcp } });
    expect(await ask("www.example", "AAAA", afterMs)).toMatchObject({
      kind: "answer",
      transport: "udp",
      records: [{ value: "2001:db8::f" }],
      queryTimeMs: afterMs,
    });
    expect(client.openSockets).toBe(0);
    expect(clock.pending).toBe(0);
  });
});

describe("a server that makes names of the question's", () => {
  /** As a DNAME does: `old.example` leads to `new.example`, and the labels before it stay as they were sent. */
  const synthesizes: Behaviour = (query) => {
    const asked = askedName(query);
    const target = asked.replace(/old\.example\.$/i, "New.Example.");
    const reply = replyTo(query, { answers: [cname(asked, target), aaaa(target, "2001:db8::1")] });
    return withDname(reply);
  };

  test.each([
    ["plain letters", "abcdefghijkl.old.example", "abcdefghijkl.New.Example."],
    ["several labels", "abcdef.GHIJKL.old.example", "abcdef.GHIJKL.New.Example."],
    ["escapes", "ab\\.cd.e\\\\f\\200gh.old.example", "ab\\.cd.e\\\\f\\200gh.New.Example."],
  ])("shows the case in which it was asked: %s", async (_, name, target) => {
    for (let times = 0; times < 5; times++) {
      const { ask } = start({ [V6]: { udp: synthesizes } });
      expect(await ask(name, "AAAA")).toMatchObject({
        records: [{ type: "CNAME", value: target }, { value: "2001:db8::1" }],
      });
    }
  });

  test("keeps the case of an alias that is its own", async () => {
    const own: Behaviour = (query) =>
      replyTo(query, { answers: [cname(askedName(query), "A.Other."), aaaa("a.other.", "::1")] });
    for (let times = 0; times < 8; times++) {
      const { ask } = start({ [V6]: { udp: own } });
      expect(await ask("a.example", "AAAA")).toMatchObject({
        records: [{ value: "A.Other." }, {}],
      });
    }
  });
});

describe("a referral", () => {
  test.each<[string, number[], Partial<Message>, string]>([
    ["to other servers is no answer", [NS], {}, "REFERRAL"],
    ["beside an SOA is no referral", [SOA, NS], {}, "no-data"],
    ["of none is no referral", [], {}, "no-data"],
    [
      "of an authoritative server is no referral",
      [NS],
      { flags: RESPONSE | FLAG.authoritative },
      "no-data",
    ],
    [
      "of a recursive server is no referral",
      [NS],
      { flags: RESPONSE | FLAG.recursionAvailable },
      "no-data",
    ],
  ])("%s", async (_, authority, changes, expected) => {
    const udp: Behaviour = (query) =>
      withAuthority(replyTo(query, { flags: RESPONSE, ...changes }), authority);
    const outcome = await start({ [V6]: { udp } }).ask("a", "AAAA");
    expect([outcome?.kind, outcome && "rcode" in outcome && outcome.rcode]).toContain(expected);
  });

  test("leads to the next server", async () => {
    const refers: Behaviour = (query) => withAuthority(replyTo(query, { flags: RESPONSE }), [NS]);
    const { ask } = start({ [V6]: { udp: refers }, [V4]: { udp: answers } });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "answer", server: V4 });
  });
});

describe("EDNS", () => {
  test.each<[string, Partial<Message>]>([
    ["FORMERR without OPT", { rcode: 1, edns: null }],
    ["NOTIMP without OPT", { rcode: 4, edns: null }],
    ["FORMERR without a question", { rcode: 1, edns: null, question: null }],
    ["BADVERS", { rcode: 16 }],
  ])("%s: the same server is asked once more without", async (_, refusal) => {
    const { ask, network } = start({
      [V6]: {
        udp: (query, asked) =>
          replyMessage(query).edns ? replyTo(query, refusal) : answers(query, asked),
      },
    });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "answer", server: V6 });
    expect(network.arrivals.map(({ query }) => replyMessage(query).edns !== null)).toEqual([
      true,
      false,
    ]);
  });

  test("a server that says FORMERR to both is given up", async () => {
    const { ask, network } = start({ [V6]: { udp: replies({ rcode: 1, edns: null }) } });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "failure", rcode: "FORMERR" });
    expect(network.arrivals).toHaveLength(2);
  });

  test.each<[string, Partial<Message>]>([
    ["FORMERR with OPT", { rcode: 1 }],
    ["SERVFAIL without OPT", { rcode: 2, edns: null }],
  ])("%s is no reason to do without", async (_, reply) => {
    const { ask, network } = start({ [V6]: { udp: replies(reply) } });
    await ask("a", "AAAA");
    expect(network.arrivals).toHaveLength(1);
  });
});

describe("several servers", () => {
  test("a dead IPv6 family gives way to IPv4 after a second", async () => {
    const { ask } = start({ [V6]: {}, [V6_TOO]: {}, [V4]: { udp: answers } });
    expect(await ask("a", "AAAA", 1000)).toMatchObject({
      kind: "answer",
      server: V4,
      queryTimeMs: 1000,
    });
  });

  test("one that refuses gives way at once", async () => {
    const { ask } = start({ [V6]: { udp: refuses }, [V4]: { udp: answers } });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "answer", server: V4, queryTimeMs: 0 });
  });

  test("a late answer to the first attempt wins over the silence of the second", async () => {
    const { clock, network, client } = start({ [V6]: {}, [V4]: {} });
    const outcome = client.query("a", "AAAA");
    await clock.advance(1500);
    const first = network.arrivals[0] as Arrival;
    first.answer(answers(first.query, 0) as Uint8Array);
    expect(await outcome).toMatchObject({ kind: "answer", server: V6, queryTimeMs: 1500 });
  });
});

describe("sockets", () => {
  test("500 questions at once are all answered right, with 256 sockets at most", async () => {
    const byName: Behaviour = (query) => {
      const number = Number(/\d+/.exec(askedName(query))?.[0]);
      return replyTo(query, {
        answers: [aaaa(askedName(query), `2001:db8::${number.toString(16)}`)],
      });
    };
    const { client, network } = start({ [V6]: { udp: byName } });
    const outcomes = await Promise.all(
      Array.from({ length: 500 }, (_, at) => client.query(`n${at}.example`, "AAAA")),
    );
    const values = outcomes.map((outcome) => "records" in outcome && outcome.records[0]?.value);
    expect(values).toEqual(
      values.map((_, at) => `2001:db8::${at.toString(16)}`).with(0, "2001:db8::"),
    );
    expect(network.mostOpen).toBe(256);
    expect(client.openSockets).toBe(0);
  });

  test("a dead first server does not starve the second, however many ask", async () => {
    const { client, clock, network } = start(
      { [V6]: {}, [V4]: { udp: answers } },
      { maxOpenSockets: 8 },
    );
    const all = Promise.all(Array.from({ length: 40 }, (_, at) => client.query(`n${at}`, "AAAA")));
    await clock.advance(4900);
    expect((await all).map(({ kind }) => kind)).toEqual(Array(40).fill("answer"));
    expect(network.mostOpen).toBe(8);
    expect(client.openSockets).toBe(0);
  });

  test("truncated answers do not starve each other of the socket for TCP", async () => {
    const { client, network } = start(
      { [V6]: { udp: truncates, tcp: answers } },
      { maxOpenSockets: 2 },
    );
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, at) => client.query(`n${at}`, "AAAA")),
    );
    expect(all.map(({ kind }) => kind)).toEqual(Array(20).fill("answer"));
    expect(network.mostOpen).toBe(2);
  });

  test("what was begun ends before something else begins", async () => {
    const { client, network } = start(
      { [V6]: { udp: truncates, tcp: answers } },
      { maxOpenSockets: 1 },
    );
    await Promise.all(["a", "b", "c"].map((name) => client.query(name, "AAAA")));
    expect(
      network.arrivals.map(
        ({ transport, query }) => `${askedName(query).toLowerCase()} ${transport}`,
      ),
    ).toEqual(["a. udp", "a. tcp", "b. udp", "b. tcp", "c. udp", "c. tcp"]);
  });

  test("who waits for one waits to the deadline and no longer", async () => {
    const { client, ask, clock } = start({ [V6]: {} }, { maxOpenSockets: 1 });
    client.query("first", "AAAA");
    client.query("second", "AAAA", { timeoutMs: 9000 });
    expect(await ask("third", "AAAA", 5000)).toEqual({ kind: "timeout", queryTimeMs: 5000 });
    await clock.advance(4000);
    expect(client.openSockets).toBe(0);
  });

  test("a socket that cannot be opened is an outcome", async () => {
    const full = async () => {
      throw Object.assign(new Error("too many"), { code: "EMFILE" });
    };
    const { ask, client } = start({ [V6]: {} }, { sockets: { openUdp: full, openTcp: full } });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "unreachable", reason: "EMFILE" });
    expect(client.openSockets).toBe(0);
  });

  test("a bug is thrown, and closes them all the same", async () => {
    const { client } = start(
      { [V6]: {} },
      {
        sockets: {
          openUdp: async () => {
            throw new TypeError("a bug");
          },
          openTcp: async () => {
            throw new TypeError("a bug");
          },
        },
      },
    );
    expect(client.query("a", "AAAA")).rejects.toThrow("a bug");
    await settle();
    expect(client.openSockets).toBe(0);
  });
});

describe("the same question at the same time", () => {
  test("is asked once", async () => {
    const { client, network } = start({ [V6]: { udp: answers } });
    const all = await Promise.all(Array.from({ length: 10 }, () => client.query("a", "AAAA")));
    expect(all.map(({ kind }) => kind)).toEqual(Array(10).fill("answer"));
    expect(network.arrivals).toHaveLength(1);
  });

  test("in other case, of another type or with another time is asked for itself", async () => {
    const { client, network } = start({ [V6]: { udp: answers } });
    await Promise.all([
      client.query("a", "AAAA"),
      client.query("A", "AAAA"),
      client.query("a", "A"),
      client.query("a", "AAAA", { timeoutMs: 1000 }),
    ]);
    expect(network.arrivals).toHaveLength(4);
  });

  test("is asked anew for who comes later and has more time", async () => {
    const { client, clock, network } = start({ [V6]: {} });
    const early = client.query("a", "AAAA");
    await clock.advance(4900);
    const late = client.query("a", "AAAA");
    await settle();
    const { query, answer } = network.arrivals.at(-1) as Arrival;
    await clock.advance(200);
    answer(answers(query, 0) as Uint8Array);
    expect(await early).toEqual({ kind: "timeout", queryTimeMs: 5000 });
    expect(await late).toMatchObject({ kind: "answer", queryTimeMs: 200 });
  });

  test("goes on for those who stay when one leaves, and ends with the last", async () => {
    const { client, clock } = start({ [V6]: {} });
    const [one, other] = [new AbortController(), new AbortController()];
    const first = client.query("a", "AAAA", { signal: one.signal });
    const second = client.query("a", "AAAA", { signal: other.signal });
    await clock.advance(1500);
    one.abort();
    expect(await first).toEqual({ kind: "aborted", queryTimeMs: 1500 });
    await settle();
    expect(client.openSockets).toBe(2);
    other.abort();
    expect(await second).toEqual({ kind: "aborted", queryTimeMs: 1500 });
    await settle();
    expect(client.openSockets).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test("is not asked at all for one who has left", async () => {
    const { client, network } = start({ [V6]: { udp: answers } });
    const signal = AbortSignal.abort();
    expect(await client.query("a", "AAAA", { signal })).toEqual({
      kind: "aborted",
      queryTimeMs: 0,
    });
    expect(network.arrivals).toHaveLength(0);
  });
});

describe("wrong input is thrown", () => {
  test.each(["", "a..b", "a".repeat(64), "\\256"])("the name %p", (name) => {
    const { client } = start({ [V6]: { udp: answers } });
    expect(client.query(name, "AAAA")).rejects.toThrow(DnsFormatError);
  });

  test.each([0, 17])("%d servers", (count) => {
    const servers = Array.from({ length: count }, () => tryParseSocketAddress(V6) as SocketAddress);
    expect(() => createDnsClient({ servers })).toThrow(RangeError);
  });
});

describe("lookups", () => {
  const address = parseIpv6("2001:db8::1");
  test("the addresses of a name, behind a chain", async () => {
    const { client } = start({
      [V6]: { udp: replies({ answers: [cname("a.", "b."), aaaa("b.", "2001:db8::1")] }) },
    });
    const { outcome, addresses } = await lookupAddresses(client, "a");
    expect([outcome.kind, addresses]).toEqual(["answer", [address]]);
  });

  test.each([
    ["no data", replies({ answers: [cname("a.", "b.")] }), "no-data"],
    ["no name", replies({ rcode: 3 }), "name-error"],
    ["a failure", replies({ rcode: 2 }), "failure"],
  ])("no addresses: %s", async (_, udp, kind) => {
    const { client } = start({ [V6]: { udp } });
    const { outcome, addresses } = await lookupAddresses(client, "a");
    expect([outcome.kind, addresses]).toEqual([kind, []] as never);
  });

  test("the name of an address, without the final dot, by its reverse name", async () => {
    const { client, network } = start({
      [V6]: {
        udp: (query) =>
          replyTo(query, {
            answers: [{ owner: askedName(query), type: "PTR", ttl: 1, data: "Hop-1.example." }],
          }),
      },
    });
    expect(await lookupHostname(client, address)).toBe("Hop-1.example");
    expect(askedName(network.arrivals[0]?.query as Uint8Array)).toBe(
      "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.",
    );
  });

  test("no name: null", async () => {
    const { client } = start({ [V6]: { udp: replies({ rcode: 3 }) } });
    expect(await lookupHostname(client, address)).toBeNull();
  });

  test("no answer: null after two seconds", async () => {
    const { client, clock } = start({ [V6]: {} });
    let name: string | null | undefined;
    lookupHostname(client, address).then((value) => {
      name = value;
    });
    await clock.advance(1999);
    expect(name).toBeUndefined();
    await clock.advance(1);
    expect(name).toBeNull();
    expect(client.openSockets).toBe(0);
  });

  test("a hop's name is not waited for when its trace ends", async () => {
    const { client } = start({ [V6]: {} });
    const controller = new AbortController();
    const name = lookupHostname(client, address, { signal: controller.signal });
    controller.abort();
    expect(await name).toBeNull();
  });
});
