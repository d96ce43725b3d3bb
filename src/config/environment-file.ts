import { tryRead } from "../platform/regular-file.ts";

/** The settings of the package, which its unit names; systemd.exec(5), EnvironmentFile=. */
export const ENVIRONMENT_FILE = "/etc/sixscope/sixscope.env";

/** A file of variables that systemd passes on to the service. Lines are counted from 1. */
export type EnvironmentFile = ReturnType<typeof parseEnvironmentFile>;

/** A variable, with quotes around its whole value or none at its start; everyone reads such a line alike. */
const ASSIGNMENT =
  /^[ \t]*([A-Za-z_]\w*)=[ \t]*(?:(?:"([^"\\]*)"|'([^'\\]*)'|([^"'\\ \t\r][^\\ \t\r]*(?:[ \t\r]+[^\\ \t\r]+)*)|\r)[ \t\r]*)?$/;

/** An empty line or a comment; older versions of systemd continue one that ends with a backslash on the next line. */
const NOTHING = /^[ \t\r]*([#;].*(?<!\\))?$/s;

/** The variables in the text of an environment file, the last line that sets each, and the lines that systemd ignores or reads otherwise than they look. */
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

/** The settings of the package if systemd started this process with them; none if its user cannot read them. */
export function packagedFiles(environment: NodeJS.ProcessEnv): readonly EnvironmentFile[] {
  const { NOTIFY_SOCKET: socket, STATE_DIRECTORY: state } = environment;
  if (!socket || state !== "/var/lib/sixscope") return [];
  const text = tryRead(ENVIRONMENT_FILE);
  return text === null ? [] : [parseEnvironmentFile(ENVIRONMENT_FILE, text)];
}
