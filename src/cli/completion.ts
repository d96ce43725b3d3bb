import type { Command, Option } from "commander";

/** The shells that there is a completion script for. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

export type Shell = (typeof SHELLS)[number];

/** Each asks `sixscope __complete` for what can follow the words up to the cursor. */
const SCRIPTS: Readonly<Record<Shell, string>> = {
  // Bash also splits words at : and @; what is before such a split is not part of the completion.
  bash: `_sixscope() {
  local IFS=$' \\t\\n' words line
  read -ra words <<< "\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:0:COMP_POINT} == *' ' ]] && words+=("")
  local whole="\${words[-1]}" current="\${COMP_WORDS[COMP_CWORD]}"
  local before="\${whole%"$current"}"
  COMPREPLY=()
  while read -r line; do
    [[ $line == "$whole"* ]] && COMPREPLY+=("\${line#"$before"}")
  done < <("\${words[0]}" __complete -- "\${words[@]:1}" 2>/dev/null | cut -f 1)
}
complete -F _sixscope sixscope`,
  zsh: `#compdef sixscope
_sixscope() {
  local -a found
  found=("\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$found" ]] && _describe sixscope found
}
if [[ "$funcstack[1]" == _sixscope ]]; then _sixscope "$@"; else compdef _sixscope sixscope; fi`,
  fish: `complete -c sixscope -f -a '(sixscope __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'`,
};

/** The script that makes a shell complete the commands of sixscope. */
export function completionScript(shell: Shell): string {
  return SCRIPTS[shell];
}

/**
 * What can stand in place of the last word: lines of a word, a tab and what it means.
 *
 * @param words those of the command line behind `sixscope`; the last one is perhaps not complete
 */
export function candidates(program: Command, words: readonly string[]): string[] {
  const last = words.at(-1) ?? "";
  let command = program;
  let position = 0;
  let expecting: Option | undefined;
  for (const word of words.slice(0, -1)) {
    if (expecting !== undefined) expecting = undefined;
    else if (word.startsWith("-")) expecting = valueOption(command, word);
    else {
      const next = command.commands.find(
        (one) => one.name() === word || one.aliases().includes(word),
      );
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
  const commands = named.map((one) => `${one.name()}\t${one.summary() || one.description()}`);
  const argument = command.registeredArguments.at(
    Math.min(position, command.registeredArguments.length - 1),
  );
  return [...commands, ...(argument?.argChoices ?? [])].filter(startsWith(last));
}

const startsWith = (beginning: string) => (text: string) => text.startsWith(beginning);

/** The option of a command that takes the next word as its value. */
function valueOption(command: Command, word: string): Option | undefined {
  return command.options.find(
    (option) => option.required && [option.short, option.long].includes(word),
  );
}
