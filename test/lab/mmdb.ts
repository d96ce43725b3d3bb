/** Makes files in the MaxMind DB format, version 2.0; https://maxmind.github.io/MaxMind-DB/. */
import { type Ipv6Address, ipv6FromWords } from "../../src/addr/ipv6.ts";
import { parsePrefix } from "../../src/addr/prefix.ts";

/** The value of a field of a record; numbers are unsigned with 32 bits. */
export type MmdbValue = string | number | { readonly [name: string]: MmdbValue };

export interface MmdbOptions {
  /** With 6, IPv4 is in ::/96. */
  readonly ipVersion?: 4 | 6;
  /** Bits of a record of the tree. */
  readonly recordSize?: 24 | 28 | 32;
  readonly databaseType?: string;
}

/** The types of values; the format's section "Output Data Section". */
const TYPE = { string: 2, uint32: 6, map: 7 } as const;

/** Where the tree ends without data. */
const EMPTY = -1;

/** Encodes a file with a record for each prefix; where prefixes overlap, the longest wins. */
export function encodeMmdb(
  records: readonly (readonly [prefix: string, record: MmdbValue])[],
  { ipVersion = 6, recordSize = 28, databaseType = "Test-ASN" }: MmdbOptions = {},
): Buffer {
  const data: Buffer[] = [];
  let dataBytes = 0;
  const blocks = records.map(([text, record]) => {
    const bytes = encodeValue(record);
    const offset = dataBytes;
    data.push(bytes);
    dataBytes += bytes.length;
    return { ...treePath(text, ipVersion), leaf: -2 - offset };
  });
  /** Two records for each node: the number of another node, EMPTY, or -2 minus an offset of data. */
  const nodes = [EMPTY, EMPTY];
  for (const { address, length, leaf } of blocks.toSorted((a, b) => a.length - b.length)) {
    let node = 0;
    for (let depth = 0; depth < length - 1; depth++) {
      const at = 2 * node + bitAt(address, depth);
      const next = nodes[at] as number;
      // A longer prefix divides the block of a shorter one.
      node = next >= 0 ? next : nodes.push(next, next) / 2 - 1;
      nodes[at] = node;
    }
    nodes[2 * node + bitAt(address, length - 1)] = leaf;
  }
  const nodeCount = nodes.length / 2;
  const SEPARATOR_BYTES = 16;
  const pointers = nodes.map((record) => {
    if (record >= 0) return record;
    return record === EMPTY ? nodeCount : nodeCount + SEPARATOR_BYTES + (-2 - record);
  });
  const metadata = {
    node_count: nodeCount,
    record_size: recordSize,
    ip_version: ipVersion,
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: Date.UTC(2026, 10, 1) / 1000,
    database_type: databaseType,
  };
  return Buffer.concat([
    encodeTree(pointers, recordSize),
    Buffer.alloc(SEPARATOR_BYTES),
    ...data,
    Buffer.from("abcdef4d61784d696e642e636f6d", "hex"),
    encodeValue(metadata),
  ]);
}

/** The bits of a prefix as the tree has them: those of IPv6, or of IPv4 alone at the front. */
function treePath(text: string, ipVersion: 4 | 6): { address: Ipv6Address; length: number } {
  const { network, length } = parsePrefix(text);
  if (network.version === 6) return { address: network, length };
  return ipVersion === 6
    ? { address: ipv6FromWords(0, 0, 0, network.word), length: 96 + length }
    : { address: ipv6FromWords(network.word, 0, 0, 0), length };
}

function bitAt({ word0, word1, word2, word3 }: Ipv6Address, depth: number): number {
  const word = [word0, word1, word2, word3][depth >> 5] as number;
  return (word >>> (31 - (depth & 31))) & 1;
}

function encodeTree(pointers: readonly number[], recordSize: number): Buffer {
  const nodeBytes = recordSize / 4;
  const tree = Buffer.alloc((pointers.length / 2) * nodeBytes);
  for (let node = 0; node < pointers.length / 2; node++) {
    const [left, right] = pointers.slice(2 * node, 2 * node + 2) as [number, number];
    const at = node * nodeBytes;
    const bytes = recordSize === 32 ? 4 : 3;
    tree.writeUIntBE(left % 2 ** (8 * bytes), at, bytes);
    tree.writeUIntBE(right % 2 ** (8 * bytes), at + nodeBytes - bytes, bytes);
    // With 28 bits, the byte in the middle has the first four bits of both.
    if (recordSize === 28) tree[at + 3] = ((left >>> 24) << 4) | (right >>> 24);
  }
  return tree;
}

function encodeValue(value: MmdbValue): Buffer {
  if (typeof value === "string") {
    const bytes = Buffer.from(value);
    return Buffer.concat([control(TYPE.string, bytes.length), bytes]);
  }
  if (typeof value === "number") {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    return Buffer.concat([control(TYPE.uint32, bytes.length), bytes]);
  }
  const entries = Object.entries(value);
  const pairs = entries.flatMap(([name, field]) => [encodeValue(name), encodeValue(field)]);
  return Buffer.concat([control(TYPE.map, entries.length), ...pairs]);
}

/** Type and size; up to 28 fits into the first byte, up to 284 into the second. */
function control(type: number, size: number): Buffer {
  return size < 29 ? Buffer.of((type << 5) | size) : Buffer.of((type << 5) | 29, size - 29);
}
