/** The properties of every packet; run by `fuzz.test.ts` briefly and by `scripts/fuzz.ts` for long. */
import fc from "fast-check";
import { Prober } from "../../src/icmp/prober/prober.ts";
import type { OutgoingPacket } from "../../src/icmp/socket/socket.ts";
import { splitExtensions } from "../../src/icmp/wire/icmp-error.ts";
import { decodeInvokingPacket, decodeMessage } from "../../src/icmp/wire/packet.ts";
import { echoReply, icmpError, SOURCE, simulate, TARGET } from "./fake.ts";

/** One probe in flight, and how many packets have answered it. */
function oneProbe() {
  const { clock, socket, options } = simulate(() => []);
  const prober = new Prober(options);
  const { signal } = new AbortController();
  const plan = { target: TARGET, scopeId: 0, source: SOURCE, flowLabel: 1, hopLimit: 64 };
  void prober.probe({ ...plan, timeoutMs: 1000, signal });
  const receivedMs = clock.nowMs();
  /** Lets the prober read the packets at once. */
  const deliver = (...messages: Uint8Array[]) => {
    for (const message of messages) {
      socket.deliver({ source: TARGET, message, hopLimit: 60, scopeId: 0, receivedMs });
    }
    clock.fire();
  };
  const { counters } = prober;
  const events = () => counters.answered + counters.duplicate + counters.late;
  return { probe: socket.sent[0] as OutgoingPacket, deliver, events };
}

/** Real messages, to be spoilt. */
const sample = oneProbe().probe;
const label = Uint8Array.of(0x20, 0, 0, 0, 0, 8, 1, 1, 0x05, 0xdc, 0x1b, 0x01);
const named = Uint8Array.of(0x20, 0, 0, 0, 0, 12, 2, 0x02, 5, 101, 116, 104, 48, 0, 0, 0);
const withExtensions = (extensions: Uint8Array) => {
  const quotation = new Uint8Array(128);
  quotation.set(icmpError(sample, 3, 0).subarray(8));
  return Uint8Array.of(3, 0, 0, 0, 16, 0, 0, 0, ...quotation, ...extensions);
};
const REAL = [
  echoReply(sample),
  icmpError(sample, 3, 0),
  icmpError(sample, 1, 4, { quoteBytes: 48 }),
  icmpError(sample, 2, 0, { parameter: 1280 }),
  withExtensions(label),
  withExtensions(named),
];

/** Bytes of any kind, and real messages with some bytes changed, cut or with something behind. */
const packets = fc.oneof(
  fc.uint8Array({ maxLength: 1400 }),
  fc
    .record({
      message: fc.constantFrom(...REAL),
      changes: fc.array(fc.tuple(fc.nat(300), fc.nat(255)), { maxLength: 4 }),
      length: fc.nat(400),
      behind: fc.uint8Array({ maxLength: 40 }),
    })
    .map(({ message, changes, length, behind }) => {
      const spoilt = Uint8Array.of(...message, ...behind).subarray(0, length);
      for (const [at, value] of changes) if (at < spoilt.length) spoilt[at] = value;
      return spoilt;
    }),
);

/** Bytes of a quotation in an error that say which probe it is about: the destination, identifier, sequence and cookie. */
const TELLING = [...range(8 + 24, 8 + 40), ...range(8 + 44, 8 + 56)];

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index);
}

const isWithin = (view: Uint8Array, bytes: Uint8Array) =>
  view.buffer === bytes.buffer &&
  view.byteOffset >= bytes.byteOffset &&
  view.byteOffset + view.length <= bytes.byteOffset + bytes.length;

type Property = readonly [name: string, property: fc.IProperty<unknown>];

function property<T>(name: string, input: fc.Arbitrary<T>, holds: (value: T) => boolean): Property {
  return [name, fc.property(input, holds) as fc.IProperty<unknown>];
}

const change = fc.integer({ min: 1, max: 255 });

/** Each with a name. */
export const PROPERTIES: readonly Property[] = [
  property("a message decodes to views within its bytes, or to null", packets, (bytes) => {
    const message = decodeMessage(bytes);
    if (message === null)
      return bytes.length < 8 || ![1, 2, 3, 4, 128, 129].includes(bytes[0] as number);
    return isWithin("data" in message ? message.data : message.body, bytes);
  }),
  property("a quotation holds an echo request within its bytes, or none", packets, (bytes) => {
    const invoking = decodeInvokingPacket(bytes.subarray(Math.min(8, bytes.length)));
    return invoking === null || isWithin(invoking.echo.data, bytes);
  }),
  property("extensions are bounded, and their fields within their ranges", packets, (bytes) => {
    const message = decodeMessage(bytes);
    if (message?.kind !== "error") return true;
    const { invokingPacket: quotation, extensions } = splitExtensions(message);
    return (
      isWithin(quotation, bytes) &&
      extensions.mpls.length <= bytes.length / 4 &&
      extensions.mpls.every(({ label, ttl }) => label < 2 ** 20 && ttl < 256) &&
      extensions.interfaces.length <= 32 &&
      extensions.interfaces.every(({ name }) => (name ?? "").length <= 63)
    );
  }),
  property("the prober takes any packet", fc.array(packets, { maxLength: 8 }), (messages) => {
    const { deliver, events } = oneProbe();
    deliver(...messages);
    return events() <= messages.length;
  }),
  property(
    "a reply in which one telling byte is changed answers nothing",
    fc.tuple(fc.constantFrom(...range(4, 16)), change),
    ([at, by]) => {
      const { probe, deliver, events } = oneProbe();
      deliver(changed(echoReply(probe), at, by));
      return events() === 0;
    },
  ),
  property(
    "an error in which one telling byte is changed answers nothing",
    fc.tuple(fc.constantFrom(1, 2, 3, 4), fc.constantFrom(...TELLING), change),
    ([type, at, by]) => {
      const { probe, deliver, events } = oneProbe();
      deliver(changed(icmpError(probe, type, 0), at, by));
      return events() === 0;
    },
  ),
];

function changed(bytes: Uint8Array, at: number, by: number): Uint8Array {
  bytes[at] = (bytes[at] as number) ^ by;
  return bytes;
}
