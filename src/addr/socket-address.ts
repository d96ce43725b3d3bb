import { formatIp, type IpAddress, tryParseIp } from "./ip.ts";
import { tryParseIpv4 } from "./ipv4.ts";
import { tryParseIpv6 } from "./ipv6.ts";

/** An address and a port of TCP or UDP. */
export interface SocketAddress {
  readonly address: IpAddress;
  /** 0 to 65535. */
  readonly port: number;
}

/**
 * `[2001:db8::1]:53` or `192.0.2.1:53` (RFC 5952 section 6, RFC 3986 section 3.2); with a default
 * port also `[2001:db8::1]` and an address alone. Null for any other text. Port 0 passes: whether
 * "any free port" makes sense is for the caller to know.
 */
export function tryParseSocketAddress(text: string, defaultPort?: number): SocketAddress | null {
  if (text.startsWith("[")) {
    const close = text.indexOf("]");
    if (close < 0) return null;
    const rest = text.slice(close + 1);
    return socketAddress(tryParseIpv6(text.slice(1, close)), readPort(rest, defaultPort));
  }
  const colon = text.indexOf(":");
  if (colon < 0 || text.includes(":", colon + 1)) {
    return socketAddress(tryParseIp(text), defaultPort ?? null);
  }
  return socketAddress(
    tryParseIpv4(text.slice(0, colon)),
    readPort(text.slice(colon), defaultPort),
  );
}

/** The text that `tryParseSocketAddress` reads: `[2001:db8::1]:53` or `192.0.2.1:53`. */
export function formatSocketAddress({ address, port }: SocketAddress): string {
  const host = formatIp(address);
  return address.version === 4 ? `${host}:${port}` : `[${host}]:${port}`;
}

function socketAddress(address: IpAddress | null, port: number | null): SocketAddress | null {
  return address === null || port === null ? null : { address, port };
}

/** `:53`, or nothing at all where there is a default. */
function readPort(text: string, defaultPort: number | undefined): number | null {
  if (text === "") return defaultPort ?? null;
  if (!/^:(?:0|[1-9][0-9]{0,4})$/.test(text)) return null;
  const port = Number(text.slice(1));
  return port <= 65_535 ? port : null;
}
