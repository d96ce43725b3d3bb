/** Certificates: how they are read, followed while the service runs, and renewed. */
import { FileWatch } from "../platform/file-watch.ts";
import { libc } from "../platform/libc.ts";
import { BPF, bpfOption, encodeBpf, OPTION } from "../platform/linux.ts";
import { readRegularFile } from "../platform/regular-file.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { listeningSockets } from "./connections.ts";
import type { Listener } from "./listener.ts";

/**
 * How long a server with an old certificate runs on: long enough for clients that are connecting, and
 * short enough to use the next renewal within ten seconds.
 */
const DRAIN_MS = 8_000;

/** The paths of certificate and key, both in PEM. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** A certificate chain and the private key of its first certificate, both in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
  /** The start of its validity, in Unix milliseconds. */
  readonly beginsMs: number;
  /** The end of its validity, in Unix milliseconds. */
  readonly expiresMs: number;
}

/** A certificate or key cannot be used; the message says which file and why. */
export class CertificateError extends Error {
  override readonly name = "CertificateError";
}

/**
 * Reads certificate and key and checks that they belong together; a server that gets anything else
 * would fail every client.
 *
 * @throws CertificateError
 */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  // Not imported at the start, because only HTTPS needs it and loading takes milliseconds.
  const { createPrivateKey, X509Certificate } = process.getBuiltinModule("node:crypto");
  const attempt = <T>(problem: string, run: () => T): T => {
    try {
      return run();
    } catch (error) {
      throw new CertificateError(`${problem}: ${reasonOf(error)}`, { cause: error });
    }
  };
  const cert = attempt(`cannot read the certificate ${certFile}`, () => readRegularFile(certFile));
  const key = attempt(`cannot read the key ${keyFile}`, () => readRegularFile(keyFile));
  const first = attempt(`${certFile} is not a certificate in PEM`, () => new X509Certificate(cert));
  const secret = attempt(`${keyFile} is not a private key in PEM`, () => createPrivateKey(key));
  if (!first.checkPrivateKey(secret)) {
    throw new CertificateError(`the key ${keyFile} does not belong to the certificate ${certFile}`);
  }
  const [beginsMs, expiresMs] = [Date.parse(first.validFrom), Date.parse(first.validTo)];
  return { cert, key, beginsMs, expiresMs };
}

/** Why a certificate is not valid at a time, as the end of a sentence; null if it is valid. */
export function outOfTime({ beginsMs, expiresMs }: Certificate, nowMs: number): string | null {
  if (nowMs < beginsMs) return `is not valid before ${new Date(beginsMs).toISOString()}`;
  return nowMs > expiresMs ? `expired at ${new Date(expiresMs).toISOString()}` : null;
}

/** The current certificate; follows its files while the service runs. */
export class CertificateRenewal {
  readonly #files: CertificateFiles;
  readonly #log: Log;
  readonly #watch: FileWatch;
  readonly #nowMs: () => number;
  #current: Certificate;
  #onRenewal: (certificate: Certificate) => Promise<void> = async () => {};
  #isRenewing = false;
  /** How often the files were read again and were different. */
  readonly reads = { done: 0, failed: 0 };

  /**
   * @param nowMs Unix time in milliseconds
   * @throws CertificateError if the files cannot be used
   */
  constructor(files: CertificateFiles, log: Log, nowMs: () => number = Date.now) {
    this.#files = files;
    this.#log = log;
    this.#nowMs = nowMs;
    this.#watch = new FileWatch([files.certFile, files.keyFile]);
    this.#current = readCertificate(files);
    const reason = outOfTime(this.#current, nowMs());
    if (reason !== null) log.warn(`the certificate ${files.certFile} ${reason}; clients reject it`);
  }

  get current(): Certificate {
    return this.#current;
  }

  /** Calls `onRenewal` with each new certificate, one after the other, until `close`. */
  watch(onRenewal: (certificate: Certificate) => Promise<void>): void {
    this.#onRenewal = onRenewal;
    this.#watch.start(() => this.reload());
  }

  close(): void {
    this.#watch.close();
  }

  /** Reads the files again; if they cannot be used, logs an error and keeps the old certificate. */
  reload(): void {
    // The watch asks again until the files have been looked at.
    if (this.#isRenewing) return;
    this.#watch.look();
    try {
      const next = readCertificate(this.#files);
      if (next.cert === this.#current.cert && next.key === this.#current.key) return;
      const nowMs = this.#nowMs();
      const reason = outOfTime(next, nowMs);
      // If clients reject the old certificate too, the new one is no worse.
      if (reason !== null && outOfTime(this.#current, nowMs) === null) {
        throw new CertificateError(`the new certificate ${this.#files.certFile} ${reason}`);
      }
      this.#current = next;
      this.reads.done += 1;
      this.#isRenewing = true;
      void this.#onRenewal(next).finally(() => {
        this.#isRenewing = false;
      });
    } catch (error) {
      this.reads.failed += 1;
      this.#log.error(`${reasonOf(error)}; the old certificate stays in use`);
    }
  }
}

/**
 * Serves new connections of a listener with another certificate, without a failed request; resolves
 * when the server with the old one has stopped.
 *
 * Bun ignores a new certificate in `reload()`, so a second server shares the port and gets all new
 * connections. The first one closes each connection after its next response; connections that are
 * still open after the drain were idle all the time.
 */
export async function serveCertificate(
  listener: Listener,
  certificate: Certificate,
  log: Log,
): Promise<void> {
  const [old] = listener.servers;
  try {
    listener.open(certificate);
  } catch (error) {
    const reason = reasonOf(error);
    log.error(`cannot serve the new certificate: ${reason}; the old certificate stays in use`);
    return;
  }
  const expires = new Date(certificate.expiresMs).toISOString();
  log.info("new certificate in use", { listener: listener.url, expires });
  await Bun.sleep(DRAIN_MS);
  await old?.stop();
  listener.servers.pop();
}

/**
 * Tells the kernel to hand all new connections of a port to the second server that shares it
 * (SO_REUSEPORT), so that an old server does not stop with connections in its queue. As long as there
 * is no second server, the first one gets them. It applies to all sockets of this process that share
 * a port; the kernel refuses it for all others.
 */
export function steerToNewServers(): void {
  const SECOND = 1;
  const program = bpfOption(encodeBpf([[BPF.returnConstant, SECOND]]));
  for (const descriptor of listeningSockets()) {
    libc().setsockopt(descriptor, ...OPTION.attachReusePortFilter, program, program.length);
  }
}
