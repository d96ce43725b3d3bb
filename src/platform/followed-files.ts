import { statSync } from "node:fs";
import { attempt, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";

/** The time between looks at the files, in milliseconds: they show a change within a second and cost nothing. */
const POLL_INTERVAL_MS = 500;

/** How the content of files is used. */
interface Use {
  /**
   * Reads the files and uses their content; false if it is in use already.
   *
   * @throws Error if it cannot be used
   */
  read(): boolean | Promise<boolean>;
  /** Called after new content was read. */
  onRenewed(): void;
  /** The end of the log line about files that cannot be used: it names the content that stays in use. */
  fallback(): string;
}

/**
 * Reads files again after each change. If they cannot be used, it logs an error and the old content stays
 * in use.
 *
 * It polls, so it also sees a file that is renamed into place, or one behind a symbolic link, such as
 * certbot's files.
 */
export function followFiles(paths: readonly string[], log: Log, use: Use) {
  let seen = fingerprint(paths);
  /** The numbers of further reads, by outcome. */
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
