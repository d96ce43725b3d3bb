import { formatIp, looksLikeIpv4 } from "../addr/ip.ts";
import { tryParseSocketAddress } from "../addr/socket-address.ts";

/** An address on which the service listens: a TCP port, or the path of a unix socket. */
export type ListenAddress =
  | {
      readonly kind: "tcp";
      /** An IP address without brackets, or a lower-case host name. */
      readonly hostname: string;
      /** 0 for a free port that the system chooses. */
      readonly port: number;
    }
  | { readonly kind: "unix"; readonly path: string };

/** The form that `tryParseListenAddress` accepts, for messages. */
export const LISTEN_ADDRESS_FORM =
  "an address or a host name and a port, such as 127.0.0.1:8080, [::1]:8080 or localhost:8080, or unix: and an absolute path";

/** Labels of letters, digits and hyphens (RFC 1123 section 2.1), and a port. */
const HOST_AND_PORT =
  /^((?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*):([0-9]{1,5})$/;

/** Parses `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080` or `unix:/path`; null for any other text. */
export function tryParseListenAddress(text: string): ListenAddress | null {
  if (text.startsWith("unix:/")) return { kind: "unix", path: text.slice("unix:".length) };
  const socket = tryParseSocketAddress(text);
  if (socket !== null) {
    return { kind: "tcp", hostname: formatIp(socket.address), port: socket.port };
  }
  const [, hostname = "", digits = ""] = HOST_AND_PORT.exec(text.toLowerCase()) ?? [];
  const port = Number(digits);
  return hostname === "" || looksLikeIpv4(hostname) || port > 65_535
    ? null
    : { kind: "tcp", hostname, port };
}

/** Both loopback addresses for `localhost`, which would otherwise only mean the first address of the name. */
export function bothFamilies(address: ListenAddress): readonly ListenAddress[] {
  return address.kind === "tcp" && address.hostname === "localhost"
    ? ["127.0.0.1", "::1"].map((hostname) => ({ ...address, hostname }))
    : [address];
}

/** True if only this machine can reach an address. */
export function isLoopback(address: ListenAddress): boolean {
  return address.kind === "unix" || /^(::1$|127\.)/.test(address.hostname);
}

/** The text that `tryParseListenAddress` parses: `[::1]:8080`, `unix:/path`. */
export function formatListenAddress(address: ListenAddress): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  const { hostname, port } = address;
  return hostname.includes(":") ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}
