import { ipv6ToBytes } from "../../src/addr/ipv6.ts";
import { FLAG, HEADER_BYTES } from "../../src/dns/message/message.ts";
import { decodeName, encodeName } from "../../src/dns/message/name.ts";
import { type RecordType, type ResourceRecord, typeCode } from "../../src/dns/message/record.ts";
import { ByteReader } from "../../src/util/bytes.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { ByteWriter } from "../lab/byte-writer.ts";

/** Everything that a test server can put into a message, with names without compression. */
export interface TestMessage {
  readonly id: number;
  /** Without the response code. */
  readonly flags: number;
  /** All twelve bits. */
  readonly rcode: number;
  readonly question: TestQuestion | null;
  readonly answers: readonly ResourceRecord[];
  readonly edns: TestEdns | null;
}

export interface TestQuestion {
  readonly name: string;
  readonly type: number;
  readonly class: number;
}

export interface TestEdns {
  readonly payloadBytes: number;
  readonly version: number;
  readonly dnssecOk: boolean;
  readonly extendedErrors: readonly { readonly code: number; readonly text?: string }[];
}

/** An OPT record like the one in our queries. */
export const EDNS: TestEdns = {
  payloadBytes: 1232,
  version: 0,
  dnssecOk: false,
  extendedErrors: [],
};

const MAX_MESSAGE_BYTES = 65_535;
const OPT = 41;
const EXTENDED_ERROR_OPTION = 15;

/** Encodes a message. Throws FormatError for more bytes than the limit. */
export function encodeMessage(message: TestMessage, limitBytes = MAX_MESSAGE_BYTES): Uint8Array {
  const { id, flags, rcode, question, answers, edns } = message;
  const writer = new ByteWriter(limitBytes)
    .uint16(id)
    .uint16(flags | (rcode & 0xf))
    .uint16(question === null ? 0 : 1)
    .uint16(answers.length)
    .uint16(0)
    .uint16(edns === null ? 0 : 1);
  if (question !== null) {
    writer.put(encodeName(question.name)).uint16(question.type).uint16(question.class);
  }
  for (const { owner, type, ttl, value } of answers) {
    const data = encodeData(type, value);
    writer.put(encodeName(owner)).uint16(typeCode(type)).uint16(1).uint32(ttl);
    writer.uint16(data.length).put(data);
  }
  if (edns !== null) {
    const options = edns.extendedErrors.flatMap(({ code, text = "" }) => {
      const bytes = new TextEncoder().encode(text);
      return [0, EXTENDED_ERROR_OPTION, 0, 2 + bytes.length, code >>> 8, code & 0xff, ...bytes];
    });
    writer
      .uint8(0)
      .uint16(OPT)
      .uint16(edns.payloadBytes)
      .uint8(rcode >>> 4)
      .uint8(edns.version);
    writer
      .uint16(edns.dnssecOk ? 0x8000 : 0)
      .uint16(options.length)
      .put(Uint8Array.from(options));
  }
  return writer.finish();
}

/** The data of a record on the wire, from its presentation form. */
export function encodeData(type: RecordType, value: string): Uint8Array {
  const words = value.match(/(?:"(?:\\.|[^"\\])*"|\\.|[^" \\])+/g) ?? [];
  const word = (at: number) => words[at] as string;
  const number = (at: number) => Number(word(at));
  const name = (at: number) => [...encodeName(word(at))];
  const text = (at: number) => [...withLength(unquoted(word(at)))];
  const fromHex = (at: number) => [...hex(words.slice(at).join(""))];
  const fromBase64 = (at: number) => [...Uint8Array.fromBase64(words.slice(at).join(""))];
  const bytes = (): number[] => {
    switch (type) {
      case "AAAA":
        return [...ipv6ToBytes(parseIpv6(value))];
      case "A":
        return value.split(".").map(Number);
      case "MX":
        return [...uint16(number(0)), ...name(1)];
      case "TXT":
        return words.flatMap((_, at) => text(at));
      case "SOA":
        return [...name(0), ...name(1), ...words.slice(2).flatMap((each) => uint32(Number(each)))];
      case "SRV":
        return [...[0, 1, 2].flatMap((at) => uint16(number(at))), ...name(3)];
      case "CAA":
        return [number(0), ...withLength(unescaped(word(1))), ...unquoted(word(2))];
      case "HTTPS":
      case "SVCB":
        return [...uint16(number(0)), ...name(1), ...words.slice(2).flatMap(encodeParameter)];
      case "DS":
        return [...uint16(number(0)), number(1), number(2), ...fromHex(3)];
      case "DNSKEY":
        return [...uint16(number(0)), number(1), number(2), ...fromBase64(3)];
      case "TLSA":
        return [number(0), number(1), number(2), ...fromHex(3)];
      case "SSHFP":
        return [number(0), number(1), ...fromHex(2)];
      case "NAPTR":
        return [...uint16(number(0)), ...uint16(number(1)), ...[2, 3, 4].flatMap(text), ...name(5)];
      case "RRSIG": {
        const times = [word(4), word(5)].map((time) =>
          time.replace(/(....)(..)(..)(..)(..)(..)/, "$1-$2-$3T$4:$5:$6Z"),
        );
        return [
          ...[...uint16(typeCode(word(0) as RecordType)), number(1), number(2)],
          ...[number(3), ...times.map((time) => Date.parse(time) / 1000)].flatMap(uint32),
          ...[...uint16(number(6)), ...name(7), ...fromBase64(8)],
        ];
      }
      case "NS":
      case "CNAME":
      case "PTR":
        return name(0);
      default:
        return fromHex(2);
    }
  };
  return Uint8Array.from(bytes());
}

const PARAMETERS = ["mandatory", "alpn", "no-default-alpn", "port", "ipv4hint", "ech", "ipv6hint"];

/** The bytes of each identifier in a list, in which a backslash makes a comma part of one; RFC 9460 appendix A.1. */
function identifiersIn(list: string): number[][] {
  const identifiers: number[][] = [[]];
  for (const [part] of list.matchAll(/\\.|[^\\]/gs)) {
    if (part === ",") identifiers.push([]);
    else identifiers.at(-1)?.push(part.charCodeAt(part.length - 1));
  }
  return identifiers;
}

/** A parameter of SVCB, `key=value`; RFC 9460. */
function encodeParameter(parameter: string): number[] {
  const [, key = "", value = ""] = /^([^=]+)=?(.*)$/s.exec(parameter) ?? [];
  const keyNumber = (text: string) =>
    PARAMETERS.includes(text) ? PARAMETERS.indexOf(text) : Number(text.slice("key".length));
  const list = value === "" ? [] : value.split(",");
  const encoders: Readonly<Record<string, () => number[]>> = {
    mandatory: () => list.flatMap((each) => uint16(keyNumber(each))),
    alpn: () => identifiersIn(String.fromCharCode(...unquoted(value))).flatMap(withLength),
    port: () => uint16(Number(value)),
    ipv4hint: () => list.flatMap((each) => each.split(".").map(Number)),
    ech: () => [...Uint8Array.fromBase64(value)],
    ipv6hint: () => list.flatMap((each) => [...ipv6ToBytes(parseIpv6(each))]),
  };
  const bytes = value === "" ? [] : (encoders[key]?.() ?? unquoted(value));
  return [...uint16(keyNumber(key)), ...uint16(bytes.length), ...bytes];
}

function withLength(bytes: readonly number[]): number[] {
  return [bytes.length, ...bytes];
}

function unquoted(text: string): number[] {
  return unescaped(text.slice(1, -1));
}

function uint16(value: number): number[] {
  return [value >>> 8, value & 0xff];
}

function uint32(value: number): number[] {
  return [...uint16(value >>> 16), ...uint16(value & 0xffff)];
}

/** The bytes of a character-string; RFC 1035 section 5.1. */
function unescaped(text: string): number[] {
  return (text.match(/\\\d{3}|\\?./gs) ?? []).map((token) =>
    token.length === 4 ? Number(token.slice(1)) : token.charCodeAt(token.length - 1),
  );
}

/** Bytes from hex digits; white space is for the reader. */
export function hex(text: string): Uint8Array {
  return Uint8Array.fromHex(text.replace(/\s+/g, ""));
}

/** An AAAA record. */
export function aaaa(owner: string, address: string, ttl = 300): ResourceRecord {
  return { owner, type: "AAAA", ttl, value: address };
}

/** A CNAME record. */
export function cname(owner: string, target: string, ttl = 300): ResourceRecord {
  return { owner, type: "CNAME", ttl, value: target };
}

/** The response of a correct server to the query, with some changes. */
export function replyTo(query: Uint8Array, changes: Partial<TestMessage> = {}): Uint8Array {
  return encodeMessage({
    id: idOf(query),
    flags: FLAG.response | FLAG.recursionDesired | FLAG.recursionAvailable,
    rcode: 0,
    question: questionOf(query),
    answers: [],
    edns: hasEdns(query) ? EDNS : null,
    ...changes,
  });
}

/** The ID of a query. */
export function idOf(query: Uint8Array): number {
  return new ByteReader(query).uint16();
}

/** The question of a query. */
export function questionOf(query: Uint8Array): TestQuestion {
  const reader = new ByteReader(query, questionEnd(query) - 4);
  return { name: askedName(query), type: reader.uint16(), class: reader.uint16() };
}

/** True if a query has an OPT record. */
export function hasEdns(query: Uint8Array): boolean {
  return query[11] === 1;
}

/** The name that the query asks for, in the case in which it was sent. */
export function askedName(query: Uint8Array): string {
  return decodeName(query, HEADER_BYTES);
}

/**
 * A response with this many NS records, all but the first of 14 bytes, whose compressed name has 512
 * characters in presentation form.
 */
export function swellingReply(query: Uint8Array, count: number): Uint8Array {
  const head = replyTo(query, { edns: null });
  head.set([count >>> 8, count & 0xff], 6);
  const name = [...[32, 32, 32, 31].flatMap((length) => [length, ...Array(length).fill(1)]), 0];
  const first = [0xc0, 0x0c, 0, 2, 0, 1, 0, 0, 1, 44, 0, name.length, ...name];
  const offset = head.length + 12;
  const other = [0xc0, 0x0c, 0, 2, 0, 1, 0, 0, 1, 44, 0, 2, 0xc0 | (offset >>> 8), offset & 0xff];
  return Uint8Array.from([
    ...head,
    ...first,
    ...Array(count - 1)
      .fill(other)
      .flat(),
  ]);
}

/** The response with one more answer before the others: a DNAME of the root. */
export function withDname(reply: Uint8Array): Uint8Array {
  return withRecords(reply, ANSWER_COUNT, [hex("00 0027 0001 0000012c 0001 00")]);
}

/** A response without records but OPT, with NS and SOA records of the root in its authority section. */
export function withAuthority(reply: Uint8Array, types: readonly ("NS" | "SOA")[]): Uint8Array {
  const records = types.map((type) => {
    const data = encodeData(type, type === "NS" ? "." : ". . 1 2 3 4 5");
    return Uint8Array.of(0, 0, typeCode(type), 0, 1, 0, 0, 1, 44, 0, data.length, ...data);
  });
  return withRecords(reply, AUTHORITY_COUNT, records);
}

/** Offsets of the header's counts. */
const ANSWER_COUNT = 6;
const AUTHORITY_COUNT = 8;

function questionEnd(message: Uint8Array): number {
  let at = HEADER_BYTES;
  while (message[at] !== 0) at += 1 + (message[at] as number);
  return at + 5;
}

/** The message with these records before the others. */
function withRecords(
  reply: Uint8Array,
  countAt: number,
  records: readonly Uint8Array[],
): Uint8Array {
  const at = questionEnd(reply);
  const added = Uint8Array.from([
    ...reply.subarray(0, at),
    ...records.flatMap((record) => [...record]),
    ...reply.subarray(at),
  ]);
  const count = new DataView(added.buffer);
  count.setUint16(countAt, count.getUint16(countAt) + records.length);
  return added;
}
