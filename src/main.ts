import { DOCTOR_USAGE, runDoctor } from "./cli/doctor.ts";
import { KEYS_USAGE, runKeys } from "./cli/keys.ts";
import { OPENAPI_USAGE, runOpenApi } from "./cli/openapi.ts";
import { print, say } from "./cli/output.ts";
import { runServe } from "./cli/serve.ts";
import { UsageError } from "./cli/usage.ts";
import { ConfigError } from "./config/settings.ts";
import { STREAM, withPriority } from "./platform/journal.ts";
import { CertificateError } from "./server/certificate.ts";
import { reasonOf } from "./util/errors.ts";
import { COMMIT, VERSION } from "./util/version.ts";

const USAGE = `sixscope: IPv6 diagnostics as a JSON HTTP API

sixscope [serve]                                      run the service
${DOCTOR_USAGE}
${KEYS_USAGE}
${OPENAPI_USAGE}
sixscope --help                                       show this
sixscope --version                                    show the version

Settings are environment variables that begin with SIXSCOPE_; the README has their table.`;

const DONE = 0;
const FAILED = 1;
const WRONG_USAGE = 2;

/** What the command line or the settings are to blame for. */
const WRONG = [UsageError, ConfigError, CertificateError];

const WITHOUT_ARGUMENTS = ["serve", "doctor", "openapi"];

async function main([command = "serve", ...rest]: readonly string[]): Promise<void> {
  if (rest.includes("--help") || rest.includes("-h")) return await print(USAGE);
  if (WITHOUT_ARGUMENTS.includes(command) && rest.length > 0) {
    throw new UsageError(`${command} takes no arguments`, USAGE);
  }
  switch (command) {
    case "serve":
      return await runServe(process.env, say);
    case "doctor":
      if (await runDoctor(process.env, print)) return;
      throw new Error("there are problems; their lines say what to do");
    case "keys":
      return await runKeys(rest, process.env);
    case "openapi":
      return await print(runOpenApi());
    case "--help":
    case "-h":
    case "help":
      return await print(USAGE);
    case "--version":
      return await print(`sixscope ${VERSION}${COMMIT === null ? "" : ` (${COMMIT})`}`);
    default:
      throw new UsageError(`there is no command ${command}`, USAGE);
  }
}

/** Tells on standard error what went wrong, and returns the exit status for it. */
function complain(error: unknown): number {
  const problems = error instanceof ConfigError ? error.problems : [reasonOf(error)];
  const lines = problems.map((problem) => `sixscope: ${problem}\n`);
  if (error instanceof UsageError) lines.push(`\n${error.usage}\n`);
  process.stderr.write(withPriority(lines.join(""), "error", STREAM.error, process.env));
  return WRONG.some((kind) => error instanceof kind) ? WRONG_USAGE : FAILED;
}

process.exit(await main(Bun.argv.slice(2)).then(() => DONE, complain));
