import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { watchAnswers } from "./conformance.ts";
import { sixscopeProgram } from "./program.ts";

/** How a command of sixscope ended. */
export interface CommandResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs `sixscope` with arguments to its end.
 *
 * @param program the command that is sixscope
 */
export async function sixscope(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  program?: readonly string[],
): Promise<CommandResult> {
  const child = spawn([...(program ?? (await sixscopeProgram())), ...args], environment);
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status, stdout, stderr };
}

/** A running service, in a process and a folder of its own. */
export interface Service extends AsyncDisposable {
  /** Where it listens, in the order of SIXSCOPE_LISTEN, each with `/api/v1`. */
  readonly urls: readonly string[];
  /** The first of `urls`. */
  readonly url: string;
  /** A key that is valid on this service. */
  readonly key: string;
  /** The file with its keys. */
  readonly keysFile: string;
  readonly pid: number;
  /** Its output on standard output when it started. */
  readonly startLines: readonly string[];
  /** Its output on standard error until now. */
  stderr(): string;
  /** Waits until it has said the text on standard error. */
  says(text: string): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** Waits for the end of the process and returns its exit status; by then `stderr()` is complete. */
  readonly exited: Promise<number>;
}

/**
 * Starts the service on free ports of both loopback addresses and waits until it listens. While it
 * runs, `fetch` throws for an answer of it that is not as the interface document says.
 *
 * @param environment `SIXSCOPE_` variables beside those that the helper sets
 * @param wrapper a command that runs the service, such as `setpriv …`
 * @param program the command that is sixscope
 */
export async function startService(
  environment: Readonly<Record<string, string>> = {},
  wrapper: readonly string[] = [],
  program?: readonly string[],
): Promise<Service> {
  const command = program ?? (await sixscopeProgram());
  const folder = mkdtempSync(join(tmpdir(), "sixscope-test-"));
  const keysFile = join(folder, "keys.json");
  const settings = {
    SIXSCOPE_LISTEN: "127.0.0.1:0,[::1]:0",
    SIXSCOPE_KEYS_FILE: keysFile,
    ...environment,
  };
  const added = await sixscope(["keys", "add", "test"], settings, command);
  const key = added.stdout.split("\n")[0] ?? "";
  const child = spawn([...wrapper, ...command], settings);
  let stderr = "";
  const stderrDone = (async () => {
    for await (const chunk of child.stderr) stderr += new TextDecoder().decode(chunk);
  })();
  const startLines = await readStartLines(child.stdout);
  const listening = startLines.find((line) => line.includes(" listens on "));
  if (listening === undefined) {
    await stderrDone;
    rmSync(folder, { recursive: true });
    throw new Error(`the service did not start: ${added.stderr}${stderr}`);
  }
  const urls = (listening.split(" listens on ")[1] ?? "")
    .split(" and ")
    .map((url) => (url.startsWith("unix:") ? "http://localhost/api/v1" : `${url}/api/v1`));
  const unwatch = watchAnswers(urls);
  return {
    urls,
    url: urls[0] ?? "",
    key,
    keysFile,
    pid: child.pid,
    startLines,
    stderr: () => stderr,
    async says(text) {
      while (!stderr.includes(text)) await Bun.sleep(20);
    },
    signal: (name) => child.kill(name),
    exited: stderrDone.then(() => child.exited),
    async [Symbol.asyncDispose]() {
      unwatch();
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a command with these variables only. */
export function spawn(command: readonly string[], environment: Readonly<Record<string, string>>) {
  return Bun.spawn([...command], {
    env: ownEnvironment(environment),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** Nothing of the test run's own environment may leak into the service's settings. */
export function ownEnvironment(environment: Readonly<Record<string, string>>) {
  return { PATH: process.env["PATH"], TZ: "UTC", ...environment };
}

/** The service says what it has to say at once, and then that is complete. */
async function readStartLines(stdout: ReadableStream<Uint8Array>): Promise<string[]> {
  const LAST_LINE = "next";
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stdout) {
    text += decoder.decode(chunk, { stream: true });
    const lines = text.split("\n");
    if (lines.slice(0, -1).some((line) => line.startsWith(LAST_LINE))) break;
  }
  return text.trimEnd().split("\n");
}
