/** Runs commands of sixscope in this process. */
import { AsyncLocalStorage } from "node:async_hooks";
import { run } from "../../src/cli/run.ts";
import { type CommandResult, ownEnvironment } from "./service.ts";

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
