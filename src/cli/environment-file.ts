/**
 * An assignment or a comment of an environment file: a name up to `=`, quoted pieces, which may hold
 * line breaks, and then a plain rest without the white space at its end.
 */
const ENTRY =
  /^[ \t]*(?:[#;][^\n\r]*|([^=\n\r]+)=((?:[ \t]*(?:'[^']*'?|"(?:\\[\s\S]|[^"\\])*"?))*)[ \t]*((?:[ \t]*(?:\\[\s\S]|[^ \t\n\r\\]))*))/gm;

const QUOTED = /'([^']*)'?|"((?:\\[\s\S]|[^"\\])*)"?/g;

const NAME = /^[A-Za-z_]\w*$/;

/**
 * The variables of an environment file, read as systemd does: quotes around a whole value or its
 * beginning, a backslash before what shall stand as it is, or before a line break that does not count;
 * systemd.exec(5), EnvironmentFile.
 */
export function parseEnvironmentFile(text: string): Record<string, string> {
  const entries = [...text.matchAll(ENTRY)].map(
    ([, name = "", quoted = "", plain = ""]) =>
      [name.trim(), unquote(quoted) + plain.replaceAll(/\\([\s\S])/g, unlessLineBreak)] as const,
  );
  return Object.fromEntries(entries.filter(([name]) => NAME.test(name)));
}

function unquote(pieces: string): string {
  const values = [...pieces.matchAll(QUOTED)].map(
    ([, single, double = ""]) => single ?? double.replaceAll(/\\(["\\`$\n])/g, unlessLineBreak),
  );
  return values.join("");
}

function unlessLineBreak(_: string, character: string): string {
  return /[\n\r]/.test(character) ? "" : character;
}

/** The variables of `Environment=` as `systemctl show` writes them: words, in quotes where need be. */
export function parseShownEnvironment(text: string): Record<string, string> {
  const words = text.match(/"(?:\\.|[^"\\])*"|[^\s"]+/g) ?? [];
  const assignments = words.map((word) => (word.startsWith('"') ? readQuotedWord(word) : word));
  return Object.fromEntries(
    assignments.map((assignment) => assignment.split(/=([\s\S]*)/).slice(0, 2)),
  );
}

function readQuotedWord(word: string): string {
  const SHORT: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };
  return word
    .slice(1, -1)
    .replaceAll(/\\(.)/g, (_, character: string) => SHORT[character] ?? character);
}
