import { statSync } from "node:fs";

/** Often enough to see a change within a second, rare enough to cost nothing. */
const POLL_INTERVAL_MS = 500;

/**
 * Reports that one of several files was written, replaced or removed.
 *
 * It polls, so it also sees a file that is renamed into place or that is behind a symbolic link, as
 * certbot's files are.
 */
export class FileWatch {
  readonly #paths: readonly string[];
  #seen: string;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(paths: readonly string[]) {
    this.#paths = paths;
    this.#seen = fingerprint(paths);
  }

  /** Remembers the files as they are now; call it before you read them. */
  look(): void {
    this.#seen = fingerprint(this.#paths);
  }

  /** Calls `onChange` after each change, until `close`. */
  start(onChange: () => void): void {
    this.#timer = setInterval(() => {
      if (fingerprint(this.#paths) !== this.#seen) onChange();
    }, POLL_INTERVAL_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

function fingerprint(paths: readonly string[]): string {
  const parts = paths.map((path) => {
    try {
      const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
      return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
    } catch {
      return "missing";
    }
  });
  return parts.join("\n");
}
