import { runServe } from "./cli/serve.ts";
import { ConfigError } from "./config/settings.ts";
import { STREAM, withPriority } from "./platform/systemd.ts";
import { CertificateError } from "./server/certificate.ts";
import { reasonOf } from "./util/errors.ts";

/** Exit statuses; systemd does not restart the service after `wrong`. */
const STATUS = { done: 0, failed: 1, wrong: 2 } as const;

/** Errors in the settings. */
const WRONG = [ConfigError, CertificateError];

async function main(argv: readonly string[]): Promise<number> {
  if (argv.length === 0 || (argv.length === 1 && argv[0] === "serve")) {
    await runServe(process.env);
    return STATUS.done;
  }
  // The service starts sooner without the parser of the command line and the other commands.
  const { runCommandLine } = await import("./cli/command-line.ts");
  return await runCommandLine(argv, process.env);
}

/** Writes an error to standard error and returns its exit status. */
function complain(error: unknown): number {
  const problems = error instanceof ConfigError ? error.problems : [reasonOf(error)];
  const text = problems.map((problem) => `sixscope: ${problem}\n`).join("");
  process.stderr.write(withPriority(text, "error", STREAM.error, process.env));
  return WRONG.some((kind) => error instanceof kind) ? STATUS.wrong : STATUS.failed;
}

process.exit(await main(Bun.argv.slice(2)).catch(complain));
