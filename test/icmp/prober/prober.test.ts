import { describe, expect, test } from "bun:test";
import {
  MAX_WAITING,
  NEIGHBOUR_MS,
  PACKETS_PER_SECOND,
  RETRY_MS,
} from "../../../src/gate/bounds.ts";
import {
  type Answer,
  MAX_PROBES,
  type ProbeRequest,
  Prober,
  type ProberOptions,
  QUARANTINE_MS,
  SWEEP_MS,
  TAG_MS,
} from "../../../src/icmp/prober/prober.ts";
import type { Response } from "../../../src/icmp/prober/response.ts";
import type { OutgoingPacket } from "../../../src/icmp/socket/socket.ts";
import { internetChecksum } from "../../../src/icmp/wire/packet.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { settle } from "../../util/fake-clock.ts";
import {
  echoReply,
  icmpError,
  type Network,
  ROUTER,
  SOURCE,
  simulate,
  TARGET,
  translatedError,
} from "../fake.ts";

const STRANGER = parseIpv6("2001:db8:bad::1");
/** On the same /64 as the source. */
const NEIGHBOUR = parseIpv6("2001:db8::99");

const REQUEST = {
  target: TARGET,
  scopeId: 0,
  source: SOURCE,
  flowLabel: 0x12345,
  hopLimit: 64,
  timeoutMs: 1000,
};

const silence: Network = () => [];

function start(network: Network = silence, options: Partial<ProberOptions> = {}) {
  const { clock, socket, options: simulated } = simulate(network);
  const prober = new Prober({ ...simulated, ...options });
  const caller = new AbortController();
  const answers: Answer[] = [];
  const responses: Response[] = [];
  /** Sends a probe; what comes of it is kept in `answers` and `responses`. */
  const probe = (request: Partial<ProbeRequest> = {}) => {
    const answer = prober.probe({
      ...REQUEST,
      signal: caller.signal,
      onResponse: (response) => responses.push(response),
      ...request,
    });
    void answer.then((settled) => answers.push(settled));
    return answer;
  };
  const deliver = (message: Uint8Array, source = TARGET, scopeId = 0) =>
    socket.deliver({ source, message, hopLimit: 60, scopeId, receivedMs: clock.nowMs() });
  const first = () => socket.sent[0] as OutgoingPacket;
  return { clock, socket, prober, caller, probe, answers, responses, deliver, first };
}

/** A copy with one byte changed. */
function spoil(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = (copy[at] as number) ^ 0xff;
  return copy;
}

const COOKIE_AT = 8;
const QUOTED = 48;

describe("which packet answers a probe", () => {
  const reply = echoReply;
  const exceeded = (packet: OutgoingPacket) => icmpError(packet, 3, 0);
  type Row = readonly [
    name: string,
    message: (packet: OutgoingPacket) => Uint8Array,
    from: typeof TARGET,
    counter: keyof Prober["counters"],
    events: number,
  ];
  const rows: readonly Row[] = [
    ["the target's reply", reply, TARGET, "answered", 1],
    [
      "a reply with another first cookie byte",
      (p) => spoil(reply(p), COOKIE_AT),
      TARGET,
      "forged",
      0,
    ],
    ["a reply with another last cookie byte", (p) => spoil(reply(p), 15), TARGET, "forged", 0],
    ["a reply that ends in the cookie", (p) => reply(p).subarray(0, 15), TARGET, "forged", 0],
    ["a reply without data", (p) => reply(p).subarray(0, 8), TARGET, "forged", 0],
    ["a right reply from another address", reply, STRANGER, "otherSource", 1],
    ["a reply with another sequence", (p) => spoil(reply(p), 7), TARGET, "unknown", 0],
    ["a reply with another tag", (p) => spoil(reply(p), 4), TARGET, "unknown", 0],
    ["a reply with another run", (p) => spoil(reply(p), 5), TARGET, "unknown", 0],
    ["a router's error", exceeded, ROUTER, "answered", 1],
    [
      "an error that quotes a foreign destination",
      (p) => icmpError(p, 3, 0, { destination: STRANGER }),
      ROUTER,
      "forged",
      0,
    ],
    ["an error with another cookie", (p) => spoil(exceeded(p), QUOTED + 8), ROUTER, "forged", 0],
    [
      "an error with part of another cookie",
      (p) => spoil(icmpError(p, 3, 0, { quoteBytes: 50 }), QUOTED + 9),
      ROUTER,
      "forged",
      0,
    ],
    [
      "an error that quotes 40 + 8 bytes",
      (p) => icmpError(p, 3, 0, { quoteBytes: 48 }),
      ROUTER,
      "withoutCookie",
      1,
    ],
    [
      "an error that quotes 40 + 8 bytes with another flow label",
      (p) => icmpError(p, 3, 0, { quoteBytes: 48, flowLabel: p.flowLabel ^ 1 }),
      ROUTER,
      "forged",
      0,
    ],
    [
      "an error that quotes all but the last byte of the cookie with another flow label",
      (p) => icmpError(p, 3, 0, { quoteBytes: 55, flowLabel: p.flowLabel ^ 1 }),
      ROUTER,
      "forged",
      0,
    ],
    [
      "an error with the cookie, whose flow label a router has changed",
      (p) => icmpError(p, 3, 0, { flowLabel: 0 }),
      ROUTER,
      "answered",
      1,
    ],
    [
      "an error that quotes 40 + 8 bytes to a foreign destination",
      (p) => icmpError(p, 3, 0, { quoteBytes: 48, destination: STRANGER }),
      ROUTER,
      "forged",
      0,
    ],
    ["a translated error", (p) => translatedError(p), ROUTER, "withoutCookie", 1],
    ["a translated error filled up", (p) => translatedError(p, 0, 80), ROUTER, "withoutCookie", 1],
    ["a translated error with another checksum", (p) => translatedError(p, 1), ROUTER, "forged", 0],
    [
      "a translated error to a foreign destination",
      (p) => translatedError({ ...p, target: STRANGER }),
      ROUTER,
      "forged",
      0,
    ],
    [
      "an error with the checksum, but another flow label",
      (p) => spoil(translatedError(p), 8 + 3),
      ROUTER,
      "forged",
      0,
    ],
    [
      "an error without flow label, whose cookie is cut",
      (p) => Uint8Array.of(...translatedError(p), ...spoil(p.message.subarray(8, 15), 6)),
      ROUTER,
      "forged",
      0,
    ],
    [
      "an error that quotes 40 + 8 bytes and states a length of one word",
      (p) => icmpError(p, 3, 0, { quoteBytes: 48, parameter: 1 << 24 }),
      ROUTER,
      "withoutCookie",
      1,
    ],
    [
      "an error that quotes all and states a length of five words",
      (p) => icmpError(p, 3, 0, { parameter: 5 << 24 }),
      ROUTER,
      "answered",
      1,
    ],
    [
      "an error that quotes 40 + 7 bytes",
      (p) => icmpError(p, 3, 0, { quoteBytes: 47 }),
      ROUTER,
      "malformed",
      0,
    ],
    [
      "an error about another sequence",
      (p) => spoil(exceeded(p), QUOTED + 7),
      ROUTER,
      "unknown",
      0,
    ],
    ["an error about an echo reply", (p) => spoil(exceeded(p), QUOTED), ROUTER, "malformed", 0],
    ["the request itself", (p) => p.message, TARGET, "malformed", 0],
    [
      "a neighbour solicitation",
      (p) => Uint8Array.of(135, ...p.message.subarray(1)),
      TARGET,
      "malformed",
      0,
    ],
    ["three bytes", (p) => p.message.subarray(0, 3), TARGET, "malformed", 0],
  ];
  test.each(rows)("%s", async (_name, message, from, counter, count) => {
    const { clock, prober, probe, answers, deliver, first } = start();
    void probe();
    deliver(message(first()), from);
    await clock.advance(1);
    expect(answers).toHaveLength(count);
    expect(prober.counters[counter]).toBe(1);
    expect(prober.outstanding).toBe(1 - count);
  });

  test.each([
    [4, true],
    [3, false],
  ])(
    "a link-local target replies from interface %p: another source is %p",
    async (from, isOther) => {
      const target = parseIpv6("fe80::2");
      const { clock, probe, answers, deliver, first } = start();
      void probe({ target, scopeId: 3 });
      deliver(echoReply(first()), target, from);
      await clock.advance(1);
      expect(answers).toEqual([expect.objectContaining({ scopeId: from, isOtherSource: isOther })]);
    },
  );

  test("without a flow label, an error without the cookie proves nothing", async () => {
    const { clock, prober, probe, answers, deliver, first } = start();
    void probe({ flowLabel: 0 });
    deliver(icmpError(first(), 3, 0, { quoteBytes: 48 }), ROUTER);
    deliver(translatedError(first()), ROUTER);
    await clock.advance(1);
    expect([answers.length, prober.counters.forged]).toEqual([0, 2]);
  });
});

describe("when a response comes", () => {
  test("a second time, it is a duplicate", async () => {
    const { clock, prober, probe, answers, responses, deliver, first } = start();
    void probe();
    deliver(echoReply(first()));
    deliver(echoReply(first()));
    deliver(icmpError(first(), 1, 4));
    await clock.advance(1);
    expect(answers.map(({ kind }) => kind)).toEqual(["reply"]);
    expect(responses.map(({ kind }) => kind)).toEqual(["reply", "reply", "error"]);
    expect(prober.counters).toMatchObject({ answered: 1, duplicate: 2 });
  });

  test("that does not tell whether the probe arrives, the probe stays open", async () => {
    const { clock, prober, probe, answers, deliver, first } = start();
    void probe();
    deliver(icmpError(first(), 3, 1));
    await clock.advance(1);
    expect([answers.length, prober.outstanding]).toEqual([0, 1]);
    expect(prober.counters.inconclusive).toBe(1);
  });

  test.each([
    [1000, "reply", "answered"],
    [1000.001, "timeout", "late"],
  ] as const)("after %p of 1000 ms, the answer is: %s", async (ms, kind, counter) => {
    const { clock, prober, probe, answers, responses, deliver, first } = start();
    void probe();
    clock.block(ms);
    deliver(echoReply(first()));
    await clock.advance(1);
    expect(answers.map((answer) => answer.kind)).toEqual([kind]);
    expect(responses).toMatchObject([{ kind: "reply" }]);
    expect([prober.counters[counter], prober.outstanding]).toEqual([1, 0]);
  });

  test("an error is not late: after the timeout it is read while the run listens", async () => {
    const { clock, prober, caller, probe, answers, responses, deliver, first } = start();
    await clock.run(probe());
    clock.block(2000);
    deliver(icmpError(first(), 1, 3), SOURCE);
    await clock.run(prober.listen(caller.signal));
    expect(answers).toEqual([{ kind: "timeout" }]);
    expect(responses).toMatchObject([{ kind: "error", rttMs: 3001 }]);
    expect(prober.counters).toMatchObject({ answered: 1, late: 0 });
  });

  test("after the end of the run, it counts as late and is not reported", async () => {
    const { clock, prober, caller, probe, answers, responses, deliver, first } = start();
    void probe();
    caller.abort();
    deliver(echoReply(first()));
    await clock.advance(1);
    expect(answers).toEqual([{ kind: "aborted" }]);
    expect(responses).toEqual([]);
    expect(prober.counters).toMatchObject({ answered: 0, late: 1 });
    expect(prober.outstanding).toBe(0);
  });

  test("in another order, each finds its probe", async () => {
    const { clock, socket, probe, deliver } = start();
    const order: number[] = [];
    for (const seq of [1, 2, 3]) void probe().then(() => order.push(seq));
    for (const index of [2, 0, 1]) deliver(echoReply(socket.sent[index] as OutgoingPacket));
    await clock.advance(1);
    expect(order).toEqual([3, 1, 2]);
  });

  test.each([
    ["the kernel's time is used, not the time of reading", 10, 50, 10],
    [
      "received before it was sent: the clock was set, so the time of reading is used",
      -3_600_000,
      50,
      50,
    ],
    ["received when it was sent", 0, 0, 0],
  ])("%s", async (_name, receivedMs, readMs, rttMs) => {
    const { clock, socket, probe, first } = start();
    const sentMs = clock.nowMs();
    const answer = probe();
    clock.block(readMs);
    const packet = { source: TARGET, message: echoReply(first()), hopLimit: 60, scopeId: 0 };
    socket.deliver({ ...packet, receivedMs: sentMs + receivedMs });
    expect(await clock.run(answer)).toMatchObject({ rttMs });
  });

  test("the socket is read before a probe expires, however long the event loop was blocked", async () => {
    const { clock, probe, socket, first } = start();
    const answer = probe();
    const receivedMs = clock.nowMs() + 10;
    const packet = { source: TARGET, message: echoReply(first()), hopLimit: 60, scopeId: 0 };
    clock.block(5000);
    socket.deliver({ ...packet, receivedMs });
    expect(await clock.run(answer)).toMatchObject({ kind: "reply", rttMs: 10 });
  });

  test("behind more packets than are read in a turn, it is still in time", async () => {
    const { clock, probe, socket, first } = start();
    const answer = probe();
    const receivedMs = clock.nowMs() + 10;
    const packet = { source: TARGET, hopLimit: 60, scopeId: 0, receivedMs };
    clock.block(5000);
    const flood = { ...packet, message: Uint8Array.of(135, 0, 0, 0, 0, 0, 0, 0) };
    for (let count = 0; count < 3000; count++) socket.deliver(flood);
    socket.deliver({ ...packet, message: echoReply(first()) });
    expect(await clock.run(answer)).toMatchObject({ kind: "reply", rttMs: 10 });
  });
});

describe("what goes out", () => {
  test("all probes with one flow label have one checksum, identifier and flow label", async () => {
    const { clock, socket, probe } = start();
    for (let count = 0; count < 5000; count++) {
      void probe({ hopLimit: 1 + (count % 64), timeoutMs: 100 });
      clock.block(1);
    }
    expect(socket.sent).toHaveLength(5000);
    const flows = new Set(
      socket.sent.map(({ message, flowLabel }) =>
        [internetChecksum(message), message[4], message[5], flowLabel].join(),
      ),
    );
    expect(flows.size).toBe(1);
    const keys = new Set(socket.sent.map(({ message }) => message.subarray(6, 16).join()));
    expect(keys.size).toBe(5000);
  });

  test("a payload has as many bytes as asked for", () => {
    const { probe, first } = start();
    void probe({ payloadBytes: 1024 });
    expect(first().message).toHaveLength(8 + 1024);
  });

  test("a probe that the kernel refuses is not outstanding", async () => {
    const { prober, probe } = start(() => "EPERM");
    expect(await probe()).toEqual({ kind: "refused", code: "EPERM" });
    expect(prober.outstanding).toBe(0);
    expect(prober.counters).toMatchObject({ sent: 0, refused: 1 });
  });

  test("after the signal has aborted, nothing", async () => {
    const { probe, socket } = start();
    expect(await probe({ signal: AbortSignal.abort() })).toEqual({ kind: "aborted" });
    expect(socket.sent).toEqual([]);
  });

  test("100,000 probes are all told apart", async () => {
    const { clock, socket, prober } = start();
    let wrong = 0;
    let answered = 0;
    for (let round = 0; round < 1000; round++) {
      const { signal } = new AbortController();
      const flowLabel = (round * 7919) & 0xfffff;
      const replies = Array.from({ length: 100 }, (_, index) => {
        const hopLimit = 1 + index;
        return prober.probe({ ...REQUEST, flowLabel, hopLimit, signal }).then((answer) => {
          answered++;
          if (answer.kind !== "reply" || answer.hopLimit !== hopLimit) wrong++;
        });
      });
      for (const packet of socket.sent.splice(0)) {
        const { hopLimit } = packet;
        const message = echoReply(packet);
        socket.deliver({
          source: TARGET,
          message,
          hopLimit,
          scopeId: 0,
          receivedMs: clock.nowMs(),
        });
      }
      await clock.run(Promise.all(replies));
      clock.block(100);
    }
    expect([answered, wrong]).toEqual([100_000, 0]);
  });

  /** The low byte of the identifier and the sequence, which follow the tag. */
  const keyOf = ({ message }: OutgoingPacket) =>
    new DataView(message.buffer).getUint32(4) % 2 ** 24;

  test("the key of a probe says nothing about the next one's: a forged error without a cookie must guess it", () => {
    const { clock, socket, probe } = start();
    const PROBES = 2000;
    for (let count = 0; count < PROBES; count++) {
      void probe({ flowLabel: (count * 7919 * 131) & 0xfffff });
      clock.block(1);
    }
    const keys = socket.sent.map(keyOf);
    const steps = keys.slice(1).map((key, at) => (key - (keys[at] as number) + 2 ** 24) % 2 ** 24);
    expect(new Set(steps).size).toBeGreaterThan(PROBES * 0.99);
    // Each sixteenth of all sequences is used about as often as any other.
    const used = Array.from({ length: 16 }, (_, part) =>
      keys.filter((key) => (key & 0xffff) >> 12 === part),
    );
    for (const { length } of used) expect(length).toBeWithin(PROBES / 32, PROBES / 8);
  });

  test("a key is not used again before the timeout and the quarantine have passed", async () => {
    const tried: [number, number][] = [];
    const random = (bytes: Uint8Array) => {
      if (bytes.length === 2) bytes.set(tried.shift() ?? [0, 0]);
    };
    const { clock, socket, probe } = start(silence, { random });
    const send = async (...sequences: [number, number][]) => {
      tried.splice(0, Infinity, ...sequences);
      void probe();
      await clock.advance(0);
      const sent = socket.sent.pop();
      return sent && keyOf(sent) % 2 ** 16;
    };
    expect(await send([1, 0])).toBe(0x0100);
    expect(await send([1, 0], [1, 1])).toBe(0x0101);
    clock.block(REQUEST.timeoutMs + QUARANTINE_MS - 1);
    expect(await send([1, 0], [1, 2])).toBe(0x0102);
    clock.block(SWEEP_MS);
    expect(await send([1, 0])).toBe(0x0100);
  });

  test("a response that waited in the idle socket does not answer a later probe with its key", async () => {
    const random = (bytes: Uint8Array) => bytes.fill(1);
    const { clock, probe, answers, deliver, first, prober } = start(silence, { random });
    await clock.run(probe());
    deliver(icmpError(first(), 3, 0, { quoteBytes: 48 }), ROUTER);
    clock.block(QUARANTINE_MS);
    await clock.run(probe());
    expect(answers.map(({ kind }) => kind)).toEqual(["timeout", "timeout"]);
    expect(prober.counters).toMatchObject({ answered: 1, unknown: 0 });
  });

  test("no more probes are remembered than the limit allows", async () => {
    const { clock, probe } = start();
    for (let count = 0; count < MAX_PROBES; count++) {
      // Over many runs, and at most 512 to one /64.
      const end = new AbortController();
      const target = { ...TARGET, word0: count >>> 9 };
      void probe({ target, flowLabel: count << 4, signal: end.signal });
      end.abort();
    }
    expect(await clock.run(probe())).toEqual({ kind: "refused", code: "ENOBUFS" });
    clock.block(REQUEST.timeoutMs + QUARANTINE_MS);
    expect(await clock.run(probe())).toEqual({ kind: "timeout" });
  });
});

describe("the tag", () => {
  const tagOf = ({ message }: OutgoingPacket) => message[4];

  test("changes from time to time, and the probes of the last one are still answered", async () => {
    const { clock, socket, prober, probe, answers, deliver } = start();
    clock.block(TAG_MS - 500);
    void probe();
    clock.block(600);
    void probe();
    const [before, after] = socket.sent as OutgoingPacket[] as [OutgoingPacket, OutgoingPacket];
    expect(tagOf(after)).not.toBe(tagOf(before));
    expect(socket.tags).toEqual([tagOf(after), tagOf(before)] as number[]);
    deliver(echoReply(before));
    deliver(icmpError(after, 3, 0, { quoteBytes: 48 }), ROUTER);
    await clock.advance(1);
    expect(answers.map(({ kind }) => kind)).toEqual(["reply", "error"]);
    expect(prober.counters).toMatchObject({ answered: 2, unknown: 0, forged: 0 });
  });

  test("stays if the kernel refuses another filter", async () => {
    const { clock, socket, probe } = start();
    socket.pass = () => false;
    void probe();
    clock.block(2 * TAG_MS);
    void probe();
    expect(new Set(socket.sent.map(tagOf)).size).toBe(1);
  });
});

describe("a probe without an answer", () => {
  test.each([
    ["before it was sent", "timeout", 0],
    ["while it waited", "unknown", 1],
  ] as const)("when the kernel dropped packets %s: %s", async (when, kind, count) => {
    const { clock, socket, prober, probe } = start();
    if (when === "before it was sent") socket.droppedPackets = 7;
    const answer = probe();
    if (when === "while it waited") socket.droppedPackets = 7;
    expect(await clock.run(answer)).toEqual({ kind });
    expect(prober.counters.dropped).toBe(count);
  });
});

describe("the bound for a /64", () => {
  test("lets exactly PACKETS_PER_SECOND probes out in any second, over all its addresses", async () => {
    const { clock, socket, probe, caller } = start();
    const elsewhere = { ...TARGET, word1: 99 };
    const send = (count: number) => {
      for (let sent = 0; sent < count; sent++) {
        void probe({ target: { ...TARGET, word3: sent % 3 } });
      }
    };
    send(400);
    await clock.advance(500);
    send(PACKETS_PER_SECOND);
    expect(socket.sent).toHaveLength(PACKETS_PER_SECOND);
    void probe({ target: elsewhere });
    expect(socket.sent).toHaveLength(PACKETS_PER_SECOND + 1);
    await clock.advance(500 - RETRY_MS);
    expect(socket.sent).toHaveLength(PACKETS_PER_SECOND + 1);
    await clock.advance(2 * RETRY_MS);
    // They leave at the same time, one behind the other.
    await settle();
    expect(socket.sent).toHaveLength(PACKETS_PER_SECOND + 1 + 400);
    caller.abort();
  });

  test.each<[string, typeof TARGET, number]>([
    ["neighbours that have not answered", NEIGHBOUR, MAX_WAITING],
    ["hosts behind a router", TARGET, MAX_WAITING + 1],
  ])("bounds the probes to %s", (_name, target, count) => {
    const { socket, probe, caller } = start();
    for (let sent = 0; sent <= MAX_WAITING; sent++) void probe({ target });
    expect(socket.sent).toHaveLength(count);
    caller.abort();
  });

  test.each<[string, (packet: OutgoingPacket) => Uint8Array, typeof TARGET, number]>([
    ["those behind a reply are not bounded", echoReply, NEIGHBOUR, 1],
    ["those behind an error of this machine are", (packet) => icmpError(packet, 1, 3), SOURCE, 0],
  ])("of the probes to a neighbour, %s", async (_name, message, from, more) => {
    const { clock, socket, probe, caller, deliver, first } = start();
    for (let sent = 0; sent < MAX_WAITING; sent++) void probe({ target: NEIGHBOUR });
    deliver(message(first()), from);
    await clock.advance(1);
    void probe({ target: NEIGHBOUR });
    expect(socket.sent).toHaveLength(MAX_WAITING + more);
    caller.abort();
  });

  test.each([
    ["is not bounded", NEIGHBOUR_MS - 1000, 2 * MAX_WAITING],
    ["is bounded again after some seconds", NEIGHBOUR_MS + 1000, MAX_WAITING],
  ])("a neighbour that has answered %s", async (_name, afterMs, count) => {
    const { clock, socket, probe, caller, deliver, first } = start();
    void probe({ target: NEIGHBOUR });
    deliver(echoReply(first()), NEIGHBOUR);
    await clock.advance(afterMs);
    for (let sent = 0; sent < 2 * MAX_WAITING; sent++) void probe({ target: NEIGHBOUR });
    expect(socket.sent).toHaveLength(1 + count);
    caller.abort();
  });

  test("frees the probes to a neighbour when the kernel has given it up", async () => {
    const { clock, socket, probe, caller } = start();
    for (let sent = 0; sent <= MAX_WAITING; sent++) void probe({ target: NEIGHBOUR });
    await clock.advance(NEIGHBOUR_MS - 100);
    expect(socket.sent).toHaveLength(MAX_WAITING);
    await clock.advance(300);
    expect(socket.sent).toHaveLength(MAX_WAITING + 1);
    caller.abort();
  });
});
