import type { Command, Option } from "commander";
import bash from "./completion/sixscope.bash" with { type: "text" };
import fish from "./completion/sixscope.fish" with { type: "text" };
import zsh from "./completion/sixscope.zsh" with { type: "text" };

/** The scripts that make shells complete commands; they call `sixscope __complete` for the candidates at the cursor. */
export const SCRIPTS = { bash, zsh, fish } as const;

/**
 * The candidates for the last word: lines of a word, a tab and its meaning.
 *
 * @param words of the command line behind `sixscope`; the last one may not be complete
 */
export function candidates(program: Command, words: readonly string[]): string[] {
  const last = words.at(-1) ?? "";
  let command = program;
  let position = 0;
  let expecting: Option | undefined;
  for (const word of words.slice(0, -1)) {
    if (expecting !== undefined) expecting = undefined;
    else if (word.startsWith("-")) {
      // The option takes the next word as its value.
      const isMeant = ({ short, long }: Option) => short === word || long === word;
      expecting = command.options.find((option) => option.required && isMeant(option));
    } else {
      const next = command.commands.find((each) => [each.name(), ...each.aliases()].includes(word));
      if (next === undefined) position++;
      else command = next;
    }
  }
  const help = command.createHelp();
  if (expecting !== undefined) return (expecting.argChoices ?? []).filter(startsWith(last));
  if (last.startsWith("-")) {
    return help
      .visibleOptions(command)
      .flatMap(({ short, long, description }) =>
        [short, long].flatMap((name) => (name ? [`${name}\t${description}`] : [])),
      )
      .filter(startsWith(last));
  }
  const named = position === 0 ? help.visibleCommands(command) : [];
  const commands = named.map((each) => `${each.name()}\t${each.summary() || each.description()}`);
  const { registeredArguments: all } = command;
  const choices = (all[position] ?? all.at(-1))?.argChoices ?? [];
  return [...commands, ...choices].filter(startsWith(last));
}

const startsWith = (beginning: string) => (text: string) => text.startsWith(beginning);
