import { type IpAddress, tryParseIp, unmapIp } from "../addr/ip.ts";
import { LOOPBACK, type Prefix, prefixContains } from "../addr/prefix.ts";
import { tryParseSocketAddress } from "../addr/socket-address.ts";
import type { Config } from "../config/settings.ts";

/** The connection of a request. */
export interface Connection {
  /** The peer's address as the socket gives it; null on a unix socket. */
  readonly peer: string | null;
  /** True if the connection itself is TLS. */
  readonly encrypted: boolean;
}

/** The operator's settings for peers and clients. */
type Trust = Pick<Config, "trustedProxies" | "plainHttpFrom" | "keylessFrom">;

/** The sender of a request, and the connection it used. */
export type Caller = ReturnType<typeof identifyCaller>;

/** Headers that only a proxy adds. */
const FORWARDING_HEADERS =
  "x-forwarded-for x-forwarded-proto x-forwarded-host forwarded x-real-ip via".split(" ");

/** A forwarded address may have a port, which is ignored. */
const NO_PORT = 0;

/** Identifies the client of a request. Only trusted peers may name it, because anyone can write headers. */
export function identifyCaller(
  connection: Connection,
  headers: Headers,
  { trustedProxies: trusted, plainHttpFrom, keylessFrom }: Trust,
) {
  const peer = parsePeer(connection.peer);
  // A TCP peer without a valid address is not trusted.
  const viaTrustedProxy = connection.peer === null ? trusted.unix : isIn(trusted.prefixes, peer);
  const forwarded = FORWARDING_HEADERS.some((name) => headers.has(name));
  const untrustedForwarding = forwarded && !viaTrustedProxy;
  const isDirect = connection.encrypted || (isIn(LOOPBACK, peer) && !forwarded);
  const trustedHeader = (name: string) => (viaTrustedProxy ? headers.get(name) : null);
  const address = forwardedAddress(peer, trustedHeader("x-forwarded-for"), trusted.prefixes);
  const protocols = trustedHeader("x-forwarded-proto")?.toLowerCase().split(",");
  const usedHttps = protocols?.every((protocol) => protocol.trim() === "https") ?? isDirect;
  return {
    /** The client's address, never IPv4-mapped; null if a peer on a unix socket sent none. */
    address,
    /** True if the client used HTTPS, is on this machine, or may use plain HTTP. */
    secure: usedHttps || isIn(plainHttpFrom, address),
    viaTrustedProxy,
    /** True if a peer that is not trusted sent forwarding headers, which were ignored. */
    untrustedForwarding,
    /** True if the client needs a key; the address of an untrusted proxy says nothing about its clients. */
    needsKey: untrustedForwarding || !isIn(keylessFrom, address),
  };
}

/**
 * True if a browser sent the request for a page of another site: by Fetch Metadata, or without it by `Origin`, which
 * browsers do not send with a GET to the page's own origin.
 */
export function isFromOtherSite(headers: Headers): boolean {
  const site = headers.get("sec-fetch-site");
  return site === null ? headers.has("origin") : !["same-origin", "none"].includes(site);
}

/** The nearest address that is not a trusted proxy: walks the list from its right end, up to an invalid entry. */
function forwardedAddress(peer: IpAddress | null, list: string | null, trusted: readonly Prefix[]) {
  let nearest = peer;
  for (const entry of list?.split(",").reverse() ?? []) {
    const endpoint = tryParseSocketAddress(entry.trim(), NO_PORT);
    if (endpoint === null) break;
    nearest = unmapIp(endpoint.address);
    if (!isIn(trusted, nearest)) break;
  }
  return nearest;
}

/** A peer's address, without the zone that a link-local one has. */
function parsePeer(text: string | null): IpAddress | null {
  const address = tryParseIp(text?.replace(/%.*/, "") ?? "");
  return address && unmapIp(address);
}

function isIn(prefixes: readonly Prefix[], address: IpAddress | null): boolean {
  return address !== null && prefixes.some((prefix) => prefixContains(prefix, address));
}
