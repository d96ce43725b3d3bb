import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { answersFor } from "./dns-server.ts";
import { freePort } from "./port.ts";
import { labEnvironment } from "./run.ts";

/** What a validating resolver asks and trusts. */
export interface UnboundOptions {
  /** The zones that it knows, and where it asks for them. */
  readonly zones: readonly string[];
  readonly server: SocketAddress;
  /** DNSKEY records that it trusts, in presentation form. */
  readonly trustAnchors?: readonly string[];
  /** The certificate for DNS over TLS and HTTPS. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
}

/** A running resolver. */
export interface Unbound {
  readonly endpoint: SocketAddress;
  /** The ports of DNS over TLS and DNS over HTTPS. */
  readonly tlsPort: number;
  readonly httpsPort: number;
  /** Ends the server and removes its files. */
  stop(): Promise<void>;
}

const START_DEADLINE_MS = 30_000;

/** Starts `unbound` on ::1 and waits until it answers. @throws Error with its output if it does not */
export async function startUnbound(options: UnboundOptions): Promise<Unbound> {
  const { zones, server, trustAnchors = [], tls } = options;
  const folder = await mkdtemp(join(tmpdir(), `sixscope-unbound-${process.pid}-`));
  const [port, tlsPort, httpsPort] = [await freePort(), await freePort(), await freePort()];
  const lines = [
    "server:",
    ...[`directory: ${folder}`, 'chroot: ""', 'username: ""', 'pidfile: ""', "use-syslog: no"],
    ...["access-control: ::/0 allow", "do-not-query-localhost: no", "ede: yes"],
    ...['module-config: "validator iterator"', "minimal-responses: yes", "log-servfail: yes"],
    ...[`port: ${port}`, `interface: ::1@${port}`, "do-ip4: no"],
    ...trustAnchors.map((anchor) => `trust-anchor: "${anchor}"`),
    ...(tls === undefined
      ? []
      : [
          ...[`interface: ::1@${tlsPort}`, `interface: ::1@${httpsPort}`],
          ...[`tls-port: ${tlsPort}`, `https-port: ${httpsPort}`],
          ...[`tls-service-pem: ${tls.certFile}`, `tls-service-key: ${tls.keyFile}`],
        ]),
    "remote-control:",
    "control-enable: no",
    ...zones.flatMap((zone) => [
      "stub-zone:",
      ...[`name: ${zone}`, `stub-addr: ::1@${server.port}`],
    ]),
  ];
  const configuration = join(folder, "unbound.conf");
  await Bun.write(configuration, `${lines.join("\n")}\n`);
  const unbound = Bun.spawn(["unbound", "-d", "-c", configuration], {
    env: labEnvironment,
    stdout: "ignore",
    stderr: "pipe",
  });
  let output = "";
  const printed = (async () => {
    for await (const text of unbound.stderr.pipeThrough(new TextDecoderStream())) output += text;
  })();
  const stop = async () => {
    unbound.kill();
    await Promise.all([unbound.exited, printed]);
    await rm(folder, { recursive: true, force: true });
  };
  const endpoint = tryParseSocketAddress("::1", port) as SocketAddress;
  const deadlineMs = performance.now() + START_DEADLINE_MS;
  const isOver = () => unbound.exitCode !== null || performance.now() > deadlineMs;
  if (await answersFor(zones[0] as string, endpoint, isOver)) {
    return { endpoint, tlsPort, httpsPort, stop };
  }
  await stop();
  throw new Error(`unbound does not answer: ${output}`);
}
