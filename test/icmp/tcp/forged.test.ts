/** Segments and errors that pretend to answer a SYN: none is believed. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Prober, QUARANTINE_MS } from "../../../src/icmp/prober/prober.ts";
import { matchResponse, probeKey } from "../../../src/icmp/prober/response.ts";
import { reservedPorts } from "../../../src/icmp/socket/port-sockets.ts";
import type { ProbedPort, ReceivedPacket } from "../../../src/icmp/socket/socket.ts";
import { encodePortsProgram } from "../../../src/icmp/wire/filter.ts";
import { addressOf, C, loadLibc } from "../../../src/platform/libc.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { addressBytes } from "../../lab/address.ts";
import { describeWith, labMissing } from "../../lab/lab.ts";
import { formatIcmp, formatPacket } from "../../lab/packet.ts";
import { runIp } from "../../lab/run.ts";
import { openProber } from "../engines.ts";
import { icmpError, SOURCE, simulate, TARGET } from "../fake.ts";

const PORT = 443;
const PROBED_PORT: ProbedPort = { protocol: "tcp", port: PORT };
const [SYN_ACK, RST_ACK, RST, SYN, ACK] = [0x12, 0x14, 0x04, 0x02, 0x10];

describe("what a packet must have, by chance", () => {
  const sequence = 0x9abcdef0;
  const request = { target: TARGET, source: SOURCE, scopeId: 0, flowLabel: 0x12345 };
  const probe = {
    request: { ...request, probedPort: PROBED_PORT },
    cookie: "\x07".repeat(8),
    sentMs: 0,
  };
  const probes = new Map([[probeKey(sequence >>> 16, sequence & 0xffff), probe]]);
  const echo = (type: number, key = sequence) => {
    const message = new Uint8Array(8);
    message[0] = type;
    new DataView(message.buffer).setUint32(4, key);
    return message;
  };
  const received = (message: Uint8Array, change: Partial<ReceivedPacket> = {}): ReceivedPacket => ({
    ...{ source: TARGET, scopeId: 0, hopLimit: 60, receivedMs: 1, readMs: 1 },
    ...{ probedPort: PROBED_PORT, message, ...change },
  });
  const reply = (change: Partial<ReceivedPacket> = {}) =>
    matchResponse(received(echo(129), { state: "open", ...change }), probes);
  const errorAbout = (about: Parameters<typeof icmpError>[3] = {}, probedPort = PROBED_PORT) => {
    const packet = { ...request, hopLimit: 3, message: echo(128) };
    const message = icmpError(packet, 3, 0, about);
    return matchResponse(received(message, { source: SOURCE, probedPort }), probes);
  };

  test("the genuine ones are believed", () => {
    expect(reply()).toMatchObject({ response: { kind: "reply", state: "open" } });
    expect(errorAbout()).toMatchObject({ response: { kind: "error" } });
    // As a translator from IPv4 writes it.
    expect(errorAbout({ flowLabel: 0 })).toMatchObject({ response: { kind: "error" } });
  });

  test.each<[string, () => unknown]>([
    ["a reply from another address", () => reply({ source: SOURCE })],
    ["a reply from another zone", () => reply({ scopeId: 5 })],
    ["a reply from another port", () => reply({ probedPort: { protocol: "tcp", port: 80 } })],
    ["a UDP reply", () => reply({ probedPort: { protocol: "udp", port: PORT } })],
    ["an echo reply with the same numbers", () => reply({ probedPort: undefined })],
    ["an error about another destination", () => errorAbout({ destination: SOURCE })],
    ["an error about another flow label", () => errorAbout({ flowLabel: 0x12346 })],
    ["an error about another port", () => errorAbout({}, { protocol: "tcp", port: 80 })],
    ["an error about UDP", () => errorAbout({}, { protocol: "udp", port: PORT })],
  ])("%s is forged", (_, match) => {
    expect(match()).toMatchObject({ forged: probe });
  });

  test("of 200,000 guesses of the 32 bits, none is believed", () => {
    let state = 1;
    let believed = 0;
    for (let guess = 0; guess < 200_000; guess++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      if (state === sequence) continue;
      if (typeof matchResponse(received(echo(129, state)), probes) !== "string") believed++;
    }
    expect(believed).toBe(0);
  });

  test("the numbers of SYNs are 32 random bits, and free again after the quarantine", async () => {
    const { clock, socket, options } = simulate(() => []);
    const bits = (bytes: Uint8Array<ArrayBuffer>) => void crypto.getRandomValues(bytes);
    const prober = new Prober({ ...options, random: bits });
    const { signal } = new AbortController();
    const timeoutMs = 100;
    const about = { ...request, probedPort: PROBED_PORT, timeoutMs, signal };
    const answers = Array.from({ length: 400 }, (_, at) =>
      prober.probe({ ...about, hopLimit: (at % 64) + 1 }),
    );
    await clock.run(Promise.all(answers));
    const numbers = socket.sent.map(({ message }) => new DataView(message.buffer).getUint32(4));
    expect(new Set(numbers).size).toBe(400);
    // Each bit is set in half of them, within five standard deviations.
    for (let bit = 0; bit < 32; bit++) {
      const set = numbers.filter((number) => (number >>> bit) & 1).length;
      expect(set).toBeWithin(150, 251);
    }
    const late = (number: number) => ({
      ...received(echo(129, number)),
      receivedMs: clock.nowMs(),
    });
    const last = numbers.at(-1) as number;
    socket.deliver(late(last), clock.nowMs());
    await clock.advance(5);
    expect(prober.counters).toMatchObject({ late: 1, unknown: 0 });
    await clock.advance(timeoutMs + QUARANTINE_MS);
    await clock.run(prober.probe({ ...about, hopLimit: 1 }));
    socket.deliver(late(last), clock.nowMs());
    await clock.advance(1500);
    expect(prober.counters).toMatchObject({ late: 1, unknown: 1 });
    prober.close();
  });
});

test("the filter passes segments to the reserved ports alone", () => {
  const ports = [1024, 40_000, 65_535];
  const program = new DataView(encodePortsProgram(ports).buffer);
  const passes = (port: number) => {
    for (let at = 1; ; at++) {
      const operation = program.getUint16(at * 8, true);
      const operand = program.getUint32(at * 8 + 4, true);
      if (operation === 0x06) return operand > 0;
      if (operation !== 0x15) throw new Error(`operation at ${at}`);
      at += program.getUint8(at * 8 + (port === operand ? 2 : 3));
    }
  };
  const passed = Array.from({ length: 65_536 }, (_, port) => port).filter(passes);
  expect(passed).toEqual(ports);
});

describeWith(labMissing)("in the kernel", () => {
  const source = "2001:db8:66::1";
  const target = "2001:db8:66::2";
  const libc = loadLibc({
    close: { args: [C.int], returns: C.int },
    sendto: { args: [C.int, C.pointer, C.size, C.int, C.pointer, C.int], returns: C.long },
    socket: { args: [C.int, C.int, C.int], returns: C.int },
  });
  /** AF_INET6, SOCK_RAW, IPPROTO_RAW: whole packets, from any address. */
  const raw = labMissing === null ? libc.socket(10, 3, 255) : -1;

  /** Hands this machine a packet as if it came from the network. */
  function inject(packet: Uint8Array): void {
    const name = new Uint8Array(28);
    name.set([10, 0]);
    name.set(addressBytes(source), 8);
    const sent = libc.sendto(raw, addressOf(packet), packet.length, 0, addressOf(name), 28);
    if (Number(sent) !== packet.length) throw new Error("sendto");
  }

  /** A segment with a right checksum. */
  function segment(from: number, to: number, acknowledged: number, flags: number, sender = target) {
    const payload = new Uint8Array(20);
    const view = new DataView(payload.buffer);
    view.setUint16(0, from);
    view.setUint16(2, to);
    view.setUint32(8, acknowledged);
    payload.set([0x50, flags], 12);
    const [a, b] = [addressBytes(sender), addressBytes(source)];
    const pseudo = Uint8Array.of(...a, ...b, 0, 0, 0, 20, 0, 0, 0, 6, ...payload);
    let sum = 0;
    for (let at = 0; at < pseudo.length; at += 2)
      sum += ((pseudo[at] as number) << 8) + (pseudo[at + 1] as number);
    view.setUint16(16, ~(sum % 0xffff) & 0xffff);
    return formatPacket({
      ...{ trafficClass: 0, flowLabel: 0, nextHeader: 6, hopLimit: 60 },
      ...{ source: a, destination: b, payload },
    });
  }

  /** A Time Exceeded about a SYN. */
  function errorAbout(from: number, to: number, sequence: number, flowLabel: number) {
    const payload = new Uint8Array(24);
    const view = new DataView(payload.buffer);
    view.setUint16(0, from);
    view.setUint16(2, to);
    view.setUint32(4, sequence);
    payload.set([0x60, SYN], 12);
    const [us, them] = [addressBytes(source), addressBytes(target)];
    const invoking = formatPacket({
      ...{ trafficClass: 0, flowLabel, nextHeader: 6, hopLimit: 1 },
      ...{ source: us, destination: them, payload },
    });
    const message = new Uint8Array(8 + invoking.length);
    message[0] = 3;
    message.set(invoking, 8);
    const router = addressBytes("2001:db8:66::99");
    return formatIcmp({ source: router, destination: us, hopLimit: 60 }, message);
  }

  beforeAll(async () => {
    // Packets to its prefix vanish.
    await runIp([
      "link add vanish type veth peer name nowhere",
      `addr add ${source}/64 dev vanish nodad`,
      "link set vanish up",
      "link set nowhere up",
      `neigh replace ${target} lladdr 02:00:00:00:00:01 dev vanish`,
    ]);
  });
  afterAll(async () => {
    if (raw >= 0) libc.close(raw);
    await runIp(["link del vanish"]);
  });

  /** A prober whose next SYN has a known number, and that SYN. */
  function ask(sequence: number) {
    const numbers = [sequence >>> 16, sequence & 0xffff];
    const random = (bytes: Uint8Array<ArrayBuffer>) => {
      const [number] = bytes.length === 2 ? numbers.splice(0, 1) : [];
      if (number === undefined) crypto.getRandomValues(bytes);
      else bytes.set([number >>> 8, number & 0xff]);
    };
    const prober = openProber({ random });
    const flowLabel = 5;
    const answer = prober.probe({
      ...{ target: parseIpv6(target), source: parseIpv6(source), scopeId: 0, hopLimit: 9 },
      ...{ flowLabel, turn: 1, timeoutMs: 60_000, signal: new AbortController().signal },
      probedPort: PROBED_PORT,
    });
    const from = reservedPorts()[flowLabel + 1] as number;
    /** Waits until what was injected has been read: the genuine answer comes behind it. */
    const settle = async (genuine: Uint8Array) => {
      inject(genuine);
      const { kind } = await answer;
      const { counters } = prober;
      prober.close();
      return { kind, counters };
    };
    return { prober, from, flowLabel, settle };
  }

  test("forged segments change nothing, and the genuine one counts", async () => {
    const sequence = 0xfffffffe;
    const { from, settle } = ask(sequence);
    const right = sequence + 1;
    inject(segment(PORT, from, right + 1, SYN_ACK));
    inject(segment(PORT, from, 0, RST_ACK));
    inject(segment(PORT, from, right, RST));
    inject(segment(PORT, from, right, SYN));
    inject(segment(PORT, from, right, ACK));
    inject(segment(80, from, right, SYN_ACK));
    inject(segment(PORT, from, right, SYN_ACK, "2001:db8:66::3"));
    inject(segment(PORT, from, right, SYN_ACK, source));
    const { kind, counters } = await settle(segment(PORT, from, right, RST_ACK));
    expect(kind).toBe("reply");
    expect(counters).toMatchObject({ answered: 1, duplicate: 0, forged: 3, otherSource: 0 });
  });

  test("a flood to all ports is dropped in the kernel but for ours, and duplicates count once", async () => {
    const sequence = 0x12345678;
    const { from, settle } = ask(sequence);
    const ours = new Set(reservedPorts());
    for (let port = 1; port <= 65_535; port += ours.has(port + 1) ? 1 : 7)
      if (port !== from) inject(segment(PORT, port, sequence + 2, SYN_ACK));
    const genuine = segment(PORT, from, sequence + 1, SYN_ACK);
    const { kind, counters } = await settle(genuine);
    expect(kind).toBe("reply");
    expect(counters.unknown).toBeLessThan(ours.size + 1);
    expect(counters).toMatchObject({ answered: 1, forged: 0 });
  });

  test("forged errors change nothing, and the genuine one counts", async () => {
    const sequence = 0x01020304;
    const { from, flowLabel, settle } = ask(sequence);
    inject(errorAbout(from, PORT, sequence + 1, flowLabel));
    inject(errorAbout(from, 80, sequence, flowLabel));
    inject(errorAbout(from, PORT, sequence, flowLabel + 1));
    inject(errorAbout(9, PORT, sequence, flowLabel));
    const { kind, counters } = await settle(errorAbout(from, PORT, sequence, flowLabel));
    expect(kind).toBe("error");
    expect(counters).toMatchObject({ answered: 1, forged: 2, unknown: 1, malformed: 1 });
  });
});
