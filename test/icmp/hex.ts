import type { Ipv6Address } from "../../src/addr/ipv6.ts";
import { parseIpv6 } from "../addr/parse.ts";

/** Bytes from hex digits; white space is for the reader. */
export function hex(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.fromHex(text.replaceAll(/\s/g, ""));
}

/** The 32 hex digits of an address. */
export function hexAddress(text: string): string {
  const { word0, word1, word2, word3 }: Ipv6Address = parseIpv6(text);
  return [word0, word1, word2, word3].map((word) => word.toString(16).padStart(8, "0")).join("");
}
