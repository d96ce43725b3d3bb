import type { EnvironmentFile } from "../../config/environment-file.ts";
import type { Config } from "../../config/settings.ts";
import type { Status } from "../../server/status.ts";
import { type Command, formatCommand } from "../../util/command.ts";
import type { InstalledService } from "../installed.ts";

/** The result of one check: an attempt, its outcome, and what to do; only a problem makes doctor fail. */
export interface Finding {
  readonly state: "ok" | "warning" | "problem" | "unknown";
  readonly tried: string;
  readonly outcome: string;
  /** Null if there is nothing to do, or the outcome says it. */
  readonly advice: string | null;
  /**
   * The command that does it as root, quoted for a shell; words in capitals stand for values that only the operator
   * knows. Null if no plain command does it.
   */
  readonly run: string | null;
}

/** The evidence that checks look at. */
export interface Scene {
  readonly config: Config;
  /** Null if none is installed. */
  readonly service: InstalledService | null;
  /** The answer of the running process; null if there is none. */
  readonly status: Status | null;
  readonly files: readonly EnvironmentFile[];
  readonly environment: NodeJS.ProcessEnv;
  /** The role that the settings are for; see `roleOf`. */
  readonly role: Status["role"];
  /** True if the running process has this role and these settings. */
  readonly isCurrent: boolean;
  readonly setting: Setting;
}

/** The findings that one attempt can have. */
export function trying(tried: string) {
  const finding =
    (state: Finding["state"]) =>
    (outcome: string, advice: string, run: Command | null = null): Finding => ({
      ...{ state, tried, outcome, advice, run: run && formatCommand(run) },
    });
  return {
    /** All is well. */
    ok: (outcome: string): Finding => ({ state: "ok", tried, outcome, advice: null, run: null }),
    /** It works and may fail later, or only some setups need it. */
    warning: finding("warning"),
    /** It does not work. */
    problem: finding("problem"),
    /** It could not be seen. */
    unknown: finding("unknown"),
  };
}

/** A finding as one line for people, which ends with the command. */
export function formatFinding({ state, tried, outcome, advice, run }: Finding): string {
  const line = `${state.padEnd("problem".length)}  ${tried}: ${outcome}`;
  return [line, advice ?? [], run === null ? [] : `run: ${run}`].flat().join("; ");
}

/** The command that applies settings. */
export const RESTART: Command = ["systemctl", "restart", "sixscope"];

/** The variable that names a PEM file, which the runtime reads at its start. */
export const AUTHORITIES = "NODE_EXTRA_CA_CERTS";

export const TRUST_ADVICE = `set ${AUTHORITIES} to a PEM file with the certificate's authority`;

/** The name of a setting with the place where it is set, for a sentence that says to set it. */
export type Setting = (name: string) => string;

/** Names the file where a setting is, or else the last of the files. */
export function settingIn(files: readonly EnvironmentFile[]): Setting {
  return (name) => {
    const file = files.findLast(({ lines }) => name in lines) ?? files.at(-1);
    return file === undefined ? name : `${name} in ${file.path}, then restart the service`;
  };
}

/** The advice for a file with a secret that only a group may read. */
export function shareWith(group: string): string {
  return `make its group ${group} and its mode 640`;
}
