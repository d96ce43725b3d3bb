import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  formatListenAddress,
  isLoopback,
  type ListenAddress,
} from "../../config/listen-address.ts";
import { type Config, REFUSING_ADVICE, refusingListeners } from "../../config/settings.ts";
import { isActive, KeyFileError, readKeyFile } from "../../keys/key-file.ts";
import { everyUserMay } from "../../platform/regular-file.ts";
import { ownName } from "../../platform/users.ts";
import { CertificateError, outOfTime, readCertificate } from "../../server/certificate.ts";
import { INSTALLED, type InstalledService, propertyOf, type Unit } from "../installed.ts";
import { invocation } from "../terminal.ts";
import { type Finding, ok, problem, unknown, warning } from "./finding.ts";

/** Whether the installed service has its user and its capability, and runs. */
export function checkService({ user, userName, unit }: InstalledService): readonly Finding[] {
  const triedUser = `find the service's user ${userName}`;
  const foundUser =
    user === null
      ? problem(triedUser, "it does not exist", "systemd-sysusers sixscope.conf")
      : ok(triedUser, `uid ${user.uid}`);
  const state = propertyOf(unit, "ActiveState");
  if (state === "") {
    const tried = `ask systemd about ${INSTALLED.unit}`;
    // Without D-Bus, systemd answers root only.
    const finding =
      process.geteuid?.() === 0
        ? warning(tried, "no answer", "check that systemd runs on this machine")
        : unknown(tried, "no answer", "run: sudo sixscope doctor");
    return [foundUser, finding];
  }
  const triedCapability = `see whether ${INSTALLED.unit} has CAP_NET_RAW`;
  const hasCapability =
    propertyOf(unit, "AmbientCapabilities").includes("cap_net_raw") || user?.uid === 0;
  const triedState = `see whether ${INSTALLED.unit} runs`;
  const reset = state === "failed" ? "systemctl reset-failed sixscope, and " : "";
  return [
    foundUser,
    hasCapability
      ? ok(triedCapability, "it has")
      : problem(
          triedCapability,
          "it does not, so targets can at most be pinged",
          "set AmbientCapabilities=CAP_NET_RAW with systemctl edit sixscope",
        ),
    state === "active"
      ? ok(triedState, "it is active")
      : problem(
          triedState,
          `it is ${state}`,
          `journalctl -u sixscope says why; then ${reset}systemctl restart sixscope`,
        ),
  ];
}

/** Who gets answers: without a certificate, other machines need a proxy. */
export function checkListeners(config: Config): Finding {
  const tried = "see which machines get answers";
  const open = config.listen.filter((address) => !isLoopback(address));
  if (open.length === 0) return ok(tried, "only this one, for example a proxy on it");
  if (refusingListeners(config).length > 0) {
    return warning(
      tried,
      `only this one; ${listOf(open)} refuses all others, because it speaks plain HTTP`,
      REFUSING_ADVICE,
    );
  }
  const which = config.tls === null ? "trusted proxies and listed networks" : "all over HTTPS";
  return ok(tried, `${which}, at ${listOf(open)}`);
}

function listOf(addresses: readonly ListenAddress[]): string {
  return addresses.map(formatListenAddress).join(", ");
}

type TlsFiles = NonNullable<Config["tls"]>;

/** The originals of files that systemd copies when the service starts, if it has not copied them yet. */
export function beforeSystemdCopies({ certFile, keyFile }: TlsFiles): TlsFiles {
  return { certFile: originOf(certFile), keyFile: originOf(keyFile) };
}

function originOf(path: string): string {
  const prefix = `${INSTALLED.credentials}/tls_`;
  return path.startsWith(prefix) && !existsSync(path)
    ? join(INSTALLED.tlsDirectory, path.slice(prefix.length))
    : path;
}

/** Whether certificate and key can be read, match, and are valid for some time. */
export function checkTls(tls: TlsFiles, nowMs: number): Finding {
  const DAY_MS = 86_400_000;
  // Clients such as certbot renew a certificate earlier than this.
  const FEW_DAYS = 14;
  const tried = `read certificate ${tls.certFile} and key ${tls.keyFile}`;
  try {
    const certificate = readCertificate(tls);
    const reason = outOfTime(certificate, nowMs);
    if (reason !== null) {
      return problem(tried, `the certificate ${reason}`, "check the clock, or renew it");
    }
    if (everyUserMay("read", realpathSync(tls.keyFile))) {
      const group = `chgrp ${ownName()} ${tls.keyFile} && chmod 640 ${tls.keyFile}`;
      const advice = `${group}; if it was so for long, renew it with a new key`;
      return warning(tried, "every user of this machine can read the key", advice);
    }
    const days = Math.floor((certificate.expiresMs - nowMs) / DAY_MS);
    return days < FEW_DAYS
      ? warning(tried, `they expire in ${days} days`, "find out why they were not renewed")
      : ok(tried, `they match and are valid for ${days} days`);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    return problem(tried, error.message, "give the service a matching pair that it can read");
  }
}

/** Whether the keys file can be read and holds an active key. */
export function checkKeys(path: string, nowMs: number): Finding {
  const tried = `read the keys file ${path}`;
  const add = `create one: ${invocation()} keys add NAME`;
  try {
    if (!existsSync(path)) return warning(tried, "it does not exist, so there are no keys", add);
    const active = readKeyFile(path).filter((key) => isActive(key, nowMs)).length;
    if (everyUserMay("write", realpathSync(path))) {
      const advice = `chmod o-w ${path}, and see which keys are in it: ${invocation()} keys list`;
      return problem(tried, "every user of this machine can add keys to it", advice);
    }
    return active === 0
      ? warning(tried, "no key is active", add)
      : ok(tried, `active keys: ${active}`);
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    return problem(tried, error.message, "correct or restore it; until then no key is valid");
  }
}

/** Folders that systemd hides from a service unless a property has one of the values; systemd.exec(5). */
const HIDDEN = [
  { folders: ["/home", "/root", "/run/user"], property: "ProtectHome", open: ["no", "read-only"] },
  { folders: ["/tmp", "/var/tmp"], property: "PrivateTmp", open: ["no"] },
] as const;

/** A problem for each file that the unit hides from the service. */
export function checkHidden(paths: readonly string[], unit: Unit): readonly Finding[] {
  return paths.flatMap((path) => {
    const real = realPath(path);
    const rule = HIDDEN.find(
      ({ folders, property, open }) =>
        folders.some((folder) => real.startsWith(`${folder}/`)) &&
        !open.some((value) => value === propertyOf(unit, property)),
    );
    if (rule === undefined) return [];
    return problem(
      `see whether the service can see ${path}`,
      `${rule.property}= of its unit hides ${real}`,
      `move it, for example to ${INSTALLED.stateDirectory} or /etc/sixscope`,
    );
  });
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
