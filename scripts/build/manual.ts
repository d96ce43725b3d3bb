import type { Command } from "commander";
import type { Source } from "./source.ts";

/** The manual page of a program in man(7) format, made from the description of its commands. */
export function manualPage(program: Command, { version, epochSeconds }: Source): string {
  const date = new Date(epochSeconds * 1000).toISOString().slice(0, 10);
  const name = program.name();
  const commands = leavesOf(program);
  return `${[
    `.TH ${name.toUpperCase()} 1 ${date} "${name} ${version}" "User Commands"`,
    ".SH NAME",
    `${name} \\- ${roff(program.description())}`,
    ".SH SYNOPSIS",
    ...commands.flatMap((command) => [".br", ...synopsisOf(command)]).slice(1),
    ".SH COMMANDS",
    ...commands.flatMap((command) => [
      `.SS ${roff([nameOf(command), ...command.aliases()].join(", "))}`,
      ...paragraphs(command.description()),
      ...termsOf(command),
    ]),
    ".SH OPTIONS",
    ...program.createHelp().visibleOptions(program).flatMap(optionLines),
    ".SH ENVIRONMENT",
    "The settings are environment variables that begin with",
    ".BR SIXSCOPE_ ;",
    `they are listed in /usr/share/doc/${name}/docs/configuration.md.`,
    ...term("SIXSCOPE_SERVER", "The service that the tools ask, as with --server."),
    ...term("SIXSCOPE_KEY", "An API key of that service."),
    ...term("NO_COLOR", "If it is not empty, the tools use no colours in a terminal."),
    ".SH EXIT STATUS",
    ...term("0", "The command is done, or the question is answered."),
    ...term(
      "1",
      "The command failed, or there is no answer: no reply, no such name, no record. Of check, also that the name does not work.",
    ),
    ...term("2", "Wrong usage or wrong settings."),
    ".SH SEE ALSO",
    ".BR ping (8),",
    ".BR traceroute (8),",
    ".BR mtr (8),",
    ".BR tracepath (8),",
    ".BR dig (1)",
  ].join("\n")}\n`;
}

/** The commands that have no commands of their own, in the order of the help. */
function leavesOf(program: Command): Command[] {
  return program
    .createHelp()
    .visibleCommands(program)
    .filter((command) => command.name() !== "help")
    .flatMap((command) => (command.commands.length > 0 ? leavesOf(command) : [command]));
}

/** Its name with those of the commands that it belongs to, without the program's. */
function nameOf(command: Command): string {
  const { parent } = command;
  return parent?.parent ? `${nameOf(parent)} ${command.name()}` : command.name();
}

function synopsisOf(command: Command): string[] {
  return [`.B sixscope ${roff(nameOf(command))}`, roff(command.usage())];
}

function termsOf(command: Command): string[] {
  const help = command.createHelp();
  return [
    ...help
      .visibleArguments(command)
      .flatMap((argument) => term(argument.name(), help.argumentDescription(argument))),
    ...help
      .visibleOptions(command)
      .filter(({ long }) => long !== "--help")
      .flatMap(optionLines),
  ];
}

function optionLines({ flags, description }: Command["options"][number]): string[] {
  return term(flags, description);
}

function term(name: string, meaning: string): string[] {
  return [".TP", `.B ${roff(name)}`, roff(meaning)];
}

/** Paragraphs, and each example in a line of its own as it is typed. */
function paragraphs(text: string): string[] {
  return text.split("\n\n").flatMap((paragraph) => {
    const [, example] = /^Example: (.*)$/.exec(paragraph) ?? [];
    return example === undefined
      ? [".PP", roff(paragraph)]
      : [".PP", "Example:", ".PP", ".in +4n", ".EX", roff(example), ".EE", ".in"];
  });
}

/** Text in which nothing has a meaning for roff; a hyphen stays one that can be pasted. */
function roff(text: string): string {
  return text.replaceAll("\\", "\\e").replaceAll("-", "\\-").replace(/^[.']/, "\\&$&");
}
