import { writeSync } from "node:fs";
import { type NoIcmp, remedyFor } from "../icmp/unavailable.ts";
import { attempt, errorCode, reasonOf } from "../util/errors.ts";

/** How to call this program from a terminal, for messages. */
export function invocation(): string {
  if (Bun.main.startsWith("/$bunfs/")) return "sixscope";
  return process.execPath.includes("/_npx/") ? "npx -y bun@1.4.4 run sixscope" : "bun run sixscope";
}

/** The advice that gives the service a raw socket, for the user who starts it. */
export function rawSocketRemedy(icmp: NoIcmp, environment: NodeJS.ProcessEnv): string {
  const isByHand = environment["NOTIFY_SOCKET"] === undefined && process.geteuid?.() !== 0;
  return isByHand && icmp.unavailable.endsWith("EPERM") ? "start it with sudo" : remedyFor(icmp);
}

/** The error of standard output, for people. */
export const cannotWrite = (cause: unknown) =>
  new Error(`cannot write to standard output: ${reasonOf(cause)}`, { cause });

/**
 * Writes a text to standard output, and waits until a slow pipe has taken all of it.
 *
 * @throws Error if it cannot be written, also if the reader has gone
 */
export async function write(text: string): Promise<void> {
  try {
    await Bun.write(Bun.stdout, `${text}\n`);
  } catch (error) {
    throw cannotWrite(error);
  }
}

/** As `write`, for a reader such as `head` that may stop early. */
export async function print(text: string): Promise<void> {
  await write(text).catch((error: Error) => {
    if (errorCode(error.cause) !== "EPIPE") throw error;
  });
}

/** Writes a line to standard output at once; process.stdout costs 2 ms of the start and a stream's memory. */
export function say(line: string): void {
  const STANDARD_OUTPUT = 1;
  // A full disk or a reader that has gone must not stop the service.
  attempt(() => writeSync(STANDARD_OUTPUT, `${line}\n`));
}
