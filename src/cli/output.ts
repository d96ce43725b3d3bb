import { writeSync } from "node:fs";
import { errorCode, reasonOf } from "../util/errors.ts";

const STANDARD_OUTPUT = 1;

/** Standard output takes nothing: a full disk, or a reader that has gone. */
export class OutputError extends Error {
  override readonly name = "OutputError";
}

/**
 * Waits until a text is written, for a pipe takes a long one piece by piece.
 *
 * @throws OutputError
 */
export async function write(text: string): Promise<void> {
  try {
    await Bun.write(Bun.stdout, `${text}\n`);
  } catch (error) {
    throw new OutputError(`cannot write to standard output: ${reasonOf(error)}`, { cause: error });
  }
}

/** Writes a text for a reader who may stop early. */
export async function print(text: string): Promise<void> {
  try {
    await write(text);
  } catch (error) {
    if (!(error instanceof OutputError && errorCode(error.cause) === "EPIPE")) throw error;
  }
}

/**
 * Writes a line of which nothing depends, at once, or not at all. By itself: process.stdout costs 2 ms
 * of the start and the memory of a stream.
 */
export function say(line: string): void {
  try {
    writeSync(STANDARD_OUTPUT, `${line}\n`);
  } catch {
    // A full disk or a reader that does not read shall not end the service.
  }
}
