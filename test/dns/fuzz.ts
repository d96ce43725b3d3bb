import fc from "fast-check";
import { formatIpv6 } from "../../src/addr/format.ts";
import { formatIpv4, ipv4FromWord } from "../../src/addr/ipv4.ts";
import { ipv6FromWords } from "../../src/addr/ipv6.ts";
import { parseHostname } from "../../src/dns/hostname.ts";
import { rcodeName } from "../../src/dns/message/codes.ts";
import {
  createQuery,
  createQuestion,
  decodeMessage,
  type Message,
} from "../../src/dns/message/message.ts";
import { canonicalName, encodeName } from "../../src/dns/message/name.ts";
import {
  RECORD_TYPES,
  type RecordType,
  type ResourceRecord,
  typeCode,
} from "../../src/dns/message/record.ts";
import { interpret, matchDatagram, matchStreamed } from "../../src/dns/message/response.ts";
import { frameMessage, MessageStream } from "../../src/dns/transport/stream.ts";
import { FormatError } from "../../src/util/bytes.ts";
import { EDNS, encodeMessage, type TestMessage } from "./messages.ts";

/** Milliseconds that decoding a message may take on an idle machine of 2024. */
const DECODE_LIMIT_MS = 1;

/** On a slow or busy machine, decoding may take this many times as long as the yardstick. */
const DECODE_LIMIT_YARDSTICKS = 8;

/** An ordinary message with 4,094 addresses, about as large as a message can be. */
const ADDRESS = "00 0001 0001 00000000 0004 c0000201".replaceAll(" ", "");
const YARDSTICK = Uint8Array.fromHex(`0000818000000ffe00000000${ADDRESS.repeat(4094)}`);

/** More than any message in a datagram has without compression. */
const UNCOMPRESSED_LIMIT_BYTES = 1 << 20;

const byte = fc.integer({ min: 0, max: 0xff });
const uint16 = fc.integer({ min: 0, max: 0xffff });
const uint32 = fc.integer({ min: 0, max: 0xffffffff });

/** Text of a name: a few labels of any bytes, some of them fixed, so that names are equal now and then. */
const name: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      fc.constantFrom("a", "A", "www", "example", "*"),
      fc.array(byte, { minLength: 1, maxLength: 20 }).map((bytes) => bytes.map(escaped).join("")),
    ),
    { maxLength: 6 },
  )
  .map((labels) => canonicalName(`${labels.join(".")}.`.replace(/^\.$/, ".")));

function escaped(value: number): string {
  return `\\${String(value).padStart(3, "0")}`;
}

/** A character-string in presentation form. */
const quoted = fc
  .uint8Array({ maxLength: 40 })
  .map(
    (bytes) =>
      `"${[...bytes].map((value) => (value < 0x20 || value > 0x7e ? escaped(value) : String.fromCharCode(value).replace(/["\\]/, "\\$&"))).join("")}"`,
  );

const ipv6 = fc
  .tuple(uint32, uint32, uint32, uint32)
  .map((words) => formatIpv6(ipv6FromWords(...words)));
const ipv4 = uint32.map((word) => formatIpv4(ipv4FromWord(word)));
const bytes = fc.uint8Array({ minLength: 1, maxLength: 60 });
const someHex = bytes.map((some) => inWords(some.toHex().toUpperCase()));
const someBase64 = bytes.map((some) => inWords(some.toBase64()));

function inWords(text: string): string {
  return text.replace(/.{56}(?=.)/g, "$& ");
}

const words = (...parts: fc.Arbitrary<unknown>[]): fc.Arbitrary<string> =>
  fc.tuple(...parts).map((all) => all.join(" "));

const time = uint32.map((seconds) =>
  new Date(seconds * 1000).toISOString().replace(/\.000Z|\D/g, ""),
);

const protocol = fc.stringMatching(/^[a-zA-Z0-9/.-]{1,20}$/).map((text) => text);

const parameter = fc.oneof(
  fc.constantFrom("mandatory=alpn,key9", "no-default-alpn", "key99", "alpn"),
  fc.array(protocol, { minLength: 1, maxLength: 3 }).map((all) => `alpn="${all.join(",")}"`),
  uint16.map((port) => `port=${port}`),
  fc.array(ipv4, { minLength: 1, maxLength: 3 }).map((all) => `ipv4hint=${all.join(",")}`),
  fc.array(ipv6, { minLength: 1, maxLength: 3 }).map((all) => `ipv6hint=${all.join(",")}`),
  bytes.map((some) => `ech=${some.toBase64()}`),
  fc
    .tuple(
      fc.integer({ min: 7, max: 0xffff }),
      quoted.filter((text) => text !== '""'),
    )
    .map(([number, text]) => `key${number}=${text}`),
);

const binding = fc
  .tuple(uint16, name, fc.array(parameter, { maxLength: 4 }))
  .map(([priority, target, parameters]) => [priority, target, ...parameters].join(" "));

const value: Readonly<Partial<Record<(typeof RECORD_TYPES)[number], fc.Arbitrary<string>>>> = {
  AAAA: ipv6,
  A: ipv4,
  MX: words(uint16, name),
  TXT: fc.array(quoted, { minLength: 1, maxLength: 4 }).map((strings) => strings.join(" ")),
  NS: name,
  CNAME: name,
  SOA: words(name, name, uint32, uint32, uint32, uint32, uint32),
  PTR: name,
  SRV: words(uint16, uint16, uint16, name),
  CAA: words(byte, fc.stringMatching(/^[a-z0-9]{1,15}$/), quoted),
  HTTPS: binding,
  SVCB: binding,
  DS: words(uint16, byte, byte, someHex),
  DNSKEY: words(uint16, byte, byte, someBase64),
  TLSA: words(byte, byte, byte, someHex),
  SSHFP: words(byte, byte, someHex),
  NAPTR: words(uint16, uint16, quoted, quoted, quoted, name),
  RRSIG: words(
    fc.constantFrom("A", "HTTPS", "TYPE65280"),
    ...[byte, byte, uint32, time, time, uint16, name, someBase64],
  ),
};

const record: fc.Arbitrary<ResourceRecord> = fc
  .constantFrom(...(Object.entries(value) as [RecordType, fc.Arbitrary<string>][]))
  .chain(([type, text]) =>
    fc.record({ owner: name, type: fc.constant(type), ttl: uint32, value: text }),
  );

/** Any message that can be encoded. */
const message: fc.Arbitrary<TestMessage> = fc.record({
  id: uint16,
  flags: uint16.map((flags) => flags & 0xfff0),
  rcode: fc.integer({ min: 0, max: 15 }),
  question: fc.option(fc.record({ name, type: uint16, class: fc.constant(1) })),
  answers: fc.array(record, { maxLength: 8 }),
  edns: fc.option(
    fc.record({
      payloadBytes: uint16,
      version: byte,
      dnssecOk: fc.boolean(),
      extendedErrors: fc.array(fc.record({ code: fc.integer({ min: 1000, max: 0xffff }) }), {
        maxLength: 3,
      }),
    }),
  ),
});

/** The value that decoding the message must return. */
function decoded({ flags, rcode, answers, edns }: TestMessage): Message {
  return {
    flags: flags | (rcode & 0xf),
    rcode: rcodeName(rcode),
    answers,
    answerTypes: answers.map(({ type }) => typeCode(type)),
    authorityTypes: [],
    soa: null,
    extendedErrors: edns?.extendedErrors ?? null,
  };
}

/** A change of bytes: another byte, a pointer, bytes removed, bytes inserted, the end removed. */
const mutation = fc.oneof(
  fc.tuple(fc.nat(), byte).map(([at, value]) => (bytes: number[]) => {
    bytes[at % bytes.length] = value;
  }),
  fc.tuple(fc.nat(), fc.integer({ min: 0, max: 300 })).map(([at, target]) => (bytes: number[]) => {
    bytes.splice(at % bytes.length, 2, 0xc0 | (target >> 8), target & 0xff);
  }),
  fc.tuple(fc.nat(), fc.nat(20)).map(([at, count]) => (bytes: number[]) => {
    bytes.splice(at % bytes.length, count);
  }),
  fc.tuple(fc.nat(), fc.array(byte, { maxLength: 20 })).map(([at, more]) => (bytes: number[]) => {
    bytes.splice(at % bytes.length, 0, ...more);
  }),
  fc.nat().map((at) => (bytes: number[]) => {
    bytes.splice(at % bytes.length);
  }),
);

/** Bytes that may be a message: random bytes, whole messages, and changed messages. */
const received: fc.Arbitrary<Uint8Array> = fc.oneof(
  fc.uint8Array({ maxLength: 600 }),
  message.map((whole) => encodeMessage(whole)),
  fc
    .tuple(message, fc.array(mutation, { minLength: 1, maxLength: 6 }))
    .map(([whole, mutations]) => {
      const bytes = [...encodeMessage(whole)];
      for (const mutate of mutations) if (bytes.length > 0) mutate(bytes);
      return Uint8Array.from(bytes);
    }),
);

/** The message, or null for bytes that break the format; throws any other error. */
export function tryDecode(bytes: Uint8Array): Message | null {
  try {
    return decodeMessage(bytes);
  } catch (error) {
    if (error instanceof FormatError) return null;
    throw error;
  }
}

function decodeMs(bytes: Uint8Array): number {
  const startMs = performance.now();
  tryDecode(bytes);
  return performance.now() - startMs;
}

/** True if a message is decoded within the limit, which allows for a slow or busy machine. */
export function isDecodedInTime(bytes: Uint8Array): boolean {
  let fastestMs = decodeMs(bytes);
  let yardstickMs = 0;
  for (let run = 0; run < 100 && fastestMs > DECODE_LIMIT_MS; run++) {
    fastestMs = Math.min(fastestMs, decodeMs(bytes));
    yardstickMs = run === 0 ? decodeMs(YARDSTICK) : Math.min(yardstickMs, decodeMs(YARDSTICK));
  }
  return fastestMs <= Math.max(DECODE_LIMIT_MS, DECODE_LIMIT_YARDSTICKS * yardstickMs);
}

function same(a: unknown, b: unknown): void {
  if (!Bun.deepEquals(a, b, true)) throw new Error(`${Bun.inspect(a)} is not ${Bun.inspect(b)}`);
}

/** The properties that every input must satisfy, by name. */
export const PROPERTIES: Readonly<Record<string, fc.IRawProperty<unknown>>> = {
  "decoding never fails otherwise and is quick, and its result is stable": fc.property(
    received,
    (bytes) => {
      const copy = bytes.slice();
      if (!isDecodedInTime(bytes))
        throw new Error(`decoding takes more than ${DECODE_LIMIT_MS} ms`);
      same(bytes, copy);
      const answers = tryDecode(bytes)?.answers;
      // A mutation can make a type that is read here and that only other tests write.
      if (!answers?.every(({ type, value: text }) => type in value || text.startsWith("\\#")))
        return;
      const whole = { id: 0, flags: 0, rcode: 0, question: null, answers, edns: EDNS };
      same(decodeMessage(encodeMessage(whole, UNCOMPRESSED_LIMIT_BYTES)).answers, answers);
    },
  ),
  "every message that can be encoded is decoded unchanged": fc.property(message, (whole) => {
    same(decodeMessage(encodeMessage(whole)), decoded(whole));
  }),
  "every matched response has printable values": fc.property(
    received,
    fc.boolean(),
    fc.constantFrom(...RECORD_TYPES),
    (bytes, fits, type) => {
      const question = createQuestion("www.example.", type);
      const query = createQuery(question, true, (random) => random.fill(0x5a));
      // Half of them get past the header and the question.
      const head = query.bytes.subarray(0, query.bytes.length - 11).with(2, 0x81);
      const datagram = fits ? Uint8Array.from([...head, ...bytes]) : bytes;
      if (fits) datagram.set(bytes.subarray(0, 6), 6);
      for (const response of [matchDatagram(datagram, query), matchStreamed(datagram, query)]) {
        if (response?.kind !== "message") continue;
        for (const { value } of interpret(response.message, question).records) {
          if (!/^[\x20-\x7e]+$/.test(value)) throw new Error(`not printable: ${value}`);
        }
      }
    },
  ),
  "a name's text and its bytes convert into each other": fc.property(name, (text) => {
    same(canonicalName(text), text);
    same(encodeName(canonicalName(text)), encodeName(text));
  }),
  "any text is a name, or is refused with a reason": fc.property(
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 80 }),
      fc.string({ unit: "grapheme", maxLength: 80 }),
      fc.domain(),
      fc.ipV4Extended(),
      fc.ipV6(),
      fc.stringMatching(/^[a-z0-9*_./é。１:-]{0,40}$/u),
    ),
    fc.constantFrom(...RECORD_TYPES),
    (text, type) => {
      const parsed = parseHostname(text, type);
      if (!parsed.ok) {
        if (!/^it [\x20-\x7e]+$/.test(parsed.reason)) throw new Error(parsed.reason);
        return;
      }
      encodeName(parsed.name);
      const shown = parsed.name === "." ? "." : `${parsed.name}.`;
      same(canonicalName(parsed.name), shown);
      same(parseHostname(shown, type), parsed);
    },
  ),
  "a stream returns its messages, however it is cut": fc.property(
    fc.uint8Array({ maxLength: 300 }),
    fc.uint8Array({ maxLength: 10 }),
    fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 }),
    (first, second, cuts) => {
      const bytes = Uint8Array.from([...frameMessage(first), ...frameMessage(second)]);
      const stream = new MessageStream();
      const messages: Uint8Array[] = [];
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const cut = cuts[turn % cuts.length] as number;
        messages.push(...stream.add(bytes.subarray(at, at + cut)));
        at += cut;
      }
      same(messages, [first, second]);
    },
  ),
};
