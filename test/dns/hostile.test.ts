import { afterEach, describe, expect, test } from "bun:test";
import { createDnsClient } from "../../src/dns/client.ts";
import { FLAG } from "../../src/dns/message/message.ts";
import type { DnsOutcome } from "../../src/dns/outcome.ts";
import { frameMessage } from "../../src/dns/transport/stream.ts";
import { FakeClock, settle } from "../util/fake-clock.ts";
import { CountedSockets } from "./fake-network.ts";
import { type HostileServer, type Manners, startHostileServer } from "./hostile-server.ts";
import {
  aaaa,
  askedName,
  cname,
  hasEdns,
  hex,
  idOf,
  questionOf,
  replyTo,
  swellingReply,
  type TestMessage,
} from "./messages.ts";

/*
 * Real sockets on the loopback interface, and a server that attacks. The clock moves only when a test
 * advances it, so that no outcome depends on a later attempt or on the deadline by chance.
 */

const TRUE = "2001:db8::1";
const FORGED = "2001:db8:bad::";

const truth = (query: Uint8Array, changes: Partial<TestMessage> = {}) =>
  replyTo(query, { answers: [aaaa(askedName(query), TRUE)], ...changes });
const forgery = (query: Uint8Array, changes: Partial<TestMessage> = {}) =>
  truth(query, { answers: [aaaa(askedName(query), FORGED)], ...changes });
const otherId = (query: Uint8Array) => ({ id: idOf(query) ^ 0x5555 });
const otherQuestion = (query: Uint8Array, changes: object) => ({
  question: { ...questionOf(query), ...changes },
});
const TRUNCATED = { flags: FLAG.response | FLAG.truncated };

/** A response with these bytes for the header's record counts and after the question. */
function raw(query: Uint8Array, counts: string, records: string): Uint8Array {
  const head = replyTo(query, { edns: null });
  head.set(hex(counts), 6);
  return Uint8Array.from([...head, ...hex(records)]);
}

const running: HostileServer[] = [];
afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
});

async function start(...manners: Manners[]) {
  const servers: HostileServer[] = [];
  for (const one of manners) servers.push(await startHostileServer(one));
  running.push(...servers);
  const clock = new FakeClock();
  const sockets = new CountedSockets();
  const client = createDnsClient({
    servers: servers.map(({ endpoint }) => endpoint),
    sockets,
    clock,
  });
  return { client, clock, sockets, servers };
}

/** The addresses of an answer, or the kind of any other outcome. */
function shown(outcome: DnsOutcome): string {
  return outcome.kind === "answer"
    ? outcome.records.map(({ value }) => value).join(" ")
    : outcome.kind;
}

const tellTruth: Manners["udp"] = ({ query, reply }) => reply(truth(query));
const tellTruthOverTcp: Manners["tcp"] = (query, connection) => {
  connection.write(frameMessage(truth(query)));
};

describe("the client finds the answer", () => {
  test.each<[string, Manners]>([
    ["without any attack", { udp: tellTruth }],
    [
      "after a wrong ID, over TCP",
      {
        udp({ query, reply }) {
          reply(forgery(query, otherId(query)));
          reply(truth(query));
        },
        tcp: tellTruthOverTcp,
      },
    ],
    [
      "over TCP, where a flood keeps it from arriving over UDP",
      {
        udp({ reply }) {
          for (let times = 0; times < 50; times++) reply(new Uint8Array(40));
        },
        tcp: tellTruthOverTcp,
      },
    ],
    [
      "after another name",
      {
        udp({ query, reply }) {
          reply(forgery(query, otherQuestion(query, { name: "evil.example." })));
          reply(truth(query));
        },
      },
    ],
    [
      "after another type and another class",
      {
        udp({ query, reply }) {
          reply(forgery(query, otherQuestion(query, { type: 1 })));
          reply(forgery(query, otherQuestion(query, { class: 3 })));
          reply(truth(query));
        },
      },
    ],
    [
      "after QR=0 and the query itself",
      {
        udp({ query, reply }) {
          reply(forgery(query, { flags: 0 }));
          reply(query);
          reply(truth(query));
        },
      },
    ],
    [
      "after another opcode",
      {
        udp({ query, reply }) {
          reply(forgery(query, { flags: FLAG.response | 0x2000 }));
          reply(truth(query));
        },
      },
    ],
    [
      "after seven datagrams of garbage",
      {
        udp({ query, reply }) {
          for (let length = 0; length < 70; length += 10) {
            reply(crypto.getRandomValues(new Uint8Array(length)));
          }
          reply(truth(query));
        },
      },
    ],
    [
      "after seven datagrams that are cut inside the question",
      {
        udp({ query, reply }) {
          // One byte more is a malformed answer.
          for (let at = 0; at < 7; at++) reply(truth(query).subarray(0, 12 + 2 * at));
          reply(truth(query));
        },
      },
    ],
    [
      "three times",
      {
        udp({ query, reply }) {
          for (let times = 0; times < 3; times++) reply(truth(query));
        },
      },
    ],
    [
      "after a forgery from another port",
      {
        async udp({ query, reply, replyFromElsewhere }) {
          replyFromElsewhere(forgery(query));
          await Bun.sleep(20);
          reply(truth(query));
        },
      },
    ],
    [
      "in another case, over TCP",
      {
        udp: ({ query, reply }) => {
          reply(forgery(query, otherQuestion(query, { name: swapCase(askedName(query)) })));
        },
        tcp: tellTruthOverTcp,
      },
    ],
    [
      "in another case, from a server without TCP",
      {
        udp: ({ query, reply }) =>
          reply(truth(query, otherQuestion(query, { name: swapCase(askedName(query)) }))),
      },
    ],
    [
      "among unrelated records",
      {
        udp: ({ query, reply }) =>
          reply(
            truth(query, {
              answers: [
                aaaa("evil.example.", FORGED),
                cname("evil.example.", askedName(query)),
                aaaa(askedName(query), TRUE),
                aaaa(`x.${askedName(query)}`, FORGED),
              ],
            }),
          ),
      },
    ],
    [
      "truncated, over TCP",
      { udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)), tcp: tellTruthOverTcp },
    ],
    [
      "byte by byte over TCP",
      {
        udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)),
        async tcp(query, connection) {
          connection.setNoDelay(true);
          for (const byte of frameMessage(truth(query))) {
            connection.write(Uint8Array.of(byte));
            await settle();
          }
        },
      },
    ],
    [
      "followed by more bytes and the end of the connection, over TCP",
      {
        udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)),
        tcp(query, connection) {
          connection.end(
            Uint8Array.from([...frameMessage(truth(query)), ...frameMessage(forgery(query))]),
          );
        },
      },
    ],
    [
      "without EDNS after FORMERR",
      {
        udp: ({ query, reply }) =>
          reply(
            hasEdns(query)
              ? replyTo(query, { rcode: 1, edns: null, question: null })
              : truth(query),
          ),
      },
    ],
    [
      "without EDNS after BADVERS",
      {
        udp: ({ query, reply }) =>
          reply(hasEdns(query) ? replyTo(query, { rcode: 16 }) : truth(query)),
      },
    ],
  ])("%s", async (_, manners) => {
    const { client, sockets } = await start(manners);
    expect(shown(await client.query("www.example", "AAAA"))).toBe(TRUE);
    expect(sockets.openCount).toBe(0);
  });

  test("in a late response to an earlier attempt", async () => {
    let first: Uint8Array = new Uint8Array();
    const { client, clock, sockets } = await start({
      udp({ query, index, replyTo: replyToEarlier }) {
        // The first query stays unanswered until the second has come.
        if (index === 0) first = query;
        else replyToEarlier(0, truth(first));
      },
    });
    const outcome = client.query("www.example", "AAAA");
    await clock.advance(1000);
    expect(shown(await outcome)).toBe(TRUE);
    expect(sockets.openCount).toBe(0);
  });

  test.each([
    ["FORMERR", 1],
    ["SERVFAIL", 2],
    ["NOTIMP", 4],
    ["REFUSED", 5],
  ])("at the next server, after a %s without a question", async (_, rcode) => {
    const { client, servers } = await start(
      { udp: ({ query, reply }) => reply(replyTo(query, { rcode, question: null, edns: null })) },
      { udp: tellTruth },
    );
    const outcome = await client.query("www.example", "AAAA");
    expect(shown(outcome)).toBe(TRUE);
    expect("server" in outcome && outcome.server).toBe(`[::1]:${servers[1]?.endpoint.port}`);
  });

  test.each<[string, (query: Uint8Array) => Uint8Array]>([
    ["a malformed reply", (query) => raw(query, "ffff 0000 0000", "")],
    ["a loop", (query) => truth(query, { answers: [cname(askedName(query), askedName(query))] })],
  ])("at the next server, after %s", async (_, reply) => {
    const { client } = await start(
      { udp: (asked) => asked.reply(reply(asked.query)) },
      { udp: tellTruth },
    );
    expect(shown(await client.query("www.example", "AAAA"))).toBe(TRUE);
  });
});

describe("the client makes no answer from", () => {
  const address = hex(`20010db8 0bad0000 00000000 00000000`).toHex();
  test.each<[string, Manners, DnsOutcome["kind"]]>([
    [
      "endless garbage, if TCP is refused",
      {
        async udp({ reply }) {
          for (let times = 0; times < 2000; times++) {
            reply(crypto.getRandomValues(new Uint8Array(40)));
            if (times % 100 === 0) await settle();
          }
        },
      },
      "unreachable",
    ],
    [
      "a wrong ID, if TCP is refused",
      {
        udp({ query, reply }) {
          reply(forgery(query, otherId(query)));
          reply(forgery(query));
        },
      },
      "unreachable",
    ],
    [
      "a chain that is a loop",
      {
        udp: ({ query, reply }) =>
          reply(
            truth(query, {
              answers: [cname(askedName(query), "b."), cname("b.", "c."), cname("c.", "b.")],
            }),
          ),
      },
      "malformed",
    ],
    [
      "a name that points at itself",
      {
        udp: ({ query, reply }) =>
          reply(raw(query, "0001 0000 0000", `c01d 001c 0001 00000001 0010 ${address}`)),
      },
      "malformed",
    ],
    [
      "two names that point at each other",
      {
        udp: ({ query, reply }) =>
          reply(
            raw(
              query,
              "0002 0000 0000",
              "c02b 0005 0001 00000001 0002 c01d  c00c 0005 0001 00000001 0002 c02b",
            ),
          ),
      },
      "malformed",
    ],
    [
      "a name that points forward",
      {
        udp: ({ query, reply }) =>
          reply(raw(query, "0001 0000 0000", `c030 001c 0001 00000001 0010 ${address}`)),
      },
      "malformed",
    ],
    [
      "a name that points beyond the message",
      {
        udp: ({ query, reply }) =>
          reply(raw(query, "0001 0000 0000", `ffff 001c 0001 00000001 0010 ${address}`)),
      },
      "malformed",
    ],
    [
      "record counts of 65535",
      {
        udp: ({ query, reply }) =>
          reply(raw(query, "ffff ffff ffff", `c00c 001c 0001 00000001 0010 ${address}`)),
      },
      "malformed",
    ],
    [
      "data that is too short",
      {
        udp: ({ query, reply }) =>
          reply(raw(query, "0001 0000 0000", "c00c 001c 0001 00000001 0004 c0000201")),
      },
      "malformed",
    ],
    [
      "data that extends beyond the message",
      {
        udp: ({ query, reply }) =>
          reply(raw(query, "0001 0000 0000", "c00c 001c 0001 00000001 0010 2001")),
      },
      "malformed",
    ],
    [
      "two OPT records",
      {
        udp: ({ query, reply }) =>
          reply(
            raw(
              query,
              "0001 0000 0002",
              `c00c 001c 0001 00000001 0010 ${address} 00 0029 04d0 00000000 0000 00 0029 04d0 00000000 0000`,
            ),
          ),
      },
      "malformed",
    ],
    [
      "a truncated message, if TCP is refused",
      { udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)) },
      "unreachable",
    ],
    [
      "a message that ends in the middle, over TCP",
      {
        udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)),
        tcp: (query, connection) => {
          connection.end(frameMessage(forgery(query)).subarray(0, -5));
        },
      },
      "unreachable",
    ],
    [
      "a connection that the server resets",
      {
        udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)),
        tcp: (_, connection) => {
          connection.resetAndDestroy();
        },
      },
      "unreachable",
    ],
    [
      "a truncated message over TCP",
      {
        udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)),
        tcp: (query, connection) => {
          connection.write(frameMessage(forgery(query, TRUNCATED)));
        },
      },
      "malformed",
    ],
    [
      "another ID over TCP",
      {
        udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)),
        tcp: (query, connection) => {
          connection.write(frameMessage(forgery(query, otherId(query))));
        },
      },
      "malformed",
    ],
    [
      "only records of another owner",
      {
        udp: ({ query, reply }) =>
          reply(truth(query, { answers: [aaaa("evil.example.", FORGED)] })),
      },
      "no-data",
    ],
    [
      "NXDOMAIN with records",
      { udp: ({ query, reply }) => reply(forgery(query, { rcode: 3 })) },
      "name-error",
    ],
    [
      "a refusal with records",
      { udp: ({ query, reply }) => reply(forgery(query, { rcode: 5 })) },
      "failure",
    ],
  ])("%s", async (_, manners, kind) => {
    const { client, sockets } = await start(manners);
    expect((await client.query("www.example", "AAAA")).kind).toBe(kind);
    expect(sockets.openCount).toBe(0);
  });

  test.each<[string, Manners]>([
    ["silence", { udp() {} }],
    [
      "a forgery from another port",
      { udp: ({ query, replyFromElsewhere }) => replyFromElsewhere(forgery(query)) },
    ],
    [
      "NXDOMAIN without a question",
      { udp: ({ query, reply }) => reply(replyTo(query, { rcode: 3, question: null })) },
    ],
    [
      "a TCP server that accepts and stays silent",
      { udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)), tcp() {} },
    ],
    [
      "a TCP message without its last byte",
      {
        udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)),
        tcp: (query, connection) => {
          connection.write(frameMessage(forgery(query)).subarray(0, -1));
        },
      },
    ],
  ])("%s, until the deadline", async (_, manners) => {
    const { client, clock, sockets } = await start(manners);
    let outcome: DnsOutcome | undefined;
    const asked = client.query("www.example", "AAAA").then((value) => {
      outcome = value;
    });
    await clock.advance(2500);
    await Bun.sleep(50);
    await clock.advance(2499);
    expect(outcome).toBeUndefined();
    await clock.advance(1);
    await asked;
    expect(outcome).toMatchObject({ kind: "timeout", queryTimeMs: 5000 });
    expect(sockets.openCount).toBe(0);
  });
});

test("a small message with huge presentation forms is a failure", async () => {
  let bytes = 0;
  const { client, sockets } = await start({
    udp: ({ query, reply }) => reply(forgery(query, TRUNCATED)),
    tcp: (query, connection) => {
      const reply = swellingReply(query, 4600);
      bytes = reply.length;
      connection.write(frameMessage(reply));
    },
  });
  const { queryTimeMs, ...outcome } = await client.query("www.example", "NS");
  expect(bytes).toBeLessThan(65_536);
  expect(outcome as object).toEqual({
    kind: "failure",
    rcode: "TOO_LARGE",
    records: [],
    question: { name: "www.example.", type: "NS" },
    attempts: [expect.objectContaining({ transport: "tcp", outcome: "NOERROR" })],
    server: expect.any(String),
    transport: "tcp",
    authenticated: false,
    extendedErrors: [],
  });
  expect(sockets.openCount).toBe(0);
});

test("SERVFAIL has the extended errors of the server", async () => {
  const { client } = await start({
    udp: ({ query, reply }) =>
      reply(
        replyTo(query, {
          rcode: 2,
          edns: {
            payloadBytes: 1232,
            version: 0,
            dnssecOk: false,
            extendedErrors: [{ code: 22, text: "at delegation example." }, { code: 23 }],
          },
        }),
      ),
  });
  expect(await client.query("www.example", "AAAA")).toMatchObject({
    kind: "failure",
    rcode: "SERVFAIL",
    transport: "udp",
    extendedErrors: [
      { code: 22, name: "No Reachable Authority", text: "at delegation example." },
      { code: 23, name: "Network Error" },
    ],
  });
});

/** The name with the case of every letter changed. */
function swapCase(name: string): string {
  return name.replace(/[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );
}
