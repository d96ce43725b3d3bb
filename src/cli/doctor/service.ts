import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  formatListenAddress,
  isLoopback,
  type ListenAddress,
} from "../../config/listen-address.ts";
import { type Config, REFUSING_ADVICE, refusingListeners } from "../../config/settings.ts";
import { isActive, KeyFileError, type KeyRecord, readKeyFile } from "../../keys/key-file.ts";
import { everyUserMay } from "../../platform/regular-file.ts";
import { ownName } from "../../platform/users.ts";
import { CertificateError, outOfTime, readCertificate } from "../../server/certificate.ts";
import { INSTALLED, type InstalledService, propertyOf, type Unit } from "../installed.ts";
import { invocation } from "../terminal.ts";
import { type Finding, trying } from "./finding.ts";

/** Checks that the installed service has its user and its capability, and runs. */
export function checkService({ user, userName, unit }: InstalledService): readonly Finding[] {
  const named = trying(`find the service's user ${userName}`);
  const foundUser =
    user === null
      ? named.problem("it does not exist", "systemd-sysusers sixscope.conf")
      : named.ok(`uid ${user.uid}`);
  const state = propertyOf(unit, "ActiveState");
  if (state === "") {
    const { unknown, warning } = trying(`ask systemd about ${INSTALLED.unit}`);
    // Without D-Bus, systemd answers root only.
    const finding =
      process.geteuid?.() === 0
        ? warning("no answer", "check that systemd runs on this machine")
        : unknown("no answer", "run: sudo sixscope doctor");
    return [foundUser, finding];
  }
  const capable = trying(`see whether ${INSTALLED.unit} has CAP_NET_RAW`);
  const hasCapability =
    propertyOf(unit, "AmbientCapabilities").includes("cap_net_raw") || user?.uid === 0;
  const running = trying(`see whether ${INSTALLED.unit} runs`);
  const reset = state === "failed" ? "systemctl reset-failed sixscope, and " : "";
  const restart = `journalctl -u sixscope says why; then ${reset}systemctl restart sixscope`;
  return [
    foundUser,
    hasCapability
      ? capable.ok("it has")
      : capable.problem(
          "it does not, so targets can at most be pinged",
          "set AmbientCapabilities=CAP_NET_RAW with systemctl edit sixscope",
        ),
    state === "active" ? running.ok("it is active") : running.problem(`it is ${state}`, restart),
  ];
}

/** Shows which machines get answers: without a certificate, others need a proxy. */
export function checkListeners(config: Config): Finding {
  const { ok, warning } = trying("see which machines get answers");
  const open = config.listen.filter((address) => !isLoopback(address));
  if (open.length === 0) return ok("only this one, for example a proxy on it");
  if (refusingListeners(config).length > 0) {
    return warning(
      `only this one; ${listOf(open)} refuses all others, because it speaks plain HTTP`,
      REFUSING_ADVICE,
    );
  }
  const which = config.tls === null ? "trusted proxies and listed networks" : "all over HTTPS";
  return ok(`${which}, at ${listOf(open)}`);
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

/** Checks that certificate and key can be read, match, and are valid for some time. */
export function checkTls(tls: TlsFiles, nowMs: number): Finding {
  const DAY_MS = 86_400_000;
  // Clients such as certbot renew a certificate earlier than this.
  const FEW_DAYS = 14;
  const { certFile, keyFile } = tls;
  const { ok, problem, warning } = trying(`read certificate ${certFile} and key ${keyFile}`);
  try {
    const certificate = readCertificate(tls);
    const reason = outOfTime(certificate, nowMs);
    if (reason !== null) {
      return problem(`the certificate ${reason}`, "check the clock, or renew it");
    }
    if (everyUserMay("read", realpathSync(keyFile))) {
      const group = `chgrp ${ownName()} ${keyFile} && chmod 640 ${keyFile}`;
      const advice = `${group}; if it was so for long, renew it with a new key`;
      return warning("every user of this machine can read the key", advice);
    }
    const days = Math.floor((certificate.expiresMs - nowMs) / DAY_MS);
    return days < FEW_DAYS
      ? warning(`they expire in ${days} days`, "find out why they were not renewed")
      : ok(`they match and are valid for ${days} days`);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    return problem(error.message, "give the service a matching pair that it can read");
  }
}

/** Checks that the keys file can be read and holds an active key. */
export function checkKeys(path: string, nowMs: number): Finding {
  const { ok, problem, warning } = trying(`read the keys file ${path}`);
  const add = `create one: ${invocation()} keys add NAME`;
  try {
    if (!existsSync(path)) return warning("it does not exist, so there are no keys", add);
    const found = activeKeys({ ok, warning }, readKeyFile(path), nowMs, add);
    if (everyUserMay("write", realpathSync(path))) {
      const advice = `chmod o-w ${path}, and see which keys are in it: ${invocation()} keys list`;
      return problem("every user of this machine can add keys to it", advice);
    }
    return found;
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    return problem(error.message, "correct or restore it; until then no key is valid");
  }
}

/** Counts the keys that are active. @param add how to add one */
export function activeKeys(
  { ok, warning }: Pick<ReturnType<typeof trying>, "ok" | "warning">,
  keys: readonly KeyRecord[],
  nowMs: number,
  add: string,
): Finding {
  const active = keys.filter((key) => isActive(key, nowMs)).length;
  return active === 0 ? warning("no key is active", add) : ok(`active keys: ${active}`);
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
    const advice = `move it, for example to ${INSTALLED.stateDirectory} or /etc/sixscope`;
    const { problem } = trying(`see whether the service can see ${path}`);
    return problem(`${rule.property}= of its unit hides ${real}`, advice);
  });
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
