import { formatIp, type IpAddress } from "./ip.ts";
import { tryParseIpv4 } from "./ipv4.ts";
import { tryParseIpv6 } from "./ipv6.ts";

/** An address and a port of TCP or UDP. */
export interface SocketAddress {
  readonly address: IpAddress;
  /** 0 to 65535. */
  readonly port: number;
}

/** An IPv6 address in brackets, or a possible IPv4 address, and perhaps a port. */
const FORM = /^(?:\[([^\]]+)\]|([^:]+))(?::(0|[1-9][0-9]{0,4}))?$/;

/**
 * Parses `[2001:db8::1]:53` or `192.0.2.1:53` (RFC 5952 section 6, RFC 3986 section 3.2); with a
 * default port also `[2001:db8::1]` and an address alone. Null for any other text. Port 0 is valid.
 */
export function tryParseSocketAddress(text: string, defaultPort?: number): SocketAddress | null {
  const [, bracketed = text, ipv4, portText] = FORM.exec(text) ?? [];
  const address = ipv4 === undefined ? tryParseIpv6(bracketed) : tryParseIpv4(ipv4);
  const port = portText === undefined ? defaultPort : Number(portText);
  return address === null || port === undefined || port > 65_535 ? null : { address, port };
}

/** The text that `tryParseSocketAddress` parses: `[2001:db8::1]:53` or `192.0.2.1:53`. */
export function formatSocketAddress({ address, port }: SocketAddress): string {
  const host = formatIp(address);
  return address.version === 4 ? `${host}:${port}` : `[${host}]:${port}`;
}
