import { tryRead } from "../platform/regular-file.ts";

/** The settings file of the package, which its unit names; systemd.exec(5), EnvironmentFile=. */
export const ENVIRONMENT_FILE = "/etc/sixscope/sixscope.env";

/** A file of variables that systemd passes on to the service. Lines are counted from 1. */
export type EnvironmentFile = ReturnType<typeof parseEnvironmentFile>;

/** A variable, with quotes around its whole value or none at its start: people and all versions of systemd read it alike. */
const ASSIGNMENT =
  /^[ \t]*([A-Za-z_]\w*)=[ \t]*(?:(?:"([^"\\]*)"|'([^'\\]*)'|([^"'\\ \t\r][^\\ \t\r]*(?:[ \t\r]+[^\\ \t\r]+)*)|\r)[ \t\r]*)?$/;

/** An empty line or a comment. Not a comment with a final backslash, which older versions of systemd continue on the next line. */
const NOTHING = /^[ \t\r]*([#;].*(?<!\\))?$/s;

/** The variables in an environment file, the last line that sets each, and the lines that systemd ignores or reads in another way. */
export function parseEnvironmentFile(path: string, text: string) {
  const variables: Record<string, string> = {};
  const lines: Record<string, number> = {};
  const unclear: number[] = [];
  for (const [index, row] of text.split("\n").entries()) {
    const [, name, ...values] = ASSIGNMENT.exec(row) ?? [];
    if (name !== undefined) {
      variables[name] = values.find((value) => value !== undefined) ?? "";
      lines[name] = index + 1;
    } else if (!NOTHING.test(row)) unclear.push(index + 1);
  }
  return { path, variables, lines, unclear };
}

/** The settings file of the package if systemd started this process with it; none if the user cannot read it. */
export function packagedFiles(environment: NodeJS.ProcessEnv): readonly EnvironmentFile[] {
  const { NOTIFY_SOCKET: socket, STATE_DIRECTORY: state } = environment;
  if (!socket || state !== "/var/lib/sixscope") return [];
  const text = tryRead(ENVIRONMENT_FILE);
  return text === null ? [] : [parseEnvironmentFile(ENVIRONMENT_FILE, text)];
}
