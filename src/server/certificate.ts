import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { FileWatch } from "../platform/file-watch.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";

/** Where certificate and key are, both in PEM. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** A certificate chain and the private key of its first certificate, both in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** When its time begins, in Unix milliseconds. */
  readonly beginsMs: number;
  /** When its time ends, in Unix milliseconds. */
  readonly expiresMs: number;
}

/** A certificate or key that cannot be used; the message says which file and why. */
export class CertificateError extends Error {
  override readonly name = "CertificateError";
}

/**
 * Reads certificate and key and checks that they belong together, for a listener that is given
 * anything else would refuse every client.
 *
 * @throws CertificateError
 */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const cert = step(`cannot read the certificate ${certFile}`, () =>
    readFileSync(certFile, "utf8"),
  );
  const key = step(`cannot read the key ${keyFile}`, () => readFileSync(keyFile, "utf8"));
  const first = step(`${certFile} is no certificate in PEM`, () => new X509Certificate(cert));
  const privateKey = step(`${keyFile} is no private key in PEM`, () => createPrivateKey(key));
  if (!first.checkPrivateKey(privateKey)) {
    throw new CertificateError(`the key ${keyFile} does not belong to the certificate ${certFile}`);
  }
  const beginsMs = Date.parse(first.validFrom);
  return { cert, key, beginsMs, expiresMs: Date.parse(first.validTo) };
}

/** Why clients refuse a certificate at a moment, as the end of a sentence that names it; null while its time lasts. */
export function outOfTime({ beginsMs, expiresMs }: Certificate, nowMs: number): string | null {
  if (nowMs < beginsMs) return `counts from ${new Date(beginsMs).toISOString()} on`;
  return nowMs > expiresMs ? `ended at ${new Date(expiresMs).toISOString()}` : null;
}

/** The certificate in force; follows its files while the service runs. */
export class CertificateRenewal {
  readonly #files: CertificateFiles;
  readonly #log: Log;
  readonly #watch: FileWatch;
  readonly #nowMs: () => number;
  #current: Certificate;
  #onRenewal: (certificate: Certificate) => void = () => {};

  /**
   * @param nowMs Unix time in milliseconds
   * @throws CertificateError where the files cannot be used
   */
  constructor(files: CertificateFiles, log: Log, nowMs: () => number = Date.now) {
    this.#files = files;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#watch = new FileWatch([files.certFile, files.keyFile]);
    this.#current = readCertificate(files);
    const reason = outOfTime(this.#current, nowMs());
    if (reason !== null) log.warn(`the certificate ${files.certFile} ${reason}; clients refuse it`);
  }

  get current(): Certificate {
    return this.#current;
  }

  /** Calls `onRenewal` with each new certificate, until `close`. */
  watch(onRenewal: (certificate: Certificate) => void): void {
    this.#onRenewal = onRenewal;
    this.#watch.start(() => this.reload());
  }

  close(): void {
    this.#watch.close();
  }

  /** Reads the files again; where they cannot be used, that is logged, and the old certificate stays. */
  reload(): void {
    this.#watch.look();
    try {
      const next = readCertificate(this.#files);
      if (next.cert === this.#current.cert && next.key === this.#current.key) return;
      const nowMs = this.#nowMs();
      const reason = outOfTime(next, nowMs);
      // One that clients refuse is no worse than another such.
      if (reason !== null && outOfTime(this.#current, nowMs) === null) {
        throw new CertificateError(`the new certificate ${this.#files.certFile} ${reason}`);
      }
      this.#current = next;
      this.#onRenewal(next);
    } catch (error) {
      this.#log.error(`${reasonOf(error)}; the old certificate stays in force`);
    }
  }
}

function step<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw new CertificateError(`${what}: ${reasonOf(error)}`, { cause: error });
  }
}
