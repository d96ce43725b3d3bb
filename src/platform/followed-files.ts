import { statSync } from "node:fs";
import { attempt, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";

/** Often enough to see a change within a second, rare enough to cost nothing. */
const POLL_INTERVAL_MS = 500;

/** How the content of files is used. */
interface Use {
  /**
   * Reads the files and uses their content; false if it is what is used already.
   *
   * @throws Error if it cannot be used
   */
  read(): boolean | Promise<boolean>;
  /** Called when they were read again and their content is new. */
  onRenewed(): void;
  /** The end of a line in the log that says they cannot be used: which content stays in use. */
  fallback(): string;
}

/**
 * Reads files again after each change. If they cannot be used, it logs an error and the old content stays
 * in use.
 *
 * It polls, so it also sees a file that is renamed into place or that is behind a symbolic link, as
 * certbot's files are.
 */
export function followFiles(paths: readonly string[], log: Log, use: Use) {
  let seen = fingerprint(paths);
  /** How often the files were read again, by outcome. */
  const reads = { done: 0, failed: 0 };
  const read = async () => {
    seen = fingerprint(paths);
    try {
      return (await use.read()) ? "done" : "same";
    } catch (error) {
      log.error(`${reasonOf(error)}; ${use.fallback()}`);
      return "failed";
    }
  };
  const reload = async () => {
    const outcome = await read();
    if (outcome !== "same") reads[outcome] += 1;
    if (outcome === "done") use.onRenewed();
  };
  return {
    reads,
    /** Reads the files for the first time. */
    read,
    /** Reads the files again. */
    reload,
    /** Calls `onChange`, by default `reload`, twice a second from a change until the files are read again. */
    watch(onChange: () => unknown = reload): void {
      setInterval(() => {
        if (fingerprint(paths) !== seen) onChange();
      }, POLL_INTERVAL_MS).unref();
    },
  };
}

function fingerprint(paths: readonly string[]): string {
  const parts = paths.map((path) => {
    const found = attempt(() => statSync(path, { bigint: true }));
    return found ? `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}` : "missing";
  });
  return parts.join("\n");
}
