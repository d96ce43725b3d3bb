import type { EnvironmentFile } from "../../config/environment-file.ts";
import type { Command } from "../command.ts";

/** Applies settings. */
export const RESTART: Command = ["systemctl", "restart", "sixscope"];

/** The runtime reads the PEM file that it names at its start. */
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

/** Who must be able to read a secret, and nobody else. */
export function shareWith(group: string): string {
  return `make its group ${group} and its mode 640`;
}
