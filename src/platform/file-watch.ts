import { statSync } from "node:fs";

/** Often enough that a change is seen within a second, and seldom enough to cost nothing. */
const POLL_INTERVAL_MS = 500;

/** What is seen where there is no file. */
const MISSING = "missing";

/**
 * Tells when one of some files was written, replaced or removed.
 *
 * It asks instead of being told: a file that is renamed into place, or lies behind a symbolic link
 * as certbot's do, is seen all the same.
 */
export class FileWatch {
  readonly #paths: readonly string[];
  #seen: string;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(paths: readonly string[]) {
    this.#paths = paths;
    this.#seen = fingerprint(paths);
  }

  /** Whether all files are there. */
  get isComplete(): boolean {
    return !this.#seen.split("\n").includes(MISSING);
  }

  /** Takes the files as they are now for seen; call it before they are read. */
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
  return paths.map(fingerprintOf).join("\n");
}

function fingerprintOf(path: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch {
    return MISSING;
  }
}
