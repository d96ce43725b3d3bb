import { internetChecksum } from "./checksum.ts";

/** Bytes of random cookie at the start of the payload, by which a reply proves that it saw the request. */
export const COOKIE_BYTES = 8;

/** Payload of a probe in bytes, as much as `ping` sends; a probe is then 104 bytes of IPv6 and never too big. */
export const PAYLOAD_BYTES = 56;

/**
 * The payload of a probe: the cookie, then a word that cancels the sequence and the cookie out of the
 * checksum, so that all probes of a run have the same checksum and routers that choose among equal
 * paths by the first four bytes of ICMPv6 send them one way.
 */
export function encodePayload(sequence: number, cookie: Uint8Array): Uint8Array {
  const payload = new Uint8Array(PAYLOAD_BYTES);
  payload.set(cookie);
  payload[COOKIE_BYTES] = sequence >>> 8;
  payload[COOKIE_BYTES + 1] = sequence & 0xff;
  const balance = internetChecksum(payload);
  payload[COOKIE_BYTES] = balance >>> 8;
  payload[COOKIE_BYTES + 1] = balance & 0xff;
  return payload;
}
