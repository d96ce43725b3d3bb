/** Certificates: reads them, and follows their files while the service runs. */
import type { Config } from "../config/settings.ts";
import { followFiles } from "../platform/followed-files.ts";
import { libc } from "../platform/libc.ts";
import { bpfConstant, OPTION } from "../platform/linux.ts";
import { readRegularFile } from "../platform/regular-file.ts";
import { orThrow } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { listeningSockets } from "./connections.ts";

/** The paths of certificate and key, both in PEM. */
export type CertificateFiles = NonNullable<Config["tls"]>;

/** A certificate chain and the private key of its first certificate, both in PEM, and its validity in Unix milliseconds. */
export type Certificate = Readonly<ReturnType<typeof readCertificate>>;

/** A certificate or key cannot be used; the message says which file and why. */
export class CertificateError extends Error {
  override readonly name = "CertificateError";
}

/**
 * Reads certificate and key and checks that they belong together; otherwise a server would fail every client.
 *
 * @throws CertificateError
 */
export function readCertificate({ certFile, keyFile }: CertificateFiles) {
  // Not imported at the start, because only HTTPS needs it and loading takes milliseconds.
  const { createPrivateKey, X509Certificate } = process.getBuiltinModule("node:crypto");
  const { createSecureContext } = process.getBuiltinModule("node:tls");
  const attempt = <T>(problem: string, run: () => T) =>
    orThrow(run, (reason, cause) => new CertificateError(`${problem}: ${reason}`, { cause }));
  const cert = attempt(`cannot read the certificate ${certFile}`, () => readRegularFile(certFile));
  // A file with both may be replaced between two readings.
  const key = attempt(`cannot read the key ${keyFile}`, () =>
    keyFile === certFile ? cert : readRegularFile(keyFile),
  );
  const first = attempt(`${certFile} is not a certificate in PEM`, () => new X509Certificate(cert));
  const secret = attempt(`${keyFile} is not a private key in PEM`, () => createPrivateKey(key));
  if (!first.checkPrivateKey(secret)) {
    throw new CertificateError(`the key ${keyFile} does not belong to the certificate ${certFile}`);
  }
  // A server reads the other certificates of the chain too.
  attempt(`${certFile} and ${keyFile} cannot be served`, () => createSecureContext({ cert, key }));
  const [beginsMs, expiresMs] = [Date.parse(first.validFrom), Date.parse(first.validTo)];
  return { cert, key, beginsMs, expiresMs };
}

/** The reason why a certificate is not valid at a time, as the end of a sentence; null if it is valid. */
export function outOfTime({ beginsMs, expiresMs }: Certificate, nowMs: number): string | null {
  if (nowMs < beginsMs) return `is not valid before ${new Date(beginsMs).toISOString()}`;
  return nowMs > expiresMs ? `expired at ${new Date(expiresMs).toISOString()}` : null;
}

/** See `followCertificate`. */
export type CertificateRenewal = ReturnType<typeof followCertificate>;

/**
 * The current certificate; follows its files while the service runs.
 *
 * @param nowMs Unix time in milliseconds
 * @throws CertificateError if the files cannot be used
 */
export function followCertificate(files: CertificateFiles, log: Log, nowMs = Date.now) {
  const { certFile, keyFile } = files;
  let current = readCertificate(files);
  let onRenewal: (certificate: Certificate) => Promise<void> = async () => {};
  let isRenewing = false;
  const reason = outOfTime(current, nowMs());
  if (reason !== null) log.warn(`the certificate ${certFile} ${reason}; clients reject it`);
  const followed = followFiles([certFile, keyFile], log, {
    read() {
      const next = readCertificate(files);
      if (next.cert === current.cert && next.key === current.key) return false;
      const problem = outOfTime(next, nowMs());
      // If clients reject the old certificate too, the new one is no worse.
      if (problem !== null && outOfTime(current, nowMs()) === null) {
        throw new CertificateError(`the new certificate ${certFile} ${problem}`);
      }
      current = next;
      return true;
    },
    onRenewed() {
      isRenewing = true;
      void onRenewal(current).finally(() => (isRenewing = false));
    },
    fallback: () => "the old certificate stays in use",
  });
  const reload = () => {
    // The watch calls this again until the files are read.
    if (!isRenewing) followed.reload();
  };
  return {
    reads: followed.reads,
    reload,
    current: () => current,
    /** Calls `renew` with each new certificate, one after the other. */
    watch(renew: typeof onRenewal): void {
      onRenewal = renew;
      followed.watch(reload);
    },
  };
}

/**
 * Tells the kernel to hand all new connections of a port to the second server that shares it
 * (SO_REUSEPORT), so that an old server does not stop with connections in its queue. Without a second
 * server, the first one gets them. The filter applies to all sockets of this process that share a port;
 * the kernel refuses it for all others.
 */
export function steerToNewServers(): void {
  const SECOND = 1;
  const program = bpfConstant(SECOND);
  for (const descriptor of listeningSockets()) {
    libc().setsockopt(descriptor, ...OPTION.attachReusePortFilter, program, program.length);
  }
}
