import { ConfigError } from "../config/settings.ts";
import { CertificateError } from "../server/certificate.ts";
import { reasonOf } from "../util/errors.ts";
import { runServe } from "./serve.ts";

/** Exit statuses; systemd does not restart the service after `wrong`, which is an error in the settings. */
const STATUS = { done: 0, failed: 1, wrong: 2 } as const;

/** Runs `sixscope` with these arguments to its end, and returns the exit status. */
export async function run(argv: readonly string[], environment: NodeJS.ProcessEnv) {
  try {
    if (argv.length === 0 || (argv.length === 1 && argv[0] === "serve")) {
      await runServe(environment);
      return STATUS.done;
    }
    // The service starts sooner without the parser of the command line and the other commands.
    const { runCommandLine } = await import("./command-line.ts");
    return await runCommandLine(argv, environment);
  } catch (error) {
    const problems = error instanceof ConfigError ? error.problems : [reasonOf(error)];
    for (const problem of problems) process.stderr.write(`sixscope: ${problem}\n`);
    const isWrong = error instanceof ConfigError || error instanceof CertificateError;
    return isWrong ? STATUS.wrong : STATUS.failed;
  }
}
