import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "./certificate.ts";
import { programMissing } from "./lab.ts";
import { freePort } from "./port.ts";
import { findProgram, labEnvironment, run } from "./run.ts";

/** Valkey where the distribution has it, else Redis. */
const PROGRAM = ["valkey-server", "redis-server"].find((name) => findProgram(name) !== null);

/** Why there is no server here; null where there is one. */
export const valkeyMissing: string | null =
  PROGRAM === undefined ? programMissing("redis-server") : null;

/** A real server on ::1, in a folder of its own, without persistence unless an option says so. */
export class ValkeyServer implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "sixscope-valkey-"));
  readonly port: number;
  #options: readonly string[];
  #child: Bun.Subprocess | undefined;

  private constructor(port: number, options: readonly string[]) {
    this.port = port;
    this.#options = options;
  }

  /** Starts it with options of its command line, and waits until it accepts connections. */
  static async start(...options: string[]): Promise<ValkeyServer> {
    const server = new ValkeyServer(await freePort(), options);
    await server.#spawn();
    return server;
  }

  /** As `start`, but it speaks TLS, with `cert.pem` in its folder. */
  static async startTls(...options: string[]): Promise<ValkeyServer> {
    const port = await freePort();
    const server = new ValkeyServer(port, options);
    const files = {
      certFile: join(server.folder, "cert.pem"),
      keyFile: join(server.folder, "key.pem"),
    };
    await makeCertificate({ commonName: "valkey", alternatives: "IP:::1", days: 2, ...files });
    const tls = ["--tls-cert-file", files.certFile, "--tls-key-file", files.keyFile];
    const client = ["--tls-auth-clients", "no", "--tls-port", `${port}`];
    server.#options = [...tls, ...client, "--port", "0", ...options];
    await server.#spawn();
    return server;
  }

  get url(): string {
    return `valkey://[::1]:${this.port}`;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  /** Kills it at once. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#child?.exited;
  }

  /** Starts it again after `kill`, by default with the same options. */
  async restart(...options: string[]): Promise<void> {
    if (options.length > 0) this.#options = options;
    await this.#spawn();
  }

  /** Runs a command in it by its own client. */
  async cli(...command: string[]): Promise<string> {
    const client = PROGRAM?.replace("-server", "-cli") ?? "";
    return (await run([client, "-h", "::1", "-p", `${this.port}`, ...command])).trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #spawn(): Promise<void> {
    const own = ["--dir", this.folder, "--bind", "::1", "--port", `${this.port}`, "--save", ""];
    this.#child = Bun.spawn([findProgram(PROGRAM ?? "") ?? "", ...own, ...this.#options], {
      env: labEnvironment,
      stdout: "ignore",
      stderr: "ignore",
    });
    while (!(await accepts(this.port))) {
      if (this.#child.exitCode !== null) throw new Error(`${PROGRAM} ended: ${this.#options}`);
      await Bun.sleep(20);
    }
  }
}

async function accepts(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: "::1", port, socket: { data() {} } });
    socket.end();
    return true;
  } catch {
    return false;
  }
}
