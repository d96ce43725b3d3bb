import type { IpAddress } from "../../src/addr/ip.ts";
import { ipv4FromWord } from "../../src/addr/ipv4.ts";
import { type Ipv6Address, ipv6FromBytes, ipv6ToBytes } from "../../src/addr/ipv6.ts";
import type { Prefix } from "../../src/addr/prefix.ts";

/** The address whose 128 bits are this integer. */
export function ipv6FromInteger(value: bigint): Ipv6Address {
  return ipv6FromBytes(Uint8Array.fromHex(value.toString(16).padStart(32, "0")));
}

/** The bits of an address as an integer. */
export function integerOf(ip: IpAddress): bigint {
  return ip.version === 4 ? BigInt(ip.word) : BigInt(`0x${ipv6ToBytes(ip).toHex()}`);
}

/** First and last address of an IPv6 block and its neighbours, null where the address space ends; in BigInt, unlike src. */
export function edgesOf({ network, length }: Prefix) {
  const first = integerOf(network);
  const last = first | ((1n << BigInt(128 - length)) - 1n);
  return {
    first: ipv6FromInteger(first),
    last: ipv6FromInteger(last),
    before: first === 0n ? null : ipv6FromInteger(first - 1n),
    after: last === (1n << 128n) - 1n ? null : ipv6FromInteger(last + 1n),
  };
}

/** As `edgesOf`, for an IPv4 block. */
export function ipv4EdgesOf({ network, length }: Prefix) {
  const first = Number(integerOf(network));
  const last = first + 2 ** (32 - length) - 1;
  return {
    first: ipv4FromWord(first),
    last: ipv4FromWord(last),
    before: first === 0 ? null : ipv4FromWord(first - 1),
    after: last === 2 ** 32 - 1 ? null : ipv4FromWord(last + 1),
  };
}
