import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./port.ts";
import { sixscopeProgram } from "./program.ts";
import { labEnvironment } from "./run.ts";
import { type Service, spawn } from "./service.ts";

/** A NATS server, which keeps its port when it is started again. */
export interface NatsServer extends AsyncDisposable {
  /** Its URL at this machine's loopback address. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  signal(name: NodeJS.Signals): void;
  /** Stops all of its threads until SIGCONT. */
  freeze(): Promise<void>;
  /** Ends it at once, as a crash does. */
  kill(): Promise<void>;
  /** Starts it again. */
  start(): Promise<void>;
}

/**
 * Starts `nats-server` on a free port of all addresses, and waits until it listens.
 *
 * @param configuration the text of its configuration; without one, everybody may do everything
 * @param files what the configuration names, by their names
 */
export async function startNats(
  configuration = "",
  files: Readonly<Record<string, string>> = {},
): Promise<NatsServer> {
  const folder = mkdtempSync(join(tmpdir(), "nats-"));
  for (const [name, text] of Object.entries(files)) await Bun.write(join(folder, name), text);
  const file = join(folder, "nats.conf");
  await Bun.write(file, configuration);
  const port = await freePort();
  const run = () =>
    Bun.spawn(["nats-server", "-c", file, "-a", "::", "-p", `${port}`], {
      cwd: folder,
      env: labEnvironment,
      stdout: "ignore",
      stderr: Bun.file(join(folder, "log")),
    });
  let server = run();
  const kill = async () => {
    server.kill("SIGKILL");
    await server.exited;
  };
  const isListening = async () => {
    const socket = await Bun.connect({ hostname: "::1", port, socket: { data() {} } }).catch(
      () => null,
    );
    socket?.end();
    return socket !== null;
  };
  const start = async () => {
    if (server.exitCode !== null || server.signalCode !== null) server = run();
    while (!(await isListening())) {
      if (server.exitCode !== null) throw new Error(await Bun.file(join(folder, "log")).text());
      await Bun.sleep(20);
    }
  };
  await start();
  return {
    url: `nats://[::1]:${port}`,
    port,
    get pid() {
      return server.pid;
    },
    signal: (name) => server.kill(name),
    async freeze() {
      server.kill("SIGSTOP");
      // On a busy machine, the others go on until the thread that gets the signal has its turn.
      while (!readFileSync(`/proc/${server.pid}/status`, "utf8").includes("\nState:\tT"))
        await Bun.sleep(5);
    },
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A running `sixscope agent`. */
export interface Agent extends AsyncDisposable {
  /** Its output on standard error until now. */
  stderr(): string;
  /** Waits until the text has occurred `times` times on standard error, once by default. */
  says(text: string, times?: number): Promise<void>;
  signal(name: NodeJS.Signals): void;
  readonly exited: Promise<number>;
  /** The file beside which its status socket is. */
  readonly keysFile: string;
}

/**
 * Starts `sixscope agent` with a status socket of its own and waits until it is connected.
 *
 * @param wrapper a command that runs it, such as `inside` of a kernel chain
 * @param program the command that is sixscope
 */
export async function startAgent(
  environment: Readonly<Record<string, string>>,
  wrapper: readonly string[] = [],
  program?: readonly string[],
): Promise<Agent> {
  const command = program ?? (await sixscopeProgram());
  const folder = mkdtempSync(join(tmpdir(), "sixscope-agent-"));
  const settings = { SIXSCOPE_KEYS_FILE: join(folder, "keys.json"), ...environment };
  const child = spawn([...wrapper, ...command, "agent"], settings);
  let stderr = "";
  const read = (async () => {
    for await (const chunk of child.stderr) stderr += new TextDecoder().decode(chunk);
  })();
  const says = async (text: string, times = 1) => {
    while (stderr.split(text).length <= times) {
      if (child.exitCode !== null) throw new Error(`the agent has ended: ${stderr}`);
      await Bun.sleep(20);
    }
  };
  await says("connected to NATS");
  return {
    stderr: () => stderr,
    says,
    signal: (name) => child.kill(name),
    exited: read.then(() => child.exited),
    keysFile: settings.SIXSCOPE_KEYS_FILE,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Waits until a service lists a location. */
export async function untilListed({ url, key }: Service, location: string): Promise<void> {
  const list = async () =>
    (await fetch(`${url}/locations`, { headers: { "X-API-Key": key } })).text();
  while (!(await list()).includes(`"${location}"`)) await Bun.sleep(50);
}
