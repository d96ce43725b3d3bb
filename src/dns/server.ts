import { formatIp, looksLikeIpv4 } from "../addr/ip.ts";
import { tryParseZoned } from "../addr/ipv6.ts";
import {
  formatSocketAddress,
  type SocketAddress,
  tryParseSocketAddress,
} from "../addr/socket-address.ts";

/** A server of a resolver: over UDP and TCP unless it names another protocol. */
export interface DnsServer extends SocketAddress {
  /** DNS over TLS (RFC 7858) or over HTTPS (RFC 8484). */
  readonly protocol?: "tls" | "https";
  /** The interface of a link-local address. */
  readonly zone?: string;
  /** The name in the server's certificate; without it, the certificate must have the address. */
  readonly name?: string;
  /** The path of an HTTPS server. */
  readonly path?: string;
}

/** The form that `tryParseDnsServer` accepts, for messages. */
export const DNS_SERVER_FORM =
  "an address, [IPv6]:port or IPv4:port, tls://address or https://address/path, the last two with #name if the certificate has a name";

const PORTS = { plain: 53, tls: 853, https: 443 } as const;

/** A protocol, an address with a port, a path, and a name. */
const FORM = /^(?:(tls|https):\/\/)?([^/#]+)(\/[!-"$-~]*)?(?:#([A-Za-z0-9.-]+))?$/;

/** An address with a zone, in brackets or alone. */
const ZONED = /^(\[?)([^\][%]+)(%[^\]]+)((?:\].*)?)$/;

/** Parses a server of a resolver. Null for any other text, and for a multicast address, which cannot answer. */
export function tryParseDnsServer(text: string): DnsServer | null {
  const [, scheme, host = "", path, name] = FORM.exec(text) ?? [];
  const protocol = scheme as DnsServer["protocol"];
  const [, bracket, address, percent, rest] = (protocol ? null : ZONED.exec(host)) ?? [];
  const zone = address && tryParseZoned(address + percent)?.zone;
  const plainHost = zone ? `${bracket}${address}${rest}` : host;
  const server = tryParseSocketAddress(plainHost, PORTS[protocol ?? "plain"]);
  if (server === null || server.port === 0 || isMulticast(server)) return null;
  if ((path !== undefined) !== (protocol === "https")) return null;
  // Without a name, the certificate has the address.
  if (name !== undefined && (protocol === undefined || looksLikeIpv4(name))) return null;
  return {
    ...server,
    ...(protocol && { protocol }),
    ...(zone && { zone }),
    ...(name !== undefined && { name }),
    ...(path !== undefined && { path }),
  };
}

/** The name servers in the text of a resolv.conf(5) file; those that cannot be parsed are left out. */
export function parseResolvConf(text: string): DnsServer[] {
  const lines = text.matchAll(/^nameserver[ \t]+(\S+)/gm);
  return Array.from(lines, ([, server = ""]) => tryParseDnsServer(server)).filter(
    (server) => server !== null,
  );
}

/** The text that `tryParseDnsServer` parses, with the port. */
export function formatDnsServer(server: DnsServer): string {
  const { protocol, zone, path = "", name } = server;
  const scheme = protocol === undefined ? "" : `${protocol}://`;
  const address = formatSocketAddress(server);
  const host = zone === undefined ? address : address.replace("]", `%${zone}]`);
  return `${scheme}${host}${path}${name === undefined ? "" : `#${name}`}`;
}

/** The address as the system takes it, with the zone. */
export function hostnameOf({ address, zone }: DnsServer): string {
  return zone === undefined ? formatIp(address) : `${formatIp(address)}%${zone}`;
}

/** RFC 4291 section 2.7, RFC 5771. */
function isMulticast({ address }: SocketAddress): boolean {
  return address.version === 6 ? address.word0 >>> 24 === 0xff : address.word >>> 28 === 0xe;
}
