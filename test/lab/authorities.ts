import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { answersFor } from "./dns-server.ts";
import { freePort } from "./port.ts";
import { labEnvironment } from "./run.ts";

type Configure = (folder: string, port: number, zones: readonly string[]) => string;

const configureNsd: Configure = (folder, port, zones) =>
  [
    "server:",
    ...[`ip-address: ::1@${port}`, `zonesdir: "${folder}"`, 'pidfile: ""', 'database: ""'],
    ...[`xfrdfile: "${folder}/xfrd"`, `zonelistfile: "${folder}/list"`, 'username: ""'],
    ...["remote-control:", "control-enable: no"],
    ...zones.map((zone) => `zone:\nname: ${zone}\nzonefile: ${zone}.zone`),
  ].join("\n");

const configureNamed: Configure = (folder, port, zones) =>
  [
    `options { directory "${folder}"; listen-on { none; }; listen-on-v6 port ${port} { ::1; };`,
    "pid-file none; session-keyfile none; recursion no;",
    "max-records-per-type 0; max-types-per-name 0; };",
    "controls {};",
    ...zones.map(
      (zone) => `zone "${zone}" { type primary; file "${zone}.zone"; check-names ignore; };`,
    ),
  ].join("\n");

/** Authoritative servers from Debian beside knotd. */
const AUTHORITIES = {
  nsd: { configure: configureNsd, command: ["nsd", "-d", "-c"] },
  named: { configure: configureNamed, command: ["named", "-g", "-c"] },
} as const;

const START_DEADLINE_MS = 30_000;

/** A running server. */
export interface Started {
  readonly endpoint: SocketAddress;
  /** Ends the server and removes its files. */
  stop(): Promise<void>;
}

/** Starts NSD or BIND on ::1 and waits until it answers for each zone. @throws Error with its output if it does not */
export function startAuthority(
  program: keyof typeof AUTHORITIES,
  zones: Readonly<Record<string, string>>,
): Promise<Started> {
  const { configure, command } = AUTHORITIES[program];
  const names = Object.keys(zones);
  return startServer(command, names, async (folder, port) => {
    for (const zone of names) await Bun.write(join(folder, `${zone}.zone`), zones[zone] ?? "");
    return configure(folder, port, names);
  });
}

/**
 * Starts a server on ::1 and waits until it answers for each zone.
 *
 * @param command is completed by the path of the configuration
 * @param configure returns the text of the configuration
 * @throws Error with the output of the server if it ends or does not answer within 30 s
 */
export async function startServer(
  command: readonly string[],
  zones: readonly string[],
  configure: (folder: string, port: number) => Promise<string>,
): Promise<Started> {
  const folder = await mkdtemp(join(tmpdir(), `sixscope-${command[0]}-${process.pid}-`));
  const port = await freePort();
  const file = join(folder, "configuration");
  await Bun.write(file, `${await configure(folder, port)}\n`);
  const server = Bun.spawn([...command, file], {
    env: labEnvironment,
    stdout: "ignore",
    stderr: "pipe",
  });
  let output = "";
  const printed = (async () => {
    for await (const text of server.stderr.pipeThrough(new TextDecoderStream())) output += text;
  })();
  const stop = async () => {
    server.kill();
    await Promise.all([server.exited, printed]);
    await rm(folder, { recursive: true, force: true });
  };
  const endpoint = tryParseSocketAddress("::1", port) as SocketAddress;
  const deadlineMs = performance.now() + START_DEADLINE_MS;
  const isOver = () => server.exitCode !== null || performance.now() > deadlineMs;
  for (const zone of zones) {
    if (await answersFor(zone, endpoint, isOver)) continue;
    await stop();
    throw new Error(`${command[0]} does not answer for ${zone}: ${output}`);
  }
  return { endpoint, stop };
}
