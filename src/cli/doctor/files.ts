import { existsSync, realpathSync } from "node:fs";
import type { EnvironmentFile } from "../../config/environment-file.ts";
import { isSecret } from "../../config/settings.ts";
import { everyUserMayRead } from "../../platform/regular-file.ts";
import { ownName } from "../../platform/users.ts";
import {
  CertificateError,
  type CertificateFiles,
  outOfTime,
  readCertificate,
} from "../../server/certificate.ts";
import { DAY_MS } from "../../util/clock.ts";
import { errorCode } from "../../util/errors.ts";
import { INSTALLED } from "../installed.ts";
import { type Finding, type Scene, shareWith, trying } from "./finding.ts";

/** Finds files with secrets that every user can read. */
export function checkSecrets({ config, files, service }: Scene): readonly Finding[] {
  const { nats, tls, notify } = config;
  const hasSecret = ({ variables }: EnvironmentFile) => Object.values(variables).some(isSecret);
  const group = service?.userName ?? ownName();
  const secrets = [
    ...files.filter(hasSecret).map(({ path }) => ({ path, group: "root" })),
    ...[nats?.credsFile, tls?.keyFile, notify?.secret?.file].flatMap((path) =>
      path ? { path, group } : [],
    ),
  ];
  return secrets
    .filter(({ path }) => existsSync(path) && everyUserMayRead(realpathSync(path)))
    .map(({ path, group }) => {
      const { warning } = trying(`see who can read ${path}`);
      const advice = `${shareWith(group)}, and change the secret if others use this machine`;
      return warning("every user of this machine, and it has a secret", advice);
    });
}

/** Checks the certificate and key that systemd copies when the service starts, with root's rights. */
export const checkOriginals = (scene: Scene) => checkPair(scene, true);

/** Checks the certificate and key with the service's rights. */
export const checkCopies = (scene: Scene) => checkPair(scene, false);

/** The file that systemd copies to a path when the service starts, or the path itself. */
const originOf = (path: string) =>
  path.replace(`${INSTALLED.credentials}/tls_`, `${INSTALLED.tlsDirectory}/`);

function checkPair({ config: { tls }, service }: Scene, isOriginal: boolean): readonly Finding[] {
  if (tls === null) return [];
  const [certFile = "", keyFile = ""] = [tls.certFile, tls.keyFile].map((path) =>
    existsSync(path) ? path : originOf(path),
  );
  if ((keyFile !== tls.keyFile) !== isOriginal) return [];
  return [checkTls({ certFile, keyFile }, Date.now(), service?.userName)];
}

/** Checks that certificate and key can be read, match, and are valid for some time. */
export function checkTls(files: CertificateFiles, nowMs: number, userName = ownName()): Finding {
  // Clients such as certbot renew a certificate earlier than this.
  const FEW_DAYS = 14;
  const { certFile, keyFile } = files;
  const { ok, problem, warning } = trying(`read certificate ${certFile} and key ${keyFile}`);
  const share = shareWith(userName);
  const [certOrigin, keyOrigin] = [originOf(certFile), originOf(keyFile)];
  const restart = certOrigin === certFile ? "" : ", then restart the service";
  const renew = `put a certificate at ${certOrigin} and its own key at ${keyOrigin}, of each ${share}${restart}`;
  try {
    const certificate = readCertificate(files);
    const reason = outOfTime(certificate, nowMs);
    if (reason !== null) {
      return problem(`the certificate ${reason}`, `check the clock; if it is right, ${renew}`);
    }
    const days = Math.floor((certificate.expiresMs - nowMs) / DAY_MS);
    return days < FEW_DAYS
      ? warning(`they expire in ${days} days`, "find out why they were not renewed")
      : ok(`they match and are valid for ${days} days`);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    const isForbidden = errorCode(error.cause) === "EACCES";
    const read = `let ${userName} read it and enter its folder: ${share}; the unit of the package hides what is below /home, /root and /tmp`;
    return problem(error.message, isForbidden ? read : renew);
  }
}
