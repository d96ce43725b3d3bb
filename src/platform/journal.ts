import { fstatSync } from "node:fs";
import type { Environment } from "../util/environment.ts";

/** File descriptors that may lead to the journal. */
export const STREAM = { output: 1, error: 2 } as const;

/** syslog(3) priorities as journald reads them at the beginning of a line; sd-daemon(3). */
const PREFIX = { error: "<3>", warning: "<4>" } as const;

/** Whether a file descriptor leads to the journal, by its device and inode; systemd.exec(5), JOURNAL_STREAM. */
export function isJournal(fd: number, environment: Environment): boolean {
  const journal = environment["JOURNAL_STREAM"];
  if (journal === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return journal === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** A text whose lines have a priority where they go to the journal. */
export function withPriority(
  text: string,
  priority: keyof typeof PREFIX,
  fd: number,
  environment: Environment,
): string {
  return isJournal(fd, environment) ? text.replaceAll(/^(?=.)/gm, PREFIX[priority]) : text;
}
