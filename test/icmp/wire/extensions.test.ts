import { describe, expect, test } from "bun:test";
import { splitExtensions } from "../../../src/icmp/wire/icmp-error.ts";
import { decodeMessage, internetChecksum } from "../../../src/icmp/wire/packet.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { hex, hexAddress } from "../hex.ts";

const QUOTATION = "60".repeat(128);
const MPLS = "0008 01 01 05dc1 b 01";
const LABEL = { label: 0x05dc1, trafficClass: 5, bottomOfStack: true, ttl: 1 };

/** An error that states `words` as the length of its quotation. */
function split(type: number, words: number, body: string) {
  const message = decodeMessage(
    hex(
      `${type.toString(16).padStart(2, "0")}000000 ${words.toString(16).padStart(2, "0")}000000 ${body}`,
    ),
  );
  if (message?.kind !== "error") throw new Error("no error");
  return splitExtensions(message);
}

describe("where extensions are", () => {
  test.each([
    ["behind the length stated", 3, 16, `${QUOTATION} 2000 0000 ${MPLS}`, 128, [LABEL]],
    [
      "behind a longer length",
      1,
      17,
      `${QUOTATION} ${"00".repeat(8)} 2000 0000 ${MPLS}`,
      136,
      [LABEL],
    ],
    ["behind 128 bytes where none is stated", 3, 0, `${QUOTATION} 2000 0000 ${MPLS}`, 128, [LABEL]],
    ["with a right checksum", 3, 16, `${QUOTATION} 2000 be19 ${MPLS}`, 128, [LABEL]],
    ["with a wrong checksum: none", 3, 16, `${QUOTATION} 2000 be1a ${MPLS}`, 128, []],
    ["of another version: none", 3, 16, `${QUOTATION} 1000 0000 ${MPLS}`, 128, []],
    ["a long quotation and no length: none", 3, 0, `${QUOTATION} 6000 0000`, 132, []],
    ["a length beyond the end: none", 3, 255, QUOTATION, 128, []],
    ["a quotation of 48 bytes", 3, 0, "60".repeat(48), 48, []],
    ["a Packet Too Big has none", 2, 0, `${QUOTATION} 2000 0000 ${MPLS}`, 140, []],
    ["a Parameter Problem has none", 4, 0, `${QUOTATION} 2000 0000 ${MPLS}`, 140, []],
    ["nothing behind the quotation", 3, 16, QUOTATION, 128, []],
  ] as const)("%s", (_name, type, words, body, quotationBytes, mpls) => {
    const { invokingPacket: quotation, extensions } = split(type, words, body);
    expect(quotation).toHaveLength(quotationBytes);
    expect(extensions.mpls).toEqual([...mpls]);
  });

  test("the right checksum of the table is right", () => {
    expect(internetChecksum(hex(`2000 be19 ${MPLS}`))).toBe(0);
  });
});

function objects(text: string) {
  return split(3, 16, `${QUOTATION} 2000 0000 ${text}`).extensions;
}

describe("MPLS label stacks", () => {
  test.each([
    ["no label", "0004 01 01", []],
    [
      "two labels",
      "000c 01 01 00010 0 02 fffff f ff",
      [
        { label: 0x10, trafficClass: 0, bottomOfStack: false, ttl: 2 },
        { label: 0xfffff, trafficClass: 7, bottomOfStack: true, ttl: 255 },
      ],
    ],
    [
      "a label cut short",
      "000a 01 01 00010 0 02 ffff",
      [{ label: 0x10, trafficClass: 0, bottomOfStack: false, ttl: 2 }],
    ],
    ["an object of another class before it", `0006 f0 01 abcd ${MPLS}`, [LABEL]],
    ["another type of the class", "0008 01 02 05dc1 b 01", []],
    ["an object longer than the rest", `${MPLS} 0010 01 01 05dc1 b 01`, [LABEL]],
    ["an object shorter than its header", `${MPLS} 0003 01 01 05dc1 b 01`, [LABEL]],
    ["an object of length 0", `0000 01 01 ${MPLS}`, []],
  ] as const)("%s", (_name, bytes, mpls) => {
    expect(objects(bytes).mpls).toEqual([...mpls]);
  });
});

test("no more objects are read than an honest router sends", () => {
  expect(objects(`${MPLS} `.repeat(40)).mpls).toHaveLength(32);
});

describe("interface information", () => {
  const none = { index: null, address: null, name: null, mtuBytes: null };
  const address = hexAddress("2001:db8::5");
  test.each([
    ["an index", "0008 02 08 00000007", { ...none, role: "incoming", index: 7 }],
    [
      "all four, outgoing",
      `0028 02 8f 00000007 0002 0000 ${address} 05 65746830 00 00 00 000005dc`,
      {
        role: "outgoing",
        index: 7,
        address: parseIpv6("2001:db8::5"),
        name: "eth0",
        mtuBytes: 1500,
      },
    ],
    ["an IPv4 address, next hop", "000c 02 c4 0001 0000 c0000207", { ...none, role: "next-hop" }],
    ["an MTU, sub-IP", "0008 02 41 00000500", { ...none, role: "sub-ip", mtuBytes: 1280 }],
    ["nothing but a role", "0004 02 80", { ...none, role: "outgoing" }],
    [
      "a name with control characters",
      "000c 02 02 08 65 1b 5b 74 68 00 00",
      { ...none, role: "incoming", name: "e\ufffd[th" },
    ],
    [
      "a name that turns the direction of text",
      "000c 02 02 08 65 e280ae 74 68 30",
      { ...none, role: "incoming", name: "e\ufffdth0" },
    ],
    ["an index cut short: skipped", "0006 02 08 0000", null],
    ["an address of unknown family: skipped", `0018 02 04 0003 0000 ${address}`, null],
    ["an address cut short: skipped", "000a 02 04 0002 0000 2001", null],
    ["a name longer than the object: skipped", "0008 02 02 09 657468", null],
    ["a name of length 0: skipped", "0008 02 02 00 657468", null],
    ["a name longer than 63 bytes: skipped", `0048 02 02 41 ${"61".repeat(67)}`, null],
    ["no name where one is said to be: skipped", "0004 02 02", null],
    ["an MTU cut short: skipped", "0006 02 01 0000", null],
  ] as const)("%s", (_name, bytes, expected) => {
    const { interfaces } = objects(`${bytes} ${MPLS}`);
    expect(interfaces as unknown).toEqual(expected === null ? [] : [expected]);
    expect(objects(`${bytes} ${MPLS}`).mpls).toEqual([LABEL]);
  });
});

test("an error without extensions has none", () => {
  expect(split(1, 0, "60").extensions).toEqual({ mpls: [], interfaces: [] });
});
