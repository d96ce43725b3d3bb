import { AsyncLocalStorage } from "node:async_hooks";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../src/cli/run.ts";
import { watchAnswers } from "./conformance.ts";

/** The command that runs sixscope from its source. */
export const FROM_SOURCE = [
  process.execPath,
  "--max-http-header-size=4096",
  join(import.meta.dir, "../../src/main.ts"),
];

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
  program: readonly string[] = FROM_SOURCE,
): Promise<CommandResult> {
  const child = spawn([...program, ...args], environment);
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status, stdout, stderr };
}

/** The output of each command of this process. */
const printing = new AsyncLocalStorage<{ stdout: string; stderr: string }>();

function capturePrinting(): void {
  const { write } = Bun;
  const writeError = process.stderr.write;
  Bun.write = (async (...args: Parameters<typeof write>) => {
    const printed = printing.getStore();
    const [destination, text]: readonly unknown[] = args;
    if (printed === undefined || destination !== Bun.stdout) return await write(...args);
    printed.stdout += text;
    return 0;
  }) as typeof write;
  process.stderr.write = ((...args: Parameters<typeof writeError>) => {
    const printed = printing.getStore();
    if (printed === undefined) return writeError.apply(process.stderr, args);
    printed.stderr += args[0];
    return true;
  }) as typeof writeError;
}

capturePrinting();

/**
 * Runs `sixscope` with arguments to its end in this process, many times as fast as in one of its own.
 * Of a command that prints its help, the exit status alone is caught.
 */
export async function sixscopeHere(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  const printed = { stdout: "", stderr: "" };
  const status = await printing.run(printed, () => run(args, ownEnvironment(environment)));
  return { status, ...printed };
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
  program: readonly string[] = FROM_SOURCE,
): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), "sixscope-test-"));
  const keysFile = join(folder, "keys.json");
  const settings = {
    SIXSCOPE_LISTEN: "127.0.0.1:0,[::1]:0",
    SIXSCOPE_KEYS_FILE: keysFile,
    ...environment,
  };
  // A process reads its authorities at its start.
  const isHere = program === FROM_SOURCE && !("NODE_EXTRA_CA_CERTS" in environment);
  const add = isHere ? sixscopeHere : sixscope;
  const added = await add(["keys", "add", "test"], settings, program);
  const key = added.stdout.split("\n")[0] ?? "";
  const child = spawn([...wrapper, ...program], settings);
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
function ownEnvironment(environment: Readonly<Record<string, string>>) {
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
