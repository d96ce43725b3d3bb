import { BPF, BPF_INDEX, type BpfInstruction, encodeBpf } from "../../platform/linux.ts";
import { EXTENSION_HEADERS, IPV6_HEADER_BYTES, NEXT_HEADER_ICMPV6, TYPE } from "./packet.ts";

/** Types that the socket receives: the four errors and the echo reply. */
const PASSED_TYPES = Object.values(TYPE).filter((type) => type !== TYPE.echoRequest);

/** The 32 bytes of ICMP6_FILTER, in which a set bit blocks a type; RFC 3542 section 3.2. */
export function encodeTypeFilter(
  passed: readonly number[] = PASSED_TYPES,
): Uint8Array<ArrayBuffer> {
  const words = new Uint32Array(new ArrayBuffer(32)).fill(0xffffffff);
  for (const type of passed) {
    words[type >>> 5] = (words[type >>> 5] as number) & ~(1 << (type & 31));
  }
  return new Uint8Array(words.buffer);
}

/** Offsets from the ICMPv6 type byte on. */
const IDENTIFIER = 4;
const QUOTED = 8;
const QUOTED_NEXT_HEADER = QUOTED + 6;
const QUOTED_EXTENSION = QUOTED + IPV6_HEADER_BYTES;
const QUOTED_TYPE = QUOTED_EXTENSION;
const QUOTED_IDENTIFIER = QUOTED_TYPE + IDENTIFIER;

const { loadByte: LOAD_BYTE, jumpIfEqual: JUMP_IF_EQUAL, returnConstant: RETURN } = BPF;
const { loadByte: LOAD_INDEXED, add: ADD, shiftLeft: SHIFT_LEFT, setIndex: SET_INDEX } = BPF_INDEX;
const PASS = 0xffffffff;
const DROP = 0;

/**
 * The classic BPF program that drops other programs' packets: it passes echo replies whose identifier
 * has a tag in its high byte, and errors about an echo request with such an identifier. Probes have no
 * extension headers, but a machine on the way may add one to the invoking packet of an error.
 *
 * @param tag 8 bits
 * @param other a second tag
 */
export function encodeTagProgram(tag: number, other = tag): Uint8Array<ArrayBuffer> {
  const [extension, echo, pass, drop] = [10, 16, 21, 22];
  /** Its jump targets are indexes into the program. */
  const program: readonly BpfInstruction[] = [
    /*  0 */ [LOAD_BYTE, 0],
    /*  1 */ [JUMP_IF_EQUAL, TYPE.echoReply, 2, 4],
    /*  2 */ [LOAD_BYTE, IDENTIFIER],
    /*  3 */ [JUMP_IF_EQUAL, tag, pass, 20],
    /*  4 */ [LOAD_BYTE, QUOTED_NEXT_HEADER],
    /*  5 */ [JUMP_IF_EQUAL, NEXT_HEADER_ICMPV6, echo, 6],
    ...EXTENSION_HEADERS.map((header, at): BpfInstruction => {
      const isLast = at === EXTENSION_HEADERS.length - 1;
      return [JUMP_IF_EQUAL, header, extension, isLast ? drop : 7 + at];
    }),
    /* 10 */ [LOAD_BYTE, QUOTED_EXTENSION],
    /* 11 */ [JUMP_IF_EQUAL, NEXT_HEADER_ICMPV6, 12, drop],
    /* 12 */ [LOAD_BYTE, QUOTED_EXTENSION + 1],
    /* 13 */ [ADD, 1],
    /* 14 */ [SHIFT_LEFT, 3],
    /* 15 */ [SET_INDEX, 0],
    /* 16 */ [LOAD_INDEXED, QUOTED_TYPE],
    /* 17 */ [JUMP_IF_EQUAL, TYPE.echoRequest, 18, drop],
    /* 18 */ [LOAD_INDEXED, QUOTED_IDENTIFIER],
    /* 19 */ [JUMP_IF_EQUAL, tag, pass, 20],
    /* 20 */ [JUMP_IF_EQUAL, other, pass, drop],
    /* 21 */ [RETURN, PASS],
    /* 22 */ [RETURN, DROP],
  ];
  return encodeBpf(
    program.map(([operation, operand, whenTrue, whenFalse], index) => {
      const next = index + 1;
      return [operation, operand, (whenTrue ?? next) - next, (whenFalse ?? next) - next];
    }),
  );
}

/**
 * The classic BPF program that passes TCP segments to some ports only.
 *
 * @param ports at most 255
 */
export function encodePortsProgram(ports: readonly number[]): Uint8Array<ArrayBuffer> {
  return encodeBpf([
    [BPF.loadHalf, 2],
    ...ports.map((port, at): BpfInstruction => [JUMP_IF_EQUAL, port, ports.length - at]),
    [RETURN, DROP],
    [RETURN, PASS],
  ]);
}
