import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { readOrEmpty, replaceFile } from "../platform/regular-file.ts";
import { ownName } from "../platform/users.ts";
import { scheduleRules } from "../server/endpoints.ts";
import { askWatch, askWatches } from "../server/status.ts";
import { attempt, orThrow, reasonOf } from "../util/errors.ts";
import { inWords, plural, printable, quote } from "../util/text.ts";
import { moment, momentMs } from "../watch/endpoint.ts";
import { parseSchedule, parseWatch, WatchError } from "../watch/schedule.ts";
import { about } from "./about.ts";
import { settingsOfService, whileLocked } from "./key-store.ts";
import { invocation, print } from "./terminal.ts";

const SETTING = "SIXSCOPE_WATCH_FILE";

const NAME = ["<name...>", "its line without every="] as const;

const JSON_OPTION = ["--json", "print the JSON document of the API"] as const;

/** Adds `watch` with its own commands. */
export function addWatchCommands(program: Command, environment: NodeJS.ProcessEnv): void {
  const watch = program.command("watch").helpCommand(false);
  const add = (name: string, help: string, example: string) =>
    about(watch.command(name), help, `sixscope watch ${name}${example}`);
  const settings = () => settingsOfService(environment, "watches", SETTING);
  about(
    watch,
    "Say what the service measures again and again, and show what changed.",
    "sixscope watch add check www.example.com every=5m",
  );
  add(
    "add",
    "Add a watch to the file of watches: a tool, its target, parameters of its endpoint, and every= with the time between two runs (5m). Several watches are an argument each, in quotes.",
    " mtr 2001:db8::80 every=1m rounds=10 from=ams,fra",
  )
    .argument("<line...>", "the watch, or several of them")
    .action(async (words: string[], _: object, command: Command) => {
      // Several lines, or one line of several words.
      const lines = words.some((word) => /\s/.test(word)) ? words : [words.join(" ")];
      print(await addWatches(lines, settings(), command));
    });
  add("remove", "Remove a watch from the file of watches. Its history stays.", " here")
    .argument(...NAME)
    .action(async (words: string[]) => print(await removeWatch(nameOf(words), settings())));
  add("list", "Show what the running service watches, and how it is.", "")
    .option(...JSON_OPTION)
    .action(async ({ json }: { json?: true }) => print(await listWatches(json, settings())));
  add(
    "show",
    "Show what a watch has seen: runs, round-trip times, loss, verdicts and gaps in 24 parts of the time, and its changes.",
    " check www.example.com --since 7d",
  )
    .argument(...NAME)
    .option("--since <time>", "the beginning, or how long ago", parseSince, "24h")
    .option(...JSON_OPTION)
    .action(async (words: string[], { since, json }: { since: string; json?: true }) =>
      print(await showWatch(nameOf(words), momentMs(since, Date.now()), json, settings())),
    );
}

type Settings = ReturnType<typeof settingsOfService>;

/** @throws InvalidArgumentError for a text that is not a time */
function parseSince(text: string): string {
  if (moment("", "").schema().safeParse(text).success) return text;
  throw new InvalidArgumentError("It must be a time such as 2027-01-31T12:00:00Z or 24h.");
}

/** The name of a watch from the words of its line: all but `every=`. */
const nameOf = (words: readonly string[]) =>
  words
    .flatMap((word) => word.split(/\s+/))
    .filter((word) => word !== "" && !word.startsWith("every="))
    .join(" ");

/**
 * Changes the file of watches while no other command does, and returns its path.
 *
 * @throws WatchError if it cannot be read or written
 */
async function changeFile({ watchFile }: Settings, change: (text: string) => string) {
  // The target of a link is replaced, not the link.
  const path = attempt(() => realpathSync(watchFile)) ?? watchFile;
  const advice = `let ${ownName()} read and write ${path}, or set ${SETTING}`;
  const failure = (reason: string) =>
    new WatchError(`cannot change the file of watches: ${reason}; ${advice}`);
  await whileLocked(dirname(path), failure, async () => {
    const text = change(orThrow(() => readOrEmpty(path), failure));
    await replaceFile(path, text).catch((error) => {
      throw failure(reasonOf(error));
    });
  });
  return path;
}

/** `sixscope watch add LINE…`: adds all lines, or ends the command if one is not valid. */
async function addWatches(lines: readonly string[], settings: Settings, command: Command) {
  const rules = scheduleRules(settings);
  const added = lines.map((line) => {
    try {
      if (/[\r\n]/.test(line)) throw new WatchError("it is more than one line");
      return parseWatch(line, rules);
    } catch (error) {
      return command.error(`error: ${quote(line)} cannot be watched: ${reasonOf(error)}`);
    }
  });
  const path = await changeFile(settings, (text) => {
    const { watches } = parseSchedule(text, rules);
    const names = [...watches, ...added].map(({ name }) => name);
    const twice = names.find((name, at) => names.indexOf(name) < at);
    if (twice) throw new WatchError(`${quote(twice)} would be watched twice`);
    return `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${lines.join("\n")}\n`;
  });
  return `Added ${plural(added.length, "line")} to ${path}; a running service begins within a second.`;
}

/**
 * `sixscope watch remove NAME`, also of a line that is not valid.
 *
 * @throws WatchError if there is no such line
 */
async function removeWatch(name: string, settings: Settings) {
  if (name === "" || name.startsWith("#")) throw notWatched(name);
  const path = await changeFile(settings, (text) => {
    const lines = text.split("\n");
    const others = lines.filter((line) => nameOf([line.replace(/\s#.*/, "")]) !== name);
    if (others.length < lines.length) return others.join("\n");
    throw notWatched(name);
  });
  return `Removed ${name} from ${path}; its history stays.`;
}

const notWatched = (name: string) =>
  new WatchError(`${quote(name)} is not watched; see ${invocation()} watch list`);

/** Cells as a line, without cells that are not known. */
const lineOf = (...cells: readonly (string | number | false | null | undefined)[]) =>
  printable(
    cells.filter((cell) => cell !== null && cell !== undefined && cell !== false).join("  "),
  );

const nothingWatched = () =>
  `nothing is watched yet; begin as with: ${invocation()} watch add check www.example.com every=5m`;

/** `sixscope watch list`: the watches and their verdicts. */
async function listWatches(json: true | undefined, settings: Settings) {
  const document = await askWatches(settings);
  if (json) return JSON.stringify(document);
  const { problem } = document.details;
  const wrong = document.details.wrong.map(({ line, text }) => lineOf(`line ${line}`, text));
  if (problem) wrong.unshift(lineOf(`The history is not kept: ${problem}`));
  const lines = document.watches.map(({ name, verdict }) =>
    verdict
      ? lineOf(name, inWords(verdict.code), `since ${verdict.since}`, verdict.text)
      : lineOf(name, "no run yet"),
  );
  return [...wrong, ...lines].join("\n") || nothingWatched();
}

/** `sixscope watch show NAME`: the runs of a watch in parts of the time, and its changes. */
async function showWatch(
  name: string,
  sinceMs: number,
  json: true | undefined,
  settings: Settings,
) {
  const document = await askWatch(settings, name, sinceMs);
  if (document === null) throw notWatched(name);
  if (json) return JSON.stringify(document);
  const parts = document.series.map(({ at, runs, median, loss, code, gap }) =>
    lineOf(
      ...[at, plural(runs, "run"), median !== null && `median ${median} ms`],
      ...[loss !== null && `loss ${loss} %`, code && inWords(code), gap],
    ),
  );
  const changes = document.changes.map(({ at, kind, text }) => lineOf(at, kind, text));
  return [...parts, plural(changes.length, "change"), ...changes].join("\n");
}
