import { describe, expect, test } from "bun:test";
import { encodeTagProgram, encodeTypeFilter } from "../../../src/icmp/wire/filter.ts";
import { hex, hexAddress } from "../hex.ts";

test("the type filter passes errors and echo replies only", () => {
  const words = new Uint32Array(encodeTypeFilter().buffer);
  expect([...words].map((word) => word.toString(16))).toEqual([
    "ffffffe1",
    ...["ffffffff", "ffffffff", "ffffffff"],
    "fffffffd",
    ...["ffffffff", "ffffffff", "ffffffff"],
  ]);
});

/** A second reader of classic BPF, as simple as the operations that the program uses. */
function passes(program: Uint8Array, packet: Uint8Array): boolean {
  const view = new DataView(program.buffer);
  let accumulator = 0;
  let index = 0;
  for (let at = 0; ; at++) {
    const operand = view.getUint32(at * 8 + 4, true);
    switch (view.getUint16(at * 8, true)) {
      case 0x30:
      case 0x50: {
        const from = operand + (view.getUint16(at * 8, true) === 0x50 ? index : 0);
        if (from >= packet.length) return false;
        accumulator = packet[from] as number;
        break;
      }
      case 0x04:
        accumulator += operand;
        break;
      case 0x64:
        accumulator <<= operand;
        break;
      case 0x07:
        index = accumulator;
        break;
      case 0x15:
        at += view.getUint8(at * 8 + (accumulator === operand ? 2 : 3));
        break;
      case 0x06:
        return operand > 0;
      default:
        throw new Error(`operation at ${at}`);
    }
  }
}

const ECHO = "80000000 a5010001";

describe("the tag program", () => {
  const quoting = (nextHeader: string, rest: string) =>
    `03000000 00000000 60000000 0040${nextHeader}01 ${hexAddress("::1")}${hexAddress("::2")} ${rest}`;
  test.each([
    ["an echo reply with the tag", "81000000 a5010001", true],
    ["an echo reply with another tag", "81000000 a4a50001", false],
    ["an error about an echo request with the tag", quoting("3a", "80000000 a5010001"), true],
    ["an error about one with another tag", quoting("3a", "80000000 a4a50001"), false],
    ["an error about an echo reply", quoting("3a", "81000000 a5010001"), false],
    ["an error about UDP", quoting("11", "80000000 a5010001"), false],
    ["an error that ends before the identifier", quoting("3a", "80000000"), false],
    ["hop-by-hop options put in", quoting("00", `3a000000 00000000 ${ECHO}`), true],
    ["hop-by-hop options of 16 bytes", quoting("00", `3a010000 ${"0".repeat(24)} ${ECHO}`), true],
    ["a routing header", quoting("2b", `3a000000 00000000 ${ECHO}`), true],
    ["a fragment header", quoting("2c", `3a000000 00000000 ${ECHO}`), true],
    ["destination options", quoting("3c", `3a000000 00000000 ${ECHO}`), true],
    [
      "hop-by-hop options, another tag",
      quoting("00", "3a000000 00000000 80000000 a4010001"),
      false,
    ],
    ["hop-by-hop options, UDP behind", quoting("00", `11000000 00000000 ${ECHO}`), false],
    ["hop-by-hop options that end early", quoting("00", "3a000000"), false],
    [
      "hop-by-hop options longer than the packet",
      quoting("00", `3aff0000 00000000 ${ECHO}`),
      false,
    ],
    ["two headers put in", quoting("00", `3c000000 00000000 3a000000 00000000 ${ECHO}`), false],
    ["an unknown header", quoting("33", `3a000000 00000000 ${ECHO}`), false],
  ])("%s", (_name, packet, expected) => {
    expect(passes(encodeTagProgram(0xa5), hex(packet))).toBe(expected);
  });
});
