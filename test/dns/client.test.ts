import { describe, expect, test } from "bun:test";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import {
  createDnsClient,
  type DnsClientOptions,
  lookupAddresses,
  lookupHostname,
} from "../../src/dns/client.ts";
import { FLAG } from "../../src/dns/message/message.ts";
import { DnsFormatError } from "../../src/dns/message/name.ts";
import type { RecordType } from "../../src/dns/message/record.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { FakeClock, settle } from "../util/fake-clock.ts";
import { type Arrival, type Behaviour, FakeNetwork } from "./fake-network.ts";
import {
  aaaa,
  askedName,
  cname,
  hasEdns,
  idOf,
  replyTo,
  swellingReply,
  type TestMessage,
  withAuthority,
  withDname,
} from "./messages.ts";

const V6 = "[2001:db8::53]:53";
const V6_TOO = "[2001:db8::54]:53";
const V4 = "192.0.2.53:53";

const RESPONSE = FLAG.response;

const silent: Behaviour = () => null;
const refuses: Behaviour = () => "ECONNREFUSED";
const answers: Behaviour = (query) =>
  replyTo(query, { answers: [aaaa(askedName(query), "2001:db8::1")] });
const replies =
  (changes: Partial<TestMessage>): Behaviour =>
  (query) =>
    replyTo(query, changes);
const truncates = replies({ flags: RESPONSE | FLAG.truncated });
const otherId: Behaviour = (query) => replyTo(query, { id: idOf(query) ^ 1 });
/** Answers in lower case, or in upper case if the question is in lower case already. */
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
  const network = new FakeNetwork(servers, clock);
  const client = createDnsClient({
    servers: Object.keys(servers).map((text) => tryParseSocketAddress(text) as SocketAddress),
    sockets: network,
    clock,
    ...options,
  });
  /** Asks, advances the clock, and returns the outcome, or undefined before it exists. */
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
  test("has everything that the server said about an answer", async () => {
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
      question: { name: "a.", type: "AAAA" },
      queryTimeMs: 0,
      attempts: [{ server: V6, transport: "udp", ms: 0, outcome: "NOERROR" }],
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
    const { ask, network } = start({ [V6]: { udp } });
    expect(await ask("a", "AAAA")).toMatchObject(expected);
    expect(network.openCount).toBe(0);
  });

  test.each<[string, Behaviour[], string]>([
    [
      "a failure is preferred to an unreachable server",
      [refuses, replies({ rcode: 2 })],
      "failure",
    ],
    [
      "a failure is preferred to a malformed response",
      [(query) => replyTo(query).with(7, 1), replies({ rcode: 5 })],
      "failure",
    ],
    ["the first failure is reported", [replies({ rcode: 5 }), replies({ rcode: 2 })], "REFUSED"],
    ["an answer is preferred to any failure", [replies({ rcode: 5 }), answers], "answer"],
  ])("%s", async (_, [first, second], expected) => {
    const { ask } = start({
      [V6]: { udp: first as Behaviour },
      [V6_TOO]: { udp: second as Behaviour },
    });
    const outcome = await ask("a", "AAAA");
    expect([outcome?.kind, outcome && "rcode" in outcome && outcome.rcode]).toContain(expected);
  });

  test("is a failure if one server failed and the other stayed silent", async () => {
    const { ask } = start({ [V6]: { udp: replies({ rcode: 2 }) }, [V4]: { udp: silent } });
    expect(await ask("a", "AAAA", 4999)).toBeUndefined();
    expect(await ask("b", "AAAA", 5000)).toMatchObject({ kind: "failure", queryTimeMs: 5000 });
  });

  test("is a timeout if TCP has not confirmed a response in another case by the deadline", async () => {
    const { ask, network } = start({ [V6]: { udp: folds, tcp: silent } });
    expect(await ask("www.example", "AAAA", 500, 500)).toMatchObject({ kind: "timeout" });
    expect(network.openCount).toBe(0);
  });

  test("is a timeout if one server was unreachable and the other silent", async () => {
    const { ask } = start({ [V6]: { udp: refuses }, [V4]: { udp: silent } });
    expect(await ask("a", "AAAA", 5000)).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
  });
});

describe("the deadline holds to the millisecond whatever a server does", () => {
  test.each<[string, { udp: Behaviour; tcp?: Behaviour }]>([
    ["silence", { udp: silent }],
    ["truncation, then silence over TCP", { udp: truncates, tcp: silent }],
    ["a forged ID, then silence over TCP", { udp: otherId, tcp: silent }],
    ["only datagrams that do not match", { udp: replies({ flags: 0 }) }],
    [
      "FORMERR to EDNS, then silence",
      {
        udp: (query) => (hasEdns(query) ? replyTo(query, { rcode: 1, edns: null }) : null),
      },
    ],
  ])("%s", async (_, behaviour) => {
    const { ask, network, clock } = start({ [V6]: behaviour });
    expect(await ask("a", "AAAA", 4999)).toBeUndefined();
    expect(network.openCount).toBeGreaterThan(0);
    // An answer to the second attempt would still show that the server is alive.
    await clock.advance(1001);
    expect(network.openCount).toBe(0);
    const again = start({ [V6]: behaviour });
    expect(await again.ask("a", "AAAA", 5000)).toMatchObject({
      kind: "timeout",
      queryTimeMs: 5000,
    });
    await again.clock.advance(5000);
    expect(again.clock.pending).toBe(0);
  });

  test("with a timeout of its own", async () => {
    const { ask } = start({ [V6]: { udp: silent } });
    expect(await ask("a", "AAAA", 1499, 1500)).toBeUndefined();
    const again = start({ [V6]: { udp: silent } });
    expect(await again.ask("b", "AAAA", 1500, 1500)).toMatchObject({
      kind: "timeout",
      queryTimeMs: 1500,
    });
  });
});

describe("TCP", () => {
  test("follows a truncated answer, at the same server", async () => {
    const { ask, network } = start({
      [V6]: { udp: truncates, tcp: answers },
      [V4]: { udp: answers },
    });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "answer", transport: "tcp", server: V6 });
    expect(network.asked()).toEqual([`${V6} udp`, `${V6} tcp`]);
  });

  test("refused after truncation: the truncated answer is not used", async () => {
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

  test("decides if the case of a response differs", async () => {
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
  ])("%s: the response in another case is used", async (_, tcp, afterMs) => {
    const { ask, network, clock } = start({ [V6]: { udp: folds, tcp } });
    expect(await ask("www.example", "AAAA", afterMs)).toMatchObject({
      kind: "answer",
      transport: "udp",
      records: [{ value: "2001:db8::f" }],
      queryTimeMs: afterMs,
    });
    expect(network.openCount).toBe(0);
    await clock.advance(5000);
    expect(clock.pending).toBe(0);
  });
});

describe("a server that makes names from the question's name", () => {
  /** Like a DNAME: replaces `old.example` by `new.example` and keeps the labels before it as they were sent. */
  const synthesizes: Behaviour = (query) => {
    const asked = askedName(query);
    const target = asked.replace(/old\.example\.$/i, "New.Example.");
    const reply = replyTo(query, { answers: [cname(asked, target), aaaa(target, "2001:db8::1")] });
    return withDname(reply);
  };

  test.each([
    ["plain letters", "abcdefghijkl.old.example", "abcdefghijkl.new.example."],
    ["several labels", "abcdef.GHIJKL.old.example", "abcdef.ghijkl.new.example."],
    ["escapes", "ab\\.cd.e\\\\f\\200gh.old.example", "ab\\.cd.e\\\\f\\200gh.new.example."],
  ])("the answer is in lower case: %s", async (_, name, target) => {
    for (let times = 0; times < 5; times++) {
      const { ask } = start({ [V6]: { udp: synthesizes } });
      expect(await ask(name, "AAAA")).toMatchObject({
        records: [{ type: "CNAME", value: target }, { value: "2001:db8::1" }],
      });
    }
  });

  test("an alias that has nothing to do with the question keeps its case", async () => {
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
  test.each<[string, ("NS" | "SOA")[], Partial<TestMessage>, string]>([
    ["to other servers is not an answer", ["NS"], {}, "REFERRAL"],
    ["with an SOA is not a referral", ["SOA", "NS"], {}, "no-data"],
    ["without any server is not a referral", [], {}, "no-data"],
    [
      "from an authoritative server is not a referral",
      ["NS"],
      { flags: RESPONSE | FLAG.authoritative },
      "no-data",
    ],
    [
      "from a recursive server is not a referral",
      ["NS"],
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
    const refers: Behaviour = (query) => withAuthority(replyTo(query, { flags: RESPONSE }), ["NS"]);
    const { ask } = start({ [V6]: { udp: refers }, [V4]: { udp: answers } });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "answer", server: V4 });
  });
});

describe("EDNS", () => {
  test.each<[string, Partial<TestMessage>]>([
    ["FORMERR without OPT", { rcode: 1, edns: null }],
    ["NOTIMP without OPT", { rcode: 4, edns: null }],
    ["FORMERR without a question", { rcode: 1, edns: null, question: null }],
    ["BADVERS", { rcode: 16 }],
  ])("%s: the same server is asked once more without EDNS", async (_, refusal) => {
    const { ask, network } = start({
      [V6]: {
        udp: (query) => (hasEdns(query) ? replyTo(query, refusal) : answers(query)),
      },
    });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "answer", server: V6 });
    expect(network.arrivals.map(({ query }) => hasEdns(query))).toEqual([true, false]);
  });

  test("a server that drops it is asked without it at last, and the attempt says so", async () => {
    const udp: Behaviour = (query) => (hasEdns(query) ? null : answers(query));
    const { ask, network } = start({ [V6]: { udp } });
    expect(await ask("a", "AAAA", 2500)).toMatchObject({
      kind: "answer",
      attempts: [
        { outcome: "timeout" },
        { outcome: "timeout" },
        { outcome: "NOERROR without EDNS" },
      ],
    });
    expect(network.arrivals.map(({ query }) => hasEdns(query))).toEqual([true, true, false]);
  });

  test("a question for signatures is never asked without it, because the answer would have none", async () => {
    const { client, clock, network } = start({ [V6]: {} });
    const outcome = await clock.run(client.query("a", "AAAA", { dnssec: true }));
    expect(outcome.kind).toBe("timeout");
    expect(network.arrivals.map(({ query }) => hasEdns(query))).toEqual([true, true, true]);
  });

  test("a server that says FORMERR to both is not asked again", async () => {
    const { ask, network } = start({ [V6]: { udp: replies({ rcode: 1, edns: null }) } });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "failure", rcode: "FORMERR" });
    expect(network.arrivals).toHaveLength(2);
  });

  test.each<[string, Partial<TestMessage>]>([
    ["FORMERR with OPT", { rcode: 1 }],
    ["SERVFAIL without OPT", { rcode: 2, edns: null }],
  ])("%s: the server is not asked without EDNS", async (_, reply) => {
    const { ask, network } = start({ [V6]: { udp: replies(reply) } });
    await ask("a", "AAAA");
    expect(network.arrivals).toHaveLength(1);
  });
});

describe("several servers", () => {
  test("if the first is dead, the second is asked after a second", async () => {
    const { ask } = start({ [V6]: {}, [V4]: { udp: answers }, [V6_TOO]: {} });
    expect(await ask("a", "AAAA", 1000)).toMatchObject({
      kind: "answer",
      server: V4,
      queryTimeMs: 1000,
    });
  });

  test("one that is unreachable is followed by the next at once", async () => {
    const { ask } = start({ [V6]: { udp: refuses }, [V4]: { udp: answers } });
    expect(await ask("a", "AAAA")).toMatchObject({ kind: "answer", server: V4, queryTimeMs: 0 });
  });

  test("a late answer to the first attempt wins over the silence of the second", async () => {
    const { clock, network, client } = start({ [V6]: {}, [V4]: {} });
    const outcome = client.query("a", "AAAA");
    await clock.advance(1500);
    const first = network.arrivals[0] as Arrival;
    first.answer(answers(first.query) as Uint8Array);
    expect(await outcome).toMatchObject({ kind: "answer", server: V6, queryTimeMs: 1500 });
  });
});

describe("many questions", () => {
  test("500 at once are all answered right, with at most 128 sockets", async () => {
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
    // Half of the permits of one owner.
    expect(network.mostOpen).toBe(128);
    expect(network.openCount).toBe(0);
  });

  test("a dead first server does not starve the second", async () => {
    const { client, clock, network } = start(
      { [V6]: {}, [V4]: { udp: answers } },
      { maxQuestions: 8 },
    );
    const all = Promise.all(Array.from({ length: 40 }, (_, at) => client.query(`n${at}`, "AAAA")));
    await clock.advance(4900);
    expect((await all).map(({ kind }) => kind)).toEqual(Array(40).fill("answer"));
    // At most two attempts for each question.
    expect(network.mostOpen).toBeLessThanOrEqual(16);
    await clock.advance(1000);
    expect(network.openCount).toBe(0);
  });

  test("truncated answers do not starve each other of the socket for TCP", async () => {
    const { client, network } = start(
      { [V6]: { udp: truncates, tcp: answers } },
      { maxQuestions: 4 },
    );
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, at) => client.query(`n${at}`, "AAAA")),
    );
    expect(all.map(({ kind }) => kind)).toEqual(Array(20).fill("answer"));
    expect(network.mostOpen).toBe(2);
  });

  test("a question ends before the next one begins", async () => {
    const { client, network } = start(
      { [V6]: { udp: truncates, tcp: answers } },
      { maxQuestions: 1 },
    );
    await Promise.all(["a", "b", "c"].map((name) => client.query(name, "AAAA")));
    expect(
      network.arrivals.map(
        ({ transport, query }) => `${askedName(query).toLowerCase()} ${transport}`,
      ),
    ).toEqual(["a. udp", "a. tcp", "b. udp", "b. tcp", "c. udp", "c. tcp"]);
  });

  test("one that waits for its turn ends at its deadline", async () => {
    const { client, network, ask, clock } = start({ [V6]: {} }, { maxQuestions: 1 });
    client.query("first", "AAAA");
    client.query("second", "AAAA", { timeoutMs: 9000 });
    expect(await ask("third", "AAAA", 5000)).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
    await clock.advance(9000);
    expect(network.openCount).toBe(0);
  });

  test("a socket that cannot be opened is an outcome", async () => {
    const full = async () => {
      throw Object.assign(new Error("too many"), { code: "EMFILE" });
    };
    const { client } = start({ [V6]: {} }, { sockets: { open: full }, maxQuestions: 1 });
    for (const name of ["a", "b"]) {
      expect(await client.query(name, "AAAA")).toMatchObject({
        kind: "unreachable",
        reason: "EMFILE",
      });
    }
  });

  test("an unexpected error is thrown, and ends the question", async () => {
    const broken = async () => {
      throw new TypeError("a bug");
    };
    const { client, clock } = start({ [V6]: {} }, { sockets: { open: broken }, maxQuestions: 1 });
    for (const name of ["a", "b"]) {
      await expect(client.query(name, "AAAA")).rejects.toThrow("a bug");
    }
    expect(clock.pending).toBe(0);
  });
});

describe("the caller's signal", () => {
  test("ends its own question and no other", async () => {
    const { client, clock, network } = start({ [V6]: {} });
    const [one, other] = [new AbortController(), new AbortController()];
    const first = client.query("a", "AAAA", { signal: one.signal });
    const second = client.query("a", "AAAA", { signal: other.signal });
    await clock.advance(1500);
    expect(network.openCount).toBe(4);
    one.abort();
    expect(await first).toMatchObject({ kind: "aborted", queryTimeMs: 1500 });
    await settle();
    expect(network.openCount).toBe(2);
    other.abort();
    expect(await second).toMatchObject({ kind: "aborted", queryTimeMs: 1500 });
    await settle();
    expect(network.openCount).toBe(0);
    await clock.advance(5000);
    expect(network.openCount).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test("ends a question that waits for its turn", async () => {
    const { client, clock, network } = start({ [V6]: {} }, { maxQuestions: 1 });
    client.query("first", "AAAA");
    const controller = new AbortController();
    const waiting = client.query("second", "AAAA", { signal: controller.signal });
    await clock.advance(10);
    controller.abort();
    expect(await waiting).toMatchObject({ kind: "aborted", queryTimeMs: 10 });
    await clock.advance(5000);
    expect(network.arrivals.map(({ query }) => askedName(query).toLowerCase())).toEqual(
      Array(3).fill("first."),
    );
    await clock.advance(5000);
    expect(clock.pending).toBe(0);
  });

  test("ends a question that is admitted in the same moment", async () => {
    const { client, clock, network } = start({ [V6]: {} }, { maxQuestions: 1 });
    const [one, other] = [new AbortController(), new AbortController()];
    const first = client.query("first", "AAAA", { signal: one.signal });
    const second = client.query("second", "AAAA", { signal: other.signal });
    await settle();
    one.abort();
    await first;
    other.abort();
    expect(await second).toMatchObject({ kind: "aborted" });
    expect(network.openCount).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test("aborted before: the question is not asked", async () => {
    const { client, network } = start({ [V6]: { udp: answers } });
    const signal = AbortSignal.abort();
    expect(await client.query("a", "AAAA", { signal })).toEqual({
      kind: "aborted",
      question: { name: "a.", type: "AAAA" },
      queryTimeMs: 0,
      attempts: [],
    });
    expect(network.arrivals).toHaveLength(0);
  });
});

describe("invalid input throws", () => {
  test.each(["", "a..b", "a".repeat(64), "\\256"])("the name %p", (name) => {
    const { client } = start({ [V6]: { udp: answers } });
    expect(client.query(name, "AAAA")).rejects.toThrow(DnsFormatError);
  });

  test("17 servers", () => {
    const servers = Array.from({ length: 17 }, () => tryParseSocketAddress(V6) as SocketAddress);
    expect(() => createDnsClient({ servers })).toThrow(RangeError);
  });
});

test("a resolver without servers is asked nothing", async () => {
  const { client, network } = start({});
  expect(await client.query("a.test", "TXT", { class: "CH" })).toEqual({
    kind: "unreachable",
    rcode: "UNREACHABLE",
    reason: "resolvers-none",
    authenticated: false,
    extendedErrors: [],
    records: [],
    question: { name: "a.test.", type: "TXT", class: "CH" },
    queryTimeMs: 0,
    attempts: [],
  });
  expect(network.arrivals).toHaveLength(0);
});

describe("the values of one answer", () => {
  // A message of 64 KB with compressed names can have 4.5 MB in presentation form.
  test("have at most 262,144 characters", async () => {
    const ask = (count: number) =>
      start({ [V6]: { udp: (query) => swellingReply(query, count) } }).ask("a", "NS");
    const most = await ask(512);
    const values = most && "records" in most ? most.records.map(({ value }) => value) : [];
    expect(values.join("")).toHaveLength(262_144);
    expect(await ask(513)).toMatchObject({ kind: "failure", rcode: "TOO_LARGE" });
  });

  test("may be the largest TXT record with nothing but escapes", async () => {
    const value = Array(254)
      .fill(`"${"\\000".repeat(255)}"`)
      .join(" ");
    const records = [{ type: "TXT", value, ttl: 300 }] as const;
    const { ask } = start({
      [V6]: { udp: replies({ answers: [{ owner: "a.", ...records[0] }] }) },
    });
    expect(await ask("a", "TXT")).toMatchObject({ kind: "answer", records });
  });
});

describe("lookups", () => {
  const address = parseIpv6("2001:db8::1");
  test("the addresses of a name at the end of a chain", async () => {
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
            answers: [{ owner: askedName(query), type: "PTR", ttl: 1, value: "Hop-1.example." }],
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
    const { client, clock, network } = start({ [V6]: {} });
    let name: string | null | undefined;
    lookupHostname(client, address).then((value) => {
      name = value;
    });
    await clock.advance(1999);
    expect(name).toBeUndefined();
    await clock.advance(1);
    expect(name).toBeNull();
    await clock.advance(5000);
    expect(network.openCount).toBe(0);
  });

  test("no answer before the signal: null", async () => {
    const { client } = start({ [V6]: {} });
    const controller = new AbortController();
    const name = lookupHostname(client, address, { signal: controller.signal });
    controller.abort();
    expect(await name).toBeNull();
  });
});
