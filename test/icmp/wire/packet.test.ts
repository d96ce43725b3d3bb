import { describe, expect, test } from "bun:test";
import {
  decodeMessage,
  encodeEchoRequest,
  internetChecksum,
} from "../../../src/icmp/wire/packet.ts";
import { hex } from "../hex.ts";

describe("encodeEchoRequest", () => {
  const cookie = hex("0102030405060708");

  test.each([
    [0x1234, 0x0001, 10, "80 00 0000 1234 0001 0102030405060708 dda4"],
    [0xffff, 0xfffe, 12, "80 00 0000 ffff fffe 0102030405060708 efd8 0000"],
    [0, 0, 10, "80 00 0000 0000 0000 0102030405060708 efd9"],
  ])("identifier %p, sequence %p, %p bytes of payload", (identifier, sequence, bytes, expected) => {
    expect(encodeEchoRequest(identifier, sequence, cookie, bytes)).toEqual(hex(expected));
  });

  test("every probe of a flow label has the same checksum, and other labels have others", () => {
    const checksumsOf = (flowLabel: number) => {
      const checksums = Array.from({ length: 1000 }, (_, index) =>
        internetChecksum(
          encodeEchoRequest(
            (index * 7919) & 0xffff,
            (index * 104729) & 0xffff,
            cookie.map((byte) => byte * index),
            56,
            flowLabel,
          ),
        ),
      );
      return new Set(checksums);
    };
    // In ones' complement, 0xffff of the last is the 0 of the first.
    const labels = [0, 0x10, 0x20, 0x12345, 0xf_fff0];
    for (const label of labels) expect(checksumsOf(label).size).toBe(1);
    expect(new Set(labels.flatMap((label) => [...checksumsOf(label)])).size).toBe(4);
  });
});

describe("decodeMessage", () => {
  test.each([
    [
      "an echo reply",
      "81 00 abcd 1234 8001 deadbeef",
      { kind: "echo-reply", identifier: 0x1234, sequence: 0x8001, data: hex("deadbeef") },
    ],
    [
      "an echo reply without data",
      "81 00 abcd 1234 8001",
      { kind: "echo-reply", identifier: 0x1234, sequence: 0x8001, data: hex("") },
    ],
    [
      "an echo request",
      "80 00 0000 0001 0002 03",
      { kind: "echo-request", identifier: 1, sequence: 2, data: hex("03") },
    ],
    [
      "a destination unreachable",
      "01 04 abcd 00000000 60",
      { kind: "error", type: 1, code: 4, parameter: 0, quotedWords: 0, body: hex("60") },
    ],
    [
      "a packet too big with its MTU",
      "02 00 abcd 00000500 60",
      { kind: "error", type: 2, code: 0, parameter: 1280, quotedWords: 0, body: hex("60") },
    ],
    [
      "a time exceeded with the length of its quotation",
      "03 00 abcd 10000000",
      { kind: "error", type: 3, code: 0, parameter: 0x10000000, quotedWords: 16, body: hex("") },
    ],
    [
      "a parameter problem with its pointer",
      "04 01 abcd ffffffff 60",
      { kind: "error", type: 4, code: 1, parameter: 0xffffffff, quotedWords: 255, body: hex("60") },
    ],
    ["another type", "87 00 abcd 00000000 fe80", null],
    ["nothing", "", null],
    ["a header that ends early", "81 00 abcd 1234 80", null],
  ] as const)("%s", (_name, bytes, expected) => {
    expect(decodeMessage(hex(bytes))).toEqual(expected);
  });

  test("reads from the middle of a buffer", () => {
    const bytes = hex("ffff 81 00 abcd 1234 8001 ffff").subarray(2, 10);
    expect(decodeMessage(bytes)).toMatchObject({ identifier: 0x1234, sequence: 0x8001 });
  });
});
