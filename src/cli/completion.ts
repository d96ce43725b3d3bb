import type { Command, Option } from "commander";
import { z } from "zod";
import { ALL_LOCATIONS, LOCATION_FORM, TOOL_SETTINGS } from "../config/settings.ts";
import { locations as locationsEndpoint } from "../locations/endpoint.ts";
import { urlOf } from "./call-server.ts";
import bash from "./completion/sixscope.bash" with { type: "text" };
import fish from "./completion/sixscope.fish" with { type: "text" };
import zsh from "./completion/sixscope.zsh" with { type: "text" };
import { openKeyStore } from "./key-store.ts";

/** The shells that there is a completion script for. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

export type Shell = (typeof SHELLS)[number];

/** Each calls `sixscope __complete` for what can follow the words up to the cursor. */
const SCRIPTS: Readonly<Record<Shell, string>> = { bash, zsh, fish };

/** The script that makes a shell complete the commands of sixscope. */
export function completionScript(shell: Shell): string {
  return SCRIPTS[shell].trimEnd();
}

/** How long someone who presses the tab key waits for what only a service knows, in milliseconds. */
const PATIENCE_MS = 1_000;

/**
 * The candidates for the last word: lines of a word, a tab and its meaning.
 *
 * @param words those of the command line behind `sixscope`; the last one is perhaps not complete
 * @param environment says whose keys and which service's locations are candidates too
 */
export async function candidates(
  program: Command,
  words: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<string[]> {
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
  if (expecting?.long === "--from") {
    const named = words.indexOf("--server") + 1;
    const url = named > 0 ? words[named] : environment[TOOL_SETTINGS.server];
    const [before = ""] = /^.*,/.exec(last) ?? [];
    const locations = [...(before ? [] : [ALL_LOCATIONS]), ...(await known(locationsOf(url)))];
    return locations.map((name) => before + name).filter(startsWith(last));
  }
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
  const keys =
    command.name() === "revoke" && position === 0 ? await known(keysOf(environment)) : [];
  return [...commands, ...(argument?.argChoices ?? []), ...keys].filter(startsWith(last));
}

/** The names, or none if they do not come in time: whoever completes a word gets no errors. */
function known(names: Promise<readonly string[]>): Promise<readonly string[]> {
  return Promise.race([names.catch(() => []), Bun.sleep(PATIENCE_MS).then(() => [])]);
}

/** The names of the keys that can be revoked. */
async function keysOf(environment: NodeJS.ProcessEnv): Promise<readonly string[]> {
  const keys = await openKeyStore(environment).read();
  return keys.filter(({ revoked }) => revoked === undefined).map(({ name }) => name);
}

/** The locations that a service can ask. */
async function locationsOf(server: string | undefined): Promise<readonly string[]> {
  const url = urlOf(new URL(server ?? ""), { endpoint: locationsEndpoint, parameters: {} });
  const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE_MS) });
  const rows = z.object({ locations: z.array(z.object({ location: z.string() })) });
  const { locations } = rows.parse(await response.json());
  return locations.map(({ location }) => location).filter((name) => LOCATION_FORM.test(name));
}

const startsWith = (beginning: string) => (text: string) => text.startsWith(beginning);

/** The option of a command that takes the next word as its value. */
function valueOption(command: Command, word: string): Option | undefined {
  return command.options.find(
    (option) => option.required && [option.short, option.long].includes(word),
  );
}
