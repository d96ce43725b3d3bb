import { writeSync } from "node:fs";
import { DOCTOR_USAGE, runDoctor } from "./cli/doctor.ts";
import { KEYS_USAGE, runKeys } from "./cli/keys.ts";
import { OPENAPI_USAGE, runOpenApi } from "./cli/openapi.ts";
import { runServe } from "./cli/serve.ts";
import { UsageError } from "./cli/usage.ts";
import { ConfigError } from "./config.ts";
import { reasonOf } from "./error-text.ts";
import { CertificateError } from "./http/certificate.ts";
import { COMMIT, VERSION } from "./version.ts";

const USAGE = `sixscope: IPv6 diagnostics as a JSON HTTP API

sixscope [serve]                                      run the service
${DOCTOR_USAGE}
${KEYS_USAGE}
${OPENAPI_USAGE}
sixscope --help                                       show this
sixscope --version                                    show the version

Settings are environment variables that begin with SIXSCOPE_; the README has their table.`;

const STANDARD_OUTPUT = 1;

const DONE = 0;
const FAILED = 1;
const WRONG_USAGE = 2;

/** What the command line or the settings are to blame for. */
const WRONG = [UsageError, ConfigError, CertificateError];

async function main([command = "serve", ...rest]: readonly string[]): Promise<void> {
  if (rest.includes("--help") || rest.includes("-h")) return say(USAGE);
  switch (command) {
    case "serve":
      if (rest.length > 0) throw new UsageError("serve takes no arguments", USAGE);
      return await runServe(process.env, say);
    case "doctor":
      if (rest.length > 0) throw new UsageError("doctor takes no arguments", USAGE);
      if (await runDoctor(process.env, say)) return;
      throw new Error("there are problems; their lines say what to do");
    case "keys":
      return say(runKeys(rest, process.env));
    case "openapi":
      return await print(runOpenApi(rest));
    case "--help":
    case "-h":
    case "help":
      return say(USAGE);
    case "--version":
      return say(`sixscope ${VERSION}${COMMIT === null ? "" : ` (${COMMIT})`}`);
    default:
      throw new UsageError(`there is no command ${command}`, USAGE);
  }
}

/** Writes by itself: process.stdout costs 2 ms of the start and the memory of a stream. */
function say(line: string): void {
  writeSync(STANDARD_OUTPUT, `${line}\n`);
}

/** Waits until a long text is written, for a pipe takes it piece by piece; a reader may stop early. */
async function print(text: string): Promise<void> {
  await Bun.write(Bun.stdout, `${text}\n`).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

/** Tells on standard error what went wrong, and returns the exit status for it. */
function complain(error: unknown): number {
  const lines = error instanceof ConfigError ? error.problems : [reasonOf(error)];
  for (const line of lines) process.stderr.write(`sixscope: ${line}\n`);
  if (error instanceof UsageError) process.stderr.write(`\n${error.usage}\n`);
  return WRONG.some((kind) => error instanceof kind) ? WRONG_USAGE : FAILED;
}

process.exit(await main(Bun.argv.slice(2)).then(() => DONE, complain));
