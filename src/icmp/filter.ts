import { BPF, type BpfInstruction, encodeBpf } from "../platform/linux.ts";
import { IPV6_HEADER_BYTES, NEXT_HEADER_ICMPV6, TYPE } from "./packet.ts";

/** Types that the socket receives: the four errors and the echo reply. */
const PASSED_TYPES = [
  TYPE.destinationUnreachable,
  TYPE.packetTooBig,
  TYPE.timeExceeded,
  TYPE.parameterProblem,
  TYPE.echoReply,
];

/** The 32 bytes of ICMP6_FILTER, in which a set bit blocks a type; RFC 3542 section 3.2. */
export function encodeTypeFilter(): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(new ArrayBuffer(32)).fill(0xffffffff);
  for (const type of PASSED_TYPES) {
    words[type >>> 5] = (words[type >>> 5] as number) & ~(1 << (type & 31));
  }
  return new Uint8Array(words.buffer);
}

/** Offsets from the ICMPv6 type byte on. */
const IDENTIFIER = 4;
const QUOTED = 8;
const QUOTED_NEXT_HEADER = QUOTED + 6;
const QUOTED_TYPE = QUOTED + IPV6_HEADER_BYTES;
const QUOTED_IDENTIFIER = QUOTED_TYPE + IDENTIFIER;

const { loadByte: LOAD_BYTE, jumpIfEqual: JUMP_IF_EQUAL, returnConstant: RETURN } = BPF;
const PASS = 0xffffffff;
const DROP = 0;

/**
 * The classic BPF program that drops other programs' packets: it passes echo replies whose identifier
 * has a tag in its high byte, and errors about an echo request with such an identifier. Probes have no
 * extension headers, so neither have the invoking packets of their errors.
 *
 * @param tag 8 bits
 * @param other a second one
 */
export function encodeTagProgram(tag: number, other = tag): Uint8Array<ArrayBuffer> {
  const pass = 11;
  const drop = 12;
  /** With jump targets as indexes into the program. */
  const program: readonly BpfInstruction[] = [
    /*  0 */ [LOAD_BYTE, 0],
    /*  1 */ [JUMP_IF_EQUAL, TYPE.echoReply, 2, 4],
    /*  2 */ [LOAD_BYTE, IDENTIFIER],
    /*  3 */ [JUMP_IF_EQUAL, tag, pass, 10],
    /*  4 */ [LOAD_BYTE, QUOTED_NEXT_HEADER],
    /*  5 */ [JUMP_IF_EQUAL, NEXT_HEADER_ICMPV6, 6, drop],
    /*  6 */ [LOAD_BYTE, QUOTED_TYPE],
    /*  7 */ [JUMP_IF_EQUAL, TYPE.echoRequest, 8, drop],
    /*  8 */ [LOAD_BYTE, QUOTED_IDENTIFIER],
    /*  9 */ [JUMP_IF_EQUAL, tag, pass, 10],
    /* 10 */ [JUMP_IF_EQUAL, other, pass, drop],
    /* 11 */ [RETURN, PASS],
    /* 12 */ [RETURN, DROP],
  ];
  return encodeBpf(
    program.map(([operation, operand, whenTrue, whenFalse], index) => {
      const next = index + 1;
      return [operation, operand, (whenTrue ?? next) - next, (whenFalse ?? next) - next];
    }),
  );
}
