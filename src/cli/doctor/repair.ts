import type { EnvironmentFile } from "../../config/environment-file.ts";
import { shellQuote } from "../key-store.ts";

/** The command that sets a variable for the installed service, and comments its line out for an empty value; null where none is installed. */
export type SetVariable = (name: string, value: string) => string | null;

/** Applies settings. */
export const RESTART = "systemctl restart sixscope";

/** The runtime reads the PEM file that it names at its start. */
export const AUTHORITIES = "NODE_EXTRA_CA_CERTS";

export const TRUST_ADVICE = `set ${AUTHORITIES} to a PEM file with the certificate's authority`;

/** Changes variables where they are set, or at the end of the last of the files. */
export function variableSetter(files: readonly EnvironmentFile[]): SetVariable {
  return (name, value) => {
    const file = files.findLast(({ lines }) => name in lines) ?? files.at(-1);
    if (file === undefined) return null;
    const { [name]: line } = file.lines;
    const change = value === "" ? "s|^|#|" : `s|=.*|=${value}|`;
    return line === undefined
      ? `printf '\\n%s\\n' ${shellQuote(`${name}=${value}`)} >> ${file.path} && ${RESTART}`
      : `sed -i ${shellQuote(`${line}${change}`)} ${file.path} && ${RESTART}`;
  };
}

/** The command that corrects the line of a file that a problem of the settings names; null if it names none. */
export function correctLine(problem: string): string | null {
  const [, line, path, name] = /^line (\d+) of (\S+): (?:(\w+)\b(?==|: ))?/.exec(problem) ?? [];
  const [, near] = /did you mean (\w+)\?$/.exec(problem) ?? [];
  if (line === undefined) return null;
  // It writes export A=1, A: 1 and A = 1 as they are meant; any other line becomes a comment.
  const unclear = "{s/^\\s*(export\\s+)?(\\w+)\\s*[:=]\\s*/\\2=/;t;s/^/#/}";
  const change = near ? `s/${name}=/${near}=/` : name ? "s|=.*|=VALUE|" : unclear;
  return `sed -Ei '${line}${change}' ${path} && ${RESTART}`;
}

/** Lets the service's user read a file, and others no longer. */
export function shareWith(user: string, path: string): string {
  return `chgrp ${user} ${shellQuote(path)} && chmod 640 ${shellQuote(path)}`;
}
