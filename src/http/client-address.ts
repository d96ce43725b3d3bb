import { type IpAddress, tryParseIp, unmapIp } from "../addr/ip.ts";
import { LOOPBACK, type Prefix, prefixContains } from "../addr/prefix.ts";
import { tryParseSocketAddress } from "../addr/socket-address.ts";
import type { Config } from "../config/settings.ts";

/** The connection that a request came over. */
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
  const isUnix = connection.peer === null;
  const peer = isUnix ? null : parsePeer(connection.peer);
  // A TCP peer without a valid address is not trusted.
  const viaTrustedProxy = isUnix ? trusted.unix : isIn(trusted.prefixes, peer);
  const forwarded = FORWARDING_HEADERS.some((name) => headers.has(name));
  const protocols = viaTrustedProxy ? headers.get("x-forwarded-proto") : null;
  const isDirect = connection.encrypted || (isIn(LOOPBACK, peer) && !forwarded);
  const address = viaTrustedProxy
    ? forwardedAddress(peer, headers.get("x-forwarded-for"), trusted.prefixes)
    : peer;
  const usedHttps =
    protocols === null
      ? isDirect
      : protocols.split(",").every((protocol) => protocol.trim().toLowerCase() === "https");
  const untrustedForwarding = forwarded && !viaTrustedProxy;
  return {
    /** The client's address, never IPv4-mapped; null if a peer on a unix socket sent none. */
    address,
    /** True if the client used HTTPS, is on this machine, or may use plain HTTP. */
    secure: usedHttps || isIn(plainHttpFrom, address),
    viaTrustedProxy,
    /** True if a peer that is not trusted sent forwarding headers, which were ignored. */
    untrustedForwarding,
    /** True if it needs a key; the address of a proxy that is not trusted says nothing about its clients. */
    needsKey: untrustedForwarding || !isIn(keylessFrom, address),
  };
}

/**
 * True if a page of another site made a browser send the request: by Fetch Metadata, or by its origin,
 * RFC 6454. A trusted proxy says under which origin the service is seen.
 */
export function isFromOtherSite(
  { url, headers }: Pick<Request, "url" | "headers">,
  { viaTrustedProxy }: Pick<Caller, "viaTrustedProxy">,
): boolean {
  const origin = headers.get("origin");
  const { protocol, host } = new URL(url);
  const forwarded = (name: string) =>
    viaTrustedProxy ? headers.get(name)?.split(",")[0]?.trim() : undefined;
  const scheme = forwarded("x-forwarded-proto") ?? protocol.slice(0, -1);
  const own = URL.parse(`${scheme}://${forwarded("x-forwarded-host") ?? host}`);
  return isCrossSite(headers) || (origin !== null && origin !== own?.origin);
}

/** True if a browser says that another site sent the request, and not its user or a page of this origin. */
export function isCrossSite(headers: Headers): boolean {
  return !["same-origin", "none"].includes(headers.get("sec-fetch-site") ?? "none");
}

/** Walks the list from its right end past trusted proxies; an invalid entry ends the walk. */
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

function parsePeer(text: string): IpAddress | null {
  // A link-local peer has its zone.
  const zone = text.indexOf("%");
  const address = tryParseIp(zone < 0 ? text : text.slice(0, zone));
  return address === null ? null : unmapIp(address);
}

function isIn(prefixes: readonly Prefix[], address: IpAddress | null): boolean {
  return address !== null && prefixes.some((prefix) => prefixContains(prefix, address));
}
