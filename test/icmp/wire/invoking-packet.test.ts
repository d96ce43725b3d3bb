import { expect, test } from "bun:test";
import { decodeInvokingPacket } from "../../../src/icmp/wire/packet.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { hex, hexAddress } from "../hex.ts";

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
  ["hop-by-hop options put in", `${header("00")} 3a00 0104 0000 0000 ${ECHO}`, echo],
  [
    "two headers put in",
    `${header("00")} 3c00 ${"00".repeat(6)} 3a01 ${"00".repeat(14)} ${ECHO}`,
    echo,
  ],
  ["half a cookie", `${header("3a")} 80 00 beef 1234 0007 0102`, { ...echo, data: hex("0102") }],
] as const)("the echo request in an invoking packet: %s", (_name, bytes, expected) => {
  expect(decodeInvokingPacket(hex(bytes))).toEqual({
    flowLabel: 0xabcde,
    destination: parseIpv6("2001:db8:ffff::2"),
    checksum: 0xbeef,
    echo: { kind: "echo-request", ...expected },
  });
});

test.each([
  ["UDP", `${header("11")} ${ECHO}`],
  ["hop-by-hop options before UDP", `${header("00")} 1100 0104 0000 0000 ${ECHO}`],
  ["hop-by-hop options longer than the rest", `${header("00")} 3aff 0104 0000 0000 ${ECHO}`],
  ["nothing but hop-by-hop options", `${header("00")} 3a`],
  ["an echo reply", `${header("3a")} 81 00 beef 1234 0007 0102`],
  ["a message that ends early", `${header("3a")} 80 00 beef 1234`],
  ["nothing", ""],
  ["39 bytes", header("3a").replaceAll(" ", "").slice(0, 78)],
  ["IPv4", `${header("3a", "4")} ${ECHO}`],
])("not the invoking packet of a probe: %s", (_name, bytes) => {
  expect(decodeInvokingPacket(hex(bytes))).toBeNull();
});
