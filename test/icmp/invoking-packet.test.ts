import { expect, test } from "bun:test";
import { decodeInvokingPacket } from "../../src/icmp/message.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { hex, hexAddress } from "./hex.ts";

const SOURCE = hexAddress("2001:db8::1");
const DESTINATION = hexAddress("2001:db8:ffff::2");
const ECHO = "80 00 beef 1234 0007 0102030405060708";

/** A fixed header with this next header and hop limit 1. */
function header(nextHeader: string, version = "6"): string {
  return `${version}00abcde 0040 ${nextHeader} 01 ${SOURCE} ${DESTINATION}`;
}

const echo = { identifier: 0x1234, sequence: 7, data: hex("0102030405060708") };

test.each([
  ["an echo request", `${header("3a")} ${ECHO}`, echo],
  ["40 + 8 bytes", `${header("3a")} 80 00 beef 1234 0007`, { ...echo, data: hex("") }],
  ["half a cookie", `${header("3a")} 80 00 beef 1234 0007 0102`, { ...echo, data: hex("0102") }],
  ["behind hop-by-hop options", `${header("00")} 3a00 0104 0000 0000 ${ECHO}`, echo],
  ["behind a long routing header", `${header("2b")} 3a01 ${"00".repeat(14)} ${ECHO}`, echo],
  ["behind destination options", `${header("3c")} 3a00 0104 0000 0000 ${ECHO}`, echo],
  ["behind the header of a first fragment", `${header("2c")} 3a00 0001 00000001 ${ECHO}`, echo],
  [
    "behind all four",
    `${header("00")} 3c00 0104 00000000 2b00 0104 00000000 2c00 0000 00000000 3a00 0001 00000001 ${ECHO}`,
    echo,
  ],
  ["a later fragment", `${header("2c")} 3a00 0009 00000001 ${ECHO}`, null],
  ["UDP", `${header("11")} 80 00 beef 1234 0007`, null],
  ["an echo reply", `${header("3a")} 81 00 beef 1234 0007 0102`, null],
  ["a message that ends early", `${header("3a")} 80 00 beef 1234`, null],
  ["an extension header that ends early", `${header("00")} 3a00 0104 0000`, null],
  ["an extension header longer than the rest", `${header("00")} 3aff 0104 00000000 ${ECHO}`, null],
  ["nine extension headers", `${header("3c")} ${"3c00 0104 00000000".repeat(9)} ${ECHO}`, null],
] as const)("the echo request in an invoking packet: %s", (_name, bytes, expected) => {
  expect(decodeInvokingPacket(hex(bytes))).toEqual({
    source: parseIpv6("2001:db8::1"),
    destination: parseIpv6("2001:db8:ffff::2"),
    echo: expected === null ? null : { kind: "echo-request", ...expected },
  });
});

test.each([
  ["nothing", ""],
  ["39 bytes", header("3a").replaceAll(" ", "").slice(0, 78)],
  ["IPv4", `${header("3a", "4")} ${ECHO}`],
])("not an invoking packet: %s", (_name, bytes) => {
  expect(decodeInvokingPacket(hex(bytes))).toBeNull();
});
