import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Config } from "../../config.ts";
import { CertificateError, readCertificate } from "../../http/certificate.ts";
import { isActive, KeyFileError, readKeyFile } from "../../http/key-file.ts";
import { C, loadLibc } from "../../libc.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

const DAY_MS = 86_400_000;

/** A certificate is renewed earlier than this many days before its end; Let's Encrypt's is at 30. */
const FEW_DAYS = 14;

/** Whether certificate and key can be read, belong together, and last. */
export function checkTls(tls: NonNullable<Config["tls"]>, nowMs: number): Finding {
  const tried = `read certificate ${tls.certFile} and key ${tls.keyFile}`;
  try {
    const days = Math.floor((readCertificate(tls).expiresMs - nowMs) / DAY_MS);
    if (days < 0) return problem(tried, `they ended ${-days} days ago`, "renew them");
    return days < FEW_DAYS
      ? warning(tried, `they last ${days} days more`, "see why they were not renewed")
      : ok(tried, `they match and last ${days} days more`);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    return problem(tried, error.message, "let the service read a pair that belongs together");
  }
}

/** Whether the keys file can be read and holds a key that counts. */
export function checkKeys(file: string, nowMs: number): Finding {
  const path = resolve(file);
  const tried = `read the keys file ${path}`;
  const add = "make one: sixscope keys add NAME";
  try {
    if (!existsSync(path)) return warning(tried, "there is none, and so no key", add);
    const active = readKeyFile(path).filter((key) => isActive(key, nowMs)).length;
    return active === 0
      ? warning(tried, "no key counts", add)
      : ok(tried, `active keys: ${active}`);
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    return problem(tried, error.message, "put it right or restore it; the service does not start");
  }
}

/**
 * Whether the executable has capabilities of its own. A process has them by its service alone: with
 * them on the file, everybody on the machine gets a raw socket, by a service with settings of their own.
 */
export function checkExecutable(path: string): Finding {
  const tried = `look for capabilities on ${path}`;
  const libc = loadLibc({
    getxattr: { args: [C.pointer, C.pointer, C.pointer, C.size], returns: C.long },
  });
  const text = (value: string) => new TextEncoder().encode(`${value}\0`);
  const length = libc.getxattr(text(path), text("security.capability"), null, 0);
  return length > 0
    ? problem(
        tried,
        "it has some, which gives every user of this machine raw sockets",
        `setcap -r ${path}; the unit gives the capability to the service alone`,
      )
    : ok(tried, "it has none, as it should be");
}
