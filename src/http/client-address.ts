import { type IpAddress, tryParseIp, unmapIp } from "../addr/ip.ts";
import { type Prefix, parsePrefix, prefixContains } from "../addr/prefix.ts";
import { tryParseSocketAddress } from "../addr/socket-address.ts";

/** What the listener knows of the connection that a request came over. */
export type Connection =
  | { readonly kind: "unix" }
  | {
      readonly kind: "tcp";
      /** The peer's address as the socket gives it. */
      readonly peer: string;
      /** Whether the connection itself is TLS. */
      readonly encrypted: boolean;
    };

/** Whose forwarding headers are believed. */
export interface TrustedProxies {
  readonly unix: boolean;
  readonly prefixes: readonly Prefix[];
}

/** Who sent a request, and over what. */
export interface Caller {
  /** The client's address, never IPv4-mapped; null where a peer on a unix socket named none. */
  readonly address: IpAddress | null;
  /** Whether the client's own connection may be answered: HTTPS, or a person on this machine. */
  readonly secure: boolean;
  /** Whether the peer is a trusted proxy. */
  readonly viaTrustedProxy: boolean;
  /** Whether forwarding headers came from a peer that is not trusted; they were ignored. */
  readonly untrustedForwarding: boolean;
}

/** RFC 1122 section 3.2.1.3 and RFC 4291 section 2.5.3. */
const LOOPBACK = ["127.0.0.0/8", "::1/128"].map(parsePrefix);

/** Headers that only a proxy adds. */
const FORWARDING_HEADERS = ["x-forwarded-for", "x-forwarded-proto", "forwarded", "x-real-ip"];

/** A port is tolerated behind a forwarded address; where there is none, none is needed. */
const NO_PORT = 0;

/**
 * Tells who sent a request.
 *
 * Forwarding headers are read only from trusted peers; by default they are off, since anyone can
 * write them.
 */
export function identifyCaller(
  connection: Connection,
  headers: Headers,
  trusted: TrustedProxies,
): Caller {
  const isUnix = connection.kind === "unix";
  const encrypted = !isUnix && connection.encrypted;
  const peer = isUnix ? null : parsePeer(connection.peer);
  // What is no address is nobody, and so not trusted: only a unix socket has no address by its kind.
  const viaTrustedProxy = isUnix ? trusted.unix : peer !== null && isTrusted(peer, trusted);
  const forwarded = FORWARDING_HEADERS.some((name) => headers.has(name));
  if (!viaTrustedProxy) {
    return {
      address: peer,
      secure: encrypted || (isLoopback(peer) && !forwarded),
      viaTrustedProxy,
      untrustedForwarding: forwarded,
    };
  }
  const protocols = headers.get("x-forwarded-proto");
  return {
    address: forwardedAddress(peer, headers.get("x-forwarded-for"), trusted),
    secure:
      protocols === null
        ? encrypted || (isLoopback(peer) && !forwarded)
        : protocols.split(",").every((protocol) => protocol.trim().toLowerCase() === "https"),
    viaTrustedProxy,
    untrustedForwarding: false,
  };
}

/** Walks the list from its right end, past trusted proxies; garbage ends the walk. */
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
  // A link-local peer carries the zone it came through.
  const address = tryParseIp(text.split("%", 1)[0] ?? "");
  return address === null ? null : unmapIp(address);
}

function isTrusted(address: IpAddress, trusted: TrustedProxies): boolean {
  return trusted.prefixes.some((prefix) => prefixContains(prefix, address));
}

function isLoopback(address: IpAddress | null): boolean {
  return address !== null && LOOPBACK.some((prefix) => prefixContains(prefix, address));
}
