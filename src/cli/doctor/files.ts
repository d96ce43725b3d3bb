import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { isSecret } from "../../config/settings.ts";
import { NetworkFileError } from "../../networks/network.ts";
import { networkReaders } from "../../networks/networks.ts";
import { everyUserMay } from "../../platform/regular-file.ts";
import { ownName } from "../../platform/users.ts";
import {
  CertificateError,
  type CertificateFiles,
  outOfTime,
  readCertificate,
} from "../../server/certificate.ts";
import { errorCode } from "../../util/errors.ts";
import { INSTALLED, propertyOf } from "../installed.ts";
import { type Finding, type Scene, shareWith, trying } from "./finding.ts";

/** Finds files with secrets that every user can read. */
export function checkSecrets({ config, files, service }: Scene): readonly Finding[] {
  const isOpen = (path: string) => existsSync(path) && everyUserMay("read", path);
  const open = (path: string, content: string, group: string) => {
    const { warning } = trying(`see who can read ${path}`);
    const advice = `${shareWith(group)}, and change the secret if others use this machine`;
    return warning(`every user of this machine, and ${content}`, advice);
  };
  const found = files.flatMap(({ path, variables }) => {
    const secret = Object.keys(variables).find((name) => isSecret(variables[name] ?? ""));
    return secret && isOpen(path) ? [open(path, `${secret} has a secret`, "root")] : [];
  });
  const creds = config.nats?.credsFile;
  if (!creds || !isOpen(creds)) return found;
  return [...found, open(creds, "it is the key for NATS", service?.userName ?? ownName())];
}

/** The folders that a property of the unit hides from the service; systemd.exec(5). */
const HIDDEN = {
  ProtectHome: /^\/(home|root|run\/user)\//,
  PrivateTmp: /^\/(var\/)?tmp\//,
} as const;

/** A problem for each file that the unit hides from the service. */
export function checkHidden({ config, service }: Scene): readonly Finding[] {
  const { keysFile, nats, networkFiles, tls } = config;
  const files = [keysFile, nats?.credsFile, ...Object.values({ ...networkFiles, ...tls })];
  return files.flatMap((path) => {
    if (service === null || path == null) return [];
    const real = existsSync(path) ? realpathSync(path) : resolve(path);
    const advice = `move it, for example to ${INSTALLED.stateDirectory} or /etc/sixscope`;
    return Object.entries(HIDDEN)
      .filter(([name, folders]) => folders.test(real) && isHiding(propertyOf(service.unit, name)))
      .map(([name]) => {
        const { problem } = trying(`see whether the service can see ${path}`);
        return problem(`${name}= of its unit hides ${real}`, advice);
      });
  });
}

const isHiding = (value: string) => value !== "no" && value !== "read-only";

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
  const DAY_MS = 86_400_000;
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
    if (everyUserMay("read", realpathSync(keyFile))) {
      const advice = `${share}; if this has lasted, renew the certificate with a new key`;
      return warning("every user of this machine can read the key", advice);
    }
    const days = Math.floor((certificate.expiresMs - nowMs) / DAY_MS);
    return days < FEW_DAYS
      ? warning(`they expire in ${days} days`, "find out why they were not renewed")
      : ok(`they match and are valid for ${days} days`);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    const isForbidden = errorCode(error.cause) === "EACCES";
    const read = `let ${userName} read it and enter its folder: ${share}`;
    return problem(error.message, isForbidden ? read : renew);
  }
}

/** Checks that each file of networks can be used, and says what it is. */
export async function checkNetworks({ config }: Scene): Promise<readonly Finding[]> {
  const readers = await networkReaders(config.networkFiles);
  return readers.map(({ path, read }) => {
    const { ok, problem } = trying(`read the networks in ${path}`);
    try {
      return ok(read(path).summary);
    } catch (error) {
      if (!(error instanceof NetworkFileError)) throw error;
      const advice = "correct or replace it; until then no network is found in it";
      return problem(error.message, advice);
    }
  });
}
