import { ByteWriter } from "../bytes.ts";
import { EDNS_PAYLOAD_BYTES, MAX_NAME_BYTES, MAX_QUERY_BYTES } from "./limits.ts";
import { CLASS_IN, encodeMessage, FLAG, type Message, type Question } from "./message.ts";
import { writeName } from "./name.ts";
import { type RecordType, typeCode } from "./record.ts";
import { RCODE } from "./response-code.ts";

/** Fills the bytes with random ones that nobody can guess. */
export type RandomSource = (bytes: Uint8Array<ArrayBuffer>) => void;

/** A query as it was sent, which its reply has to match. */
export interface Query {
  readonly id: number;
  /** The name on the wire, as it was given. */
  readonly name: Uint8Array;
  /** The message as it was sent, with the name in random case. */
  readonly bytes: Uint8Array;
}

/** Random bytes for one query: the ID, and a bit for each character of the name. */
const RANDOM_BYTES = 2 + 32;

/**
 * A query with a random ID (RFC 5452 section 9.2) and random case of its letters, except for PTR,
 * whose names pass middleboxes that fold them (draft-vixie-dnsext-dns0x20).
 *
 * @param name in canonical form
 * @param withEdns whether to add an OPT record (RFC 6891): 1232 bytes, no options
 */
export function createQuery(
  name: string,
  type: RecordType,
  withEdns: boolean,
  fillRandom: RandomSource,
): Query {
  const random = new Uint8Array(RANDOM_BYTES);
  fillRandom(random);
  const id = ((random[0] as number) << 8) | (random[1] as number);
  const question: Question = {
    name: type === "PTR" ? name : withRandomCase(name, random.subarray(2)),
    type: typeCode(type),
    class: CLASS_IN,
  };
  const message: Message = {
    id,
    // AD asks for the resolver's verdict without the signatures; RFC 6840 section 5.7.
    flags: FLAG.recursionDesired | FLAG.authenticated,
    rcode: RCODE.NOERROR,
    question,
    answers: [],
    edns: withEdns
      ? { payloadBytes: EDNS_PAYLOAD_BYTES, version: 0, dnssecOk: false, extendedErrors: [] }
      : null,
  };
  const given = new ByteWriter(MAX_NAME_BYTES);
  writeName(given, name);
  return { id, name: given.finish(), bytes: encodeMessage(message, MAX_QUERY_BYTES) };
}

/** Turns the case of every letter whose bit is set. */
function withRandomCase(name: string, bits: Uint8Array): string {
  let text = "";
  for (let at = 0; at < name.length; at++) {
    const character = name[at] as string;
    const byte = bits[(at >>> 3) % bits.length] as number;
    const turn = (byte >>> (at & 7)) & 1;
    text += turn === 0 ? character : turnCase(character);
  }
  return text;
}

function turnCase(letter: string): string {
  const lower = letter.toLowerCase();
  return lower === letter ? letter.toUpperCase() : lower;
}
