import { type IpAddress, tryParseIp, unmapIp } from "../addr/ip.ts";
import { parsePrefix, prefixContains } from "../addr/prefix.ts";
import { tryParseSocketAddress } from "../addr/socket-address.ts";
import type { Config } from "../config/settings.ts";

/** The connection that a request came over. */
export type Connection =
  | { readonly kind: "unix" }
  | {
      readonly kind: "tcp";
      /** The peer's address as the socket gives it. */
      readonly peer: string;
      /** Whether the connection itself is TLS. */
      readonly encrypted: boolean;
    };

/** The peers whose forwarding headers are trusted. */
type TrustedProxies = Config["trustedProxies"];

/** Who sent a request, and over what. */
export interface Caller {
  /** The client's address, never IPv4-mapped; null if a peer on a unix socket sent none. */
  readonly address: IpAddress | null;
  /** Whether the client used HTTPS, or is on this machine. */
  readonly secure: boolean;
  readonly viaTrustedProxy: boolean;
  /** Whether a peer that is not trusted sent forwarding headers, which were ignored. */
  readonly untrustedForwarding: boolean;
}

/** RFC 1122 section 3.2.1.3 and RFC 4291 section 2.5.3. */
const LOOPBACK = ["127.0.0.0/8", "::1/128"].map(parsePrefix);

/** Headers that only a proxy adds. */
const FORWARDING_HEADERS = ["x-forwarded-for", "x-forwarded-proto", "forwarded", "x-real-ip"];

/** A forwarded address may have a port, which is ignored. */
const NO_PORT = 0;

/** Identifies the client of a request. Only trusted peers may name it, because anyone can write headers. */
export function identifyCaller(
  connection: Connection,
  headers: Headers,
  trusted: TrustedProxies,
): Caller {
  const peer = connection.kind === "unix" ? null : parsePeer(connection.peer);
  // A TCP peer without a valid address is not trusted.
  const viaTrustedProxy = connection.kind === "unix" ? trusted.unix : isTrusted(peer, trusted);
  const forwarded = FORWARDING_HEADERS.some((name) => headers.has(name));
  const protocols = viaTrustedProxy ? headers.get("x-forwarded-proto") : null;
  const isDirect =
    (connection.kind === "tcp" && connection.encrypted) || (isLoopback(peer) && !forwarded);
  return {
    address: viaTrustedProxy
      ? forwardedAddress(peer, headers.get("x-forwarded-for"), trusted)
      : peer,
    secure:
      protocols === null
        ? isDirect
        : protocols.split(",").every((protocol) => protocol.trim().toLowerCase() === "https"),
    viaTrustedProxy,
    untrustedForwarding: forwarded && !viaTrustedProxy,
  };
}

/** Walks the list from its right end past trusted proxies; an invalid entry ends the walk. */
function forwardedAddress(
  peer: IpAddress | null,
  list: string | null,
  trusted: TrustedProxies,
): IpAddress | null {
  let nearest = peer;
  for (const entry of list?.split(",").reverse() ?? []) {
    const endpoint = tryParseSocketAddress(entry.trim(), NO_PORT);
    if (endpoint === null) break;
    nearest = unmapIp(endpoint.address);
    if (!isTrusted(nearest, trusted)) break;
  }
  return nearest;
}

function parsePeer(text: string): IpAddress | null {
  // A link-local peer has its zone.
  const zone = text.indexOf("%");
  const address = tryParseIp(zone < 0 ? text : text.slice(0, zone));
  return address === null ? null : unmapIp(address);
}

function isTrusted(address: IpAddress | null, trusted: TrustedProxies): boolean {
  return address !== null && trusted.prefixes.some((prefix) => prefixContains(prefix, address));
}

function isLoopback(address: IpAddress | null): boolean {
  return address !== null && LOOPBACK.some((prefix) => prefixContains(prefix, address));
}
