import { runDoctor } from "./cli/doctor.ts";
import { runKeys } from "./cli/keys.ts";
import { runServe } from "./cli/serve.ts";
import { print, UsageError } from "./cli/terminal.ts";
import { ConfigError } from "./config/settings.ts";
import { STREAM, withPriority } from "./platform/systemd.ts";
import { interfaceText } from "./routes/endpoints.ts";
import { CertificateError } from "./server/certificate.ts";
import { reasonOf } from "./util/errors.ts";
import { COMMIT, VERSION } from "./util/version.ts";

const USAGE = `sixscope: IPv6 diagnostics as a JSON HTTP API

sixscope [serve]                                      run the service
sixscope doctor [--json]                              find problems and say how to solve them
sixscope keys add NAME [--limit N] [--expires DATE]   create a key and print it once
sixscope keys list                                    show the keys, without secrets
sixscope keys revoke NAME                             reject a key from now on
sixscope openapi                                      print the API as an OpenAPI 3.1 document
sixscope --help                                       print this help
sixscope --version                                    print the version

Settings are environment variables that begin with SIXSCOPE_; docs/configuration.md lists them.`;

/** Exit statuses; systemd does not restart the service after `wrong`. */
const STATUS = { done: 0, failed: 1, wrong: 2 } as const;

/** Errors in the command line or in the settings. */
const WRONG = [UsageError, ConfigError, CertificateError];

const WITHOUT_ARGUMENTS = ["serve", "openapi"];

async function main([command = "serve", ...rest]: readonly string[]): Promise<void> {
  if (rest.includes("--help") || rest.includes("-h")) return await print(USAGE);
  if (WITHOUT_ARGUMENTS.includes(command) && rest.length > 0) {
    throw new UsageError(`${command} takes no arguments`);
  }
  switch (command) {
    case "serve":
      return await runServe(process.env);
    case "doctor":
      return await runDoctor(rest, process.env);
    case "keys":
      return await runKeys(rest, process.env);
    case "openapi":
      return await print(JSON.stringify(JSON.parse(interfaceText()), null, 2));
    case "--help":
    case "-h":
    case "help":
      return await print(USAGE);
    case "--version":
      return await print(`sixscope ${VERSION}${COMMIT === null ? "" : ` (${COMMIT})`}`);
    default:
      throw new UsageError(`unknown command: ${command}`);
  }
}

/** Writes an error to standard error and returns its exit status. */
function complain(error: unknown): number {
  const problems = error instanceof ConfigError ? error.problems : [reasonOf(error)];
  const lines = problems.map((problem) => `sixscope: ${problem}\n`);
  if (error instanceof UsageError) lines.push(`\n${USAGE}\n`);
  process.stderr.write(withPriority(lines.join(""), "error", STREAM.error, process.env));
  return WRONG.some((kind) => error instanceof kind) ? STATUS.wrong : STATUS.failed;
}

process.exit(await main(Bun.argv.slice(2)).then(() => STATUS.done, complain));
