import { existsSync, realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { exposureOf } from "../../config/exposure.ts";
import { formatListenAddress, type ListenAddress } from "../../config/listen-address.ts";
import type { Config } from "../../config/settings.ts";
import { isActive, KeyFileError, type KeyRecord, readKeyFile } from "../../keys/key-file.ts";
import { everyUserMay } from "../../platform/regular-file.ts";
import { ownName } from "../../platform/users.ts";
import { CertificateError, outOfTime, readCertificate } from "../../server/certificate.ts";
import { listenProblem } from "../../server/server.ts";
import { type Status, settingsDigest } from "../../server/status.ts";
import { errorCode } from "../../util/errors.ts";
import { listText, plural, printable } from "../../util/text.ts";
import { INSTALLED, type InstalledService, propertyOf, type Unit } from "../installed.ts";
import { shellQuote } from "../key-store.ts";
import { invocation } from "../terminal.ts";
import { type Finding, trying } from "./finding.ts";
import { RESTART, type SetVariable, shareWith } from "./repair.ts";

const UNIT_FOLDER = `/etc/systemd/system/${INSTALLED.unit}.d`;

/** The drop-in that gives the service its capabilities back. */
const GRANT = `mkdir -p ${UNIT_FOLDER} && printf '[Service]\\nAmbientCapabilities=CAP_NET_RAW CAP_NET_BIND_SERVICE\\nCapabilityBoundingSet=CAP_NET_RAW CAP_NET_BIND_SERVICE\\n' > ${UNIT_FOLDER}/zz-capabilities.conf && systemctl daemon-reload && ${RESTART}`;

/** Checks that the installed service has its user and its capability, and runs. */
export function checkUnit({ user, userName, unit }: InstalledService): readonly Finding[] {
  const named = trying(`find the service's user ${userName}`);
  const foundUser =
    user === null
      ? named.problem("it does not exist", "create it", "systemd-sysusers sixscope.conf")
      : named.ok(`uid ${user.uid}`);
  const state = propertyOf(unit, "ActiveState");
  if (state === "") {
    const { unknown, warning } = trying(`ask systemd about ${INSTALLED.unit}`);
    // Without D-Bus, systemd answers root only.
    const finding =
      process.geteuid?.() === 0
        ? warning("no answer", "check that systemd runs on this machine")
        : unknown("no answer", "ask as root", "sudo sixscope doctor");
    return [foundUser, finding];
  }
  const capable = trying(`see whether ${INSTALLED.unit} has CAP_NET_RAW`);
  const hasCapability =
    propertyOf(unit, "AmbientCapabilities").includes("cap_net_raw") || user?.uid === 0;
  const running = trying(`see whether ${INSTALLED.unit} runs`);
  const reset = state === "failed" ? "systemctl reset-failed sixscope; " : "";
  return [
    foundUser,
    hasCapability
      ? capable.ok("it has")
      : capable.problem("it does not, so targets can at most be pinged", "grant it", GRANT),
    state === "active"
      ? running.ok("it is active")
      : running.problem(
          `it is ${state}`,
          "journalctl -u sixscope says why; when the other problems are solved",
          reset + RESTART,
        ),
  ];
}

/** Shows what the running process says of itself, and whether it has the settings that are in the files. */
export function checkStatus(
  config: Config,
  status: Status | null,
  isInstalled: boolean,
): readonly Finding[] {
  const { ok, warning, unknown } = trying(`ask the process at ${config.statusSocket}`);
  const run = isInstalled ? RESTART : null;
  if (status === null) {
    return isInstalled
      ? [unknown("no answer", "it does not run, or not with these settings", run)]
      : [];
  }
  const about = printable(status.about);
  const found =
    settingsDigest(config) === status.settings
      ? ok(about)
      : warning(`${about}; it runs with other settings than are set now`, "restart it", run);
  if (status.withoutProbes === null) return [found];
  const { problem } = trying("see whether the running process can probe");
  return [
    found,
    problem(printable(status.withoutProbes), "grant CAP_NET_RAW", isInstalled ? GRANT : null),
  ];
}

/** Shows who may do what, and each setting that is a risk. */
export function checkExposure(
  config: Config,
  status: Status | null,
  set: SetVariable,
): readonly Finding[] {
  const { ok, warning } = trying("see who may do what");
  const { sentence, risks } = exposureOf(config, 0);
  const found = risks.map(({ variable, text, advice, instead }) =>
    warning(text, advice, instead === null ? null : set(variable, instead)),
  );
  return [ok(printable(status?.exposure ?? sentence)), ...found];
}

/** Binds each listen address, or finds the process that has it. */
export function checkPorts(
  config: Config,
  status: Status | null,
  service: InstalledService | null,
  set: SetVariable,
): readonly Finding[] {
  const own = [status?.pid, propertyOf(service?.unit ?? [], "MainPID")].map(
    (pid) => `(pid ${pid})`,
  );
  const check = (variable: string, all: readonly ListenAddress[]) =>
    all.map((address) => {
      const text = formatListenAddress(address);
      const { ok, problem } = trying(`listen on ${text}`);
      if (status?.urls.some((url) => url.replace(/^https?:\/\//, "") === text)) {
        return ok("the service answers there");
      }
      const obstacle = listenProblem(address);
      if (obstacle === null) return ok("it is free");
      if (own.some((pid) => obstacle.includes(`${pid} uses`))) return ok("the service has it");
      const [outcome = "", ...advice] = obstacle.split("; ");
      const others = all.filter((other) => other !== address).map(formatListenAddress);
      const run = set(variable, [...others, "ADDRESS:PORT"].join());
      return problem(outcome, advice.join("; ") || `correct ${variable}`, run);
    });
  const scraped = check("SIXSCOPE_METRICS_LISTEN", config.metricsListen);
  return [...check("SIXSCOPE_LISTEN", config.listen), ...scraped];
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
export function checkTls(tls: TlsFiles, nowMs: number, userName = ownName()): Finding {
  const DAY_MS = 86_400_000;
  // Clients such as certbot renew a certificate earlier than this.
  const FEW_DAYS = 14;
  const { certFile, keyFile } = tls;
  const { ok, problem, warning } = trying(`read certificate ${certFile} and key ${keyFile}`);
  const isCopy = certFile.startsWith(`${INSTALLED.credentials}/tls_`);
  const [certTo, keyTo] = [certFile, keyFile].map((file) =>
    file.replace(`${INSTALLED.credentials}/tls_`, `${INSTALLED.tlsDirectory}/`),
  );
  const install = `install -m 0640 -g ${userName}`;
  const renew = `${install} CERT.pem ${certTo} && ${install} KEY.pem ${keyTo}${isCopy ? ` && ${RESTART}` : ""}`;
  try {
    const certificate = readCertificate(tls);
    const reason = outOfTime(certificate, nowMs);
    if (reason !== null) {
      const advice = "check the clock; or get a new one, with its key";
      return problem(`the certificate ${reason}`, advice, renew);
    }
    if (everyUserMay("read", realpathSync(keyFile))) {
      const advice = "if it was so for long, renew it with a new key";
      const share = shareWith(userName, keyFile);
      return warning("every user of this machine can read the key", advice, share);
    }
    const days = Math.floor((certificate.expiresMs - nowMs) / DAY_MS);
    return days < FEW_DAYS
      ? warning(`they expire in ${days} days`, "find out why they were not renewed")
      : ok(`they match and are valid for ${days} days`);
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    const isDenied = errorCode(error.cause) === "EACCES";
    const share = [certFile, keyFile].map((file) => shareWith(userName, file)).join(" && ");
    return isDenied
      ? problem(error.message, `let ${userName} read it, and enter its folder`, share)
      : problem(error.message, "put a certificate and its own key there", renew);
  }
}

/** Names of keys that one line has at most. */
const MAX_NAMES = 5;

/** Checks that the keys file can be read, has an active key, and has the keys that are in use. */
export function checkKeys(path: string, nowMs: number, used: readonly KeyRecord[] = []): Finding {
  const { ok, problem, warning } = trying(`read the keys file ${path}`);
  const add = `${invocation()} keys add NAME`;
  const inUse = used.filter((key) => isActive(key, nowMs)).map(({ name }) => JSON.stringify(name));
  const named = `keys in use: ${listText(inUse.slice(0, MAX_NAMES))}`;
  const atRisk = `a restart loses the ${plural(inUse.length, "key")} in use; a new key writes them again`;
  try {
    if (!existsSync(path)) {
      return inUse.length > 0
        ? problem(`it does not exist; ${named}`, atRisk, add)
        : warning("it does not exist, so there are no keys", "create one", add);
    }
    if (everyUserMay("write", realpathSync(path))) {
      const advice = `see which keys are in it: ${invocation()} keys list`;
      return problem("every user of this machine can add keys to it", advice, `chmod o-w ${path}`);
    }
    return activeKeys({ ok, warning }, readKeyFile(path), nowMs, add);
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    const [outcome = ""] = error.message.split("; ");
    if (errorCode(error.cause) === "EACCES") {
      return problem(outcome, "give it to the service", `chown ${ownName()}: ${shellQuote(path)}`);
    }
    const aside = `mv ${shellQuote(path)} ${shellQuote(`${path}.broken`)} && ${add}`;
    return inUse.length > 0
      ? problem(`${error.message}; ${named}`, atRisk, aside)
      : problem(error.message, "restore it from a backup; until then no key is valid");
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
  return active === 0
    ? warning("no key is active", "create one", add)
    : ok(`active keys: ${active}`);
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
