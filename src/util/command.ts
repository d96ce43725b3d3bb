/** A command as its words: the program and its arguments. */
export type Command = readonly string[];

/** A command as one line for a shell, which reads each word as it is, whatever characters it has. */
export function formatCommand(words: Command): string {
  return words.map(quoteWord).join(" ");
}

function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
