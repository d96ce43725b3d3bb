import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Config } from "../../config/settings.ts";
import { isActive, KeyFileError, readKeyFile } from "../../keys/key-file.ts";
import { libc } from "../../platform/libc.ts";
import { CertificateError, readCertificate } from "../../server/certificate.ts";
import { INSTALLED, propertyOf, type Unit } from "../installed.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

const DAY_MS = 86_400_000;

/** A certificate is renewed earlier than this many days before its end; Let's Encrypt's is at 30. */
const FEW_DAYS = 14;

type TlsFiles = NonNullable<Config["tls"]>;

/** Whether certificate and key can be read, belong together, have begun to count, and last. */
export function checkTls(tls: TlsFiles, nowMs: number): Finding {
  const tried = `read certificate ${tls.certFile} and key ${tls.keyFile}`;
  try {
    const { beginsMs, expiresMs } = readCertificate(tls);
    if (beginsMs > nowMs) {
      const begin = new Date(beginsMs).toISOString();
      return problem(
        tried,
        `they count from ${begin} on`,
        "see whether the clock is right, or wait",
      );
    }
    const days = Math.floor((expiresMs - nowMs) / DAY_MS);
    if (days < 0) return problem(tried, `they ended ${-days} days ago`, "renew them");
    return days < FEW_DAYS
      ? warning(tried, `they last ${days} days more`, "see why they were not renewed")
      : ok(tried, `they match and last ${days} days more`);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    return problem(tried, error.message, "let the service read a pair that belongs together");
  }
}

/** What systemd will hand over as certificate and key; null where it has, or is not asked to. */
export function filesToHandOver({ certFile, keyFile }: TlsFiles): TlsFiles | null {
  const [cert, key] = [certFile, keyFile].map(originOf);
  return cert === undefined || key === undefined || (cert === certFile && key === keyFile)
    ? null
    : { certFile: cert, keyFile: key };
}

function originOf(path: string): string {
  const beginning = `${INSTALLED.credentials}/tls_`;
  return path.startsWith(beginning) && !existsSync(path)
    ? join(INSTALLED.tlsDirectory, path.slice(beginning.length))
    : path;
}

/** What systemd.exec(5) hides from a service by a property, unless that has one of the values. */
const HIDDEN = [
  { folders: ["/home", "/root", "/run/user"], property: "ProtectHome", open: ["no", "read-only"] },
  { folders: ["/tmp", "/var/tmp"], property: "PrivateTmp", open: ["no"] },
] as const;

/** Whether the unit lets the service see files; says nothing where it does. */
export function checkHidden(paths: readonly string[], unit: Unit | null): readonly Finding[] {
  return paths.flatMap((path) => {
    const real = realPath(path);
    const rule = HIDDEN.find(
      ({ folders, property, open }) =>
        folders.some((folder) => real.startsWith(`${folder}/`)) &&
        !open.some((value) => unit !== null && value === propertyOf(unit, property)),
    );
    return rule === undefined ? [] : [hidden(path, real, rule.property)];
  });
}

function hidden(path: string, real: string, property: string): Finding {
  return problem(
    `see whether the service can see ${path}`,
    `${property}= of its unit hides ${real}`,
    `put it elsewhere, such as below ${INSTALLED.stateDirectory} or /etc/sixscope`,
  );
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

/** Whether the keys file can be read and holds a key that counts. */
export function checkKeys(path: string, nowMs: number): Finding {
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
  const text = (value: string) => new TextEncoder().encode(`${value}\0`);
  const length = libc().getxattr(text(path), text("security.capability"), null, 0);
  return length > 0
    ? problem(
        tried,
        "it has some, which gives every user of this machine raw sockets",
        `setcap -r ${path}; the unit gives the capability to the service alone`,
      )
    : ok(tried, "it has none, as it should be");
}
