import type { SocketAddress } from "../../src/addr/socket-address.ts";
import { type Started, startServer } from "./authorities.ts";
import { freePort } from "./port.ts";

/** The servers that a validating resolver asks, and the keys that it trusts. */
export interface UnboundOptions {
  /** The zones that it knows, the first of them with an answer, and where it asks for them. */
  readonly zones: readonly string[];
  readonly server: SocketAddress;
  /** DNSKEY records that it trusts, in presentation form. */
  readonly trustAnchors?: readonly string[];
  /** The prefix with which it makes IPv6 addresses of IPv4 addresses (DNS64). */
  readonly dns64?: string;
  /** Records that it answers with by itself, in presentation form. */
  readonly localData?: readonly string[];
  /** The certificate for DNS over TLS and HTTPS. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
}

/** A running resolver, and its ports of DNS over TLS and DNS over HTTPS. */
export type Unbound = Started & { readonly tlsPort: number; readonly httpsPort: number };

/** Starts `unbound` on ::1 and waits until it answers. @throws Error with its output if it does not */
export async function startUnbound(options: UnboundOptions): Promise<Unbound> {
  const { zones, server, trustAnchors = [], dns64, localData = [], tls } = options;
  const modules = dns64 === undefined ? "validator iterator" : "dns64 validator iterator";
  const [tlsPort, httpsPort] = [await freePort(), await freePort()];
  const encrypted = tls && [
    ...[`interface: ::1@${tlsPort}`, `interface: ::1@${httpsPort}`],
    ...[`tls-port: ${tlsPort}`, `https-port: ${httpsPort}`],
    ...[`tls-service-pem: ${tls.certFile}`, `tls-service-key: ${tls.keyFile}`],
  ];
  // It never answers for a bogus zone.
  const first = zones.slice(0, 1);
  const started = await startServer(["unbound", "-d", "-c"], first, async (folder, port) =>
    [
      "server:",
      ...[`directory: ${folder}`, 'chroot: ""', 'username: ""', 'pidfile: ""', "use-syslog: no"],
      ...["access-control: ::/0 allow", "do-not-query-localhost: no", "ede: yes"],
      ...[`module-config: "${modules}"`, "minimal-responses: yes", "log-servfail: yes"],
      ...[`port: ${port}`, `interface: ::1@${port}`, "do-ip4: no"],
      ...trustAnchors.map((anchor) => `trust-anchor: "${anchor}"`),
      ...(dns64 === undefined ? [] : [`dns64-prefix: ${dns64}`]),
      ...localData.map((record) => `local-data: "${record}"`),
      ...(encrypted ?? []),
      ...["remote-control:", "control-enable: no"],
      ...zones.flatMap((zone) => ["stub-zone:", `name: ${zone}`, `stub-addr: ::1@${server.port}`]),
    ].join("\n"),
  );
  return { ...started, tlsPort, httpsPort };
}
