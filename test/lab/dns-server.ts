import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatIp, tryParseIp } from "../../src/addr/ip.ts";
import type { SocketAddress } from "../../src/addr/socket-address.ts";
import { ByteWriter } from "./byte-writer.ts";
import { freePort } from "./port.ts";
import { labEnvironment } from "./run.ts";

/** The zones of a Knot server, and its address. */
export type KnotOptions = {
  /** Zone text for each zone name, such as `example.test`; the zone is its $ORIGIN. */
  readonly zones: Readonly<Record<string, string>>;
  /** Zones that the server signs with DNSSEC. */
  readonly signed?: readonly string[];
  /** An address of this machine, or of the namespace that `inside` enters; default ::1. */
  readonly address?: string;
  /** How it calls itself: `id.server` and NSID. */
  readonly identity?: string;
  /** Wraps a command so that it runs elsewhere, like `inside` of a kernel chain. */
  readonly inside?: (command: readonly string[]) => string[];
};

/** A running Knot server. */
export type KnotServer = AsyncDisposable & {
  /** It serves UDP and TCP here. */
  readonly endpoint: SocketAddress;
  /** Ends the server and removes its files. */
  stop(): Promise<void>;
};

/** Enough for a busy machine. */
const START_DEADLINE_MS = 30_000;
const QUERY_INTERVAL_MS = 20;

const TYPE_SOA = 6;
const CLASS_IN = 1;
const RECURSION_DESIRED = 0x0100;
const MAX_QUERY_BYTES = 512;

/** A query for a zone's SOA record; RFC 1035 section 4. */
function soaQuery(zone: string): Uint8Array {
  const query = new ByteWriter(MAX_QUERY_BYTES)
    .uint16(0)
    .uint16(RECURSION_DESIRED)
    .uint16(1)
    .uint16(0)
    .uint32(0);
  for (const label of zone.split(".").filter(Boolean)) {
    query.uint8(label.length).put(new TextEncoder().encode(label));
  }
  return query.uint8(0).uint16(TYPE_SOA).uint16(CLASS_IN).finish();
}

/** Asks repeatedly until the server answers for the zone without an error. */
export async function answersFor(
  zone: string,
  { address, port }: SocketAddress,
  isOver: () => boolean,
): Promise<boolean> {
  let answered = false;
  const socket = await Bun.udpSocket({
    hostname: address.version === 6 ? "::" : "0.0.0.0",
    connect: { hostname: formatIp(address), port },
    socket: {
      data: (_, reply) => {
        answered ||= ((reply[3] ?? 0xf) & 0xf) === 0;
      },
      // The port is closed until the server listens.
      error: () => {},
    },
  });
  while (!answered && !isOver()) {
    socket.send(soaQuery(zone));
    await Bun.sleep(QUERY_INTERVAL_MS);
  }
  socket.close();
  return answered;
}

/**
 * Starts a real authoritative DNS server, `knotd`, and waits until it answers for each zone.
 *
 * @throws Error with the output of knotd if it ends, reports an error, or does not answer within 30 s
 */
export async function startKnot(options: KnotOptions): Promise<KnotServer> {
  const { zones, signed = [], address = "::1", inside = (command) => [...command] } = options;
  const identity = options.identity ?? "knot";
  const ip = tryParseIp(address);
  if (ip === null) throw new Error(`${address} is not an IP address`);
  const endpoint = { address: ip, port: await freePort() };
  const folder = await mkdtemp(join(tmpdir(), `sixscope-knot-${process.pid}-`));
  const names = Object.keys(zones);
  const fileOf = (zone: string) => join(folder, `${names.indexOf(zone)}.zone`);
  for (const zone of names) await Bun.write(fileOf(zone), zones[zone] ?? "");
  const configuration = join(folder, "knot.conf");
  await Bun.write(
    configuration,
    `server:
  rundir: ${folder}
  listen: "${address}@${endpoint.port}"
  identity: "${identity}"
  nsid: "${identity}"
  udp-workers: 4
  tcp-workers: 1
  background-workers: 1
log:
  - target: stderr
    any: error
database:
  storage: ${folder}
template:
  - id: default
    zonefile-load: whole
    zonefile-sync: -1
    journal-content: none
    semantic-checks: off
zone:
${names.map((zone) => `  - domain: "${zone}"\n    file: ${fileOf(zone)}\n    dnssec-signing: ${signed.includes(zone) ? "on" : "off"}\n`).join("")}`,
  );
  const server = Bun.spawn(inside(["knotd", "-c", configuration]), {
    env: labEnvironment,
    stdout: "ignore",
    stderr: "pipe",
  });
  let complaint = "";
  const printed = (async () => {
    for await (const line of server.stderr.pipeThrough(new TextDecoderStream())) complaint += line;
  })();
  const stop = async () => {
    server.kill();
    await Promise.all([server.exited, printed]);
    await rm(folder, { recursive: true, force: true });
  };

  const deadlineMs = performance.now() + START_DEADLINE_MS;
  const isOver = () =>
    complaint !== "" || server.exitCode !== null || performance.now() > deadlineMs;
  try {
    for (const zone of names) {
      if (!(await answersFor(zone, endpoint, isOver))) {
        throw new Error(`knotd does not answer for ${zone}: ${complaint}`);
      }
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { endpoint, stop, [Symbol.asyncDispose]: stop };
}
