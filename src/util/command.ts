/** A command as its words: the program and its arguments. */
export type Command = readonly string[];

/** A command as one line for a shell, with quotes around words that the shell would change. */
export function formatCommand(words: Command): string {
  return words.map(quoteWord).join(" ");
}

function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
