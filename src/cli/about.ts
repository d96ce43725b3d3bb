import type { Command } from "commander";

/** The first sentence, as help begins it. */
export function firstClause(description: string): string {
  const [clause = ""] = description.split(/\.(?: |$)/);
  return clause.charAt(0).toLowerCase() + clause.slice(1);
}

/** Describes a command; its summary is the first sentence of the help. */
export function about(command: Command, help: string, example: string): Command {
  return command.summary(firstClause(help)).description(`${help}\n\nExample: ${example}`);
}
