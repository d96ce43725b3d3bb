import { EDNS_PAYLOAD_BYTES, MAX_QUERY_BYTES } from "./limits.ts";
import { CLASS_IN, encodeMessage, FLAG, HEADER_BYTES, type Message } from "./message.ts";
import { decodeName, encodeName } from "./name.ts";
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

/** Random bytes for one query: the ID, and a bit for each byte of the name. */
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
  const message: Message = {
    id,
    // AD asks for the resolver's verdict without the signatures; RFC 6840 section 5.7.
    flags: FLAG.recursionDesired | FLAG.authenticated,
    rcode: RCODE.NOERROR,
    question: { name, type: typeCode(type), class: CLASS_IN },
    answers: [],
    edns: withEdns
      ? { payloadBytes: EDNS_PAYLOAD_BYTES, version: 0, dnssecOk: false, extendedErrors: [] }
      : null,
  };
  const bytes = encodeMessage(message, MAX_QUERY_BYTES);
  const given = encodeName(name);
  if (type !== "PTR") bytes.set(withRandomCase(given, random.subarray(2)), HEADER_BYTES);
  return { id, name: given, bytes };
}

/**
 * Makes what gives the labels at the beginning of a name, which a server has made of the query's, the
 * case in which they were given: as many as agree to the letter with the query as it was sent.
 */
export function givenCase(query: Query): (name: string) => string {
  const sent = decodeName(query.bytes, HEADER_BYTES).match(/(?:\\.|[^.\\])+\./g) ?? [];
  const given = decodeName(query.name);
  return (name) => {
    let shared = 0;
    for (const label of sent) {
      if (!name.startsWith(label, shared)) break;
      shared += label.length;
    }
    return given.slice(0, shared) + name.slice(shared);
  };
}

/** The name on the wire with the case of every letter turned whose bit is set. */
function withRandomCase(name: Uint8Array, bits: Uint8Array): Uint8Array {
  return name.map((byte, at) => {
    const turn = ((bits[at >>> 3] as number) >>> (at & 7)) & 1;
    return turn === 1 && isLetter(byte) ? byte ^ 0x20 : byte;
  });
}

/** No length byte is as great as a letter. */
function isLetter(byte: number): boolean {
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}
