import { type Command, Option } from "commander";
import { apiErrorOf } from "../api/errors.ts";
import { alone, optionParameter, type Parameters, readTexts } from "../api/parameters.ts";
import { ALL_LOCATIONS, TOOL_SETTINGS } from "../config/settings.ts";
import { readRegularFile } from "../platform/regular-file.ts";
import { servedEndpoint } from "../server/endpoints.ts";
import { MAX_ROUNDS, MAX_ROUNDS_ALONE } from "../tools/mtr/result.ts";
import type { Endpoint } from "../tools/services.ts";
import type { Tool } from "../tools/table.ts";
import { reasonOf } from "../util/errors.ts";
import { about, firstClause } from "./about.ts";
import { type CallEndpoint, callHere, type OwnChoices, openHere } from "./call-here.ts";
import { callServer, isPrivateWay, ownKey, parseServer, readKey } from "./call-server.ts";
import { checkNames, JOBS, readNames } from "./check-file.ts";
import { addDnsWords, readDnsWords } from "./dns-words.ts";
import { FORMATS } from "./formats.ts";
import { isTerminal } from "./screen.ts";
import { inCommandWords, ONE_LOCATION, runTool } from "./tool.ts";

const KEY_FROM =
  "with --server, the environment variable or the file that has its API key (default: SIXSCOPE_KEY, for SIXSCOPE_SERVER alone)";

const FILE_HELP = "check the names in a file, one a line; - for standard input";

/** Options that choose a service. */
export interface ServerOptions {
  readonly server?: URL;
  readonly keyFrom?: string;
  readonly plainHttp?: true;
}

/** Options of every tool. */
interface ToolOptions extends ServerOptions {
  readonly from?: string;
  readonly json?: boolean;
  readonly stream?: boolean;
  readonly format?: keyof typeof FORMATS;
  readonly report?: boolean;
  /** A file with the names to check. */
  readonly file?: string;
}

/**
 * Adds the command of a tool, with an option for each parameter that has one.
 *
 * @param setStatus takes the exit status of the tool
 */
export function addTool(
  program: Command,
  tool: Tool,
  environment: NodeJS.ProcessEnv,
  setStatus: (status: number) => void,
): void {
  const endpoint = servedEndpoint(tool);
  const { parameters } = endpoint;
  const [subject] = Object.entries(parameters);
  const hasFile = tool.name === "check";
  const command = about(program.command(tool.name), tool.help, tool.example).summary(tool.summary);
  if (tool.alias !== undefined) command.alias(tool.alias);
  if (tool.name === "dns") addDnsWords(command);
  else if (subject) {
    const isOptional = tool.without ?? subject[1].schema().safeParse(undefined).success;
    const name = isOptional ? `[${subject[0]}]` : `<${subject[0]}>`;
    command.argument(name, firstClause(subject[1].description));
  }
  const rows = [...optionRows(parameters, false), ...optionRows(tool.settings ?? {}, true)];
  for (const { option } of rows) command.addOption(option);
  const jobRows = hasFile ? optionRows({ jobs: JOBS }, false) : [];
  if (hasFile) command.option("--file <names>", FILE_HELP);
  for (const { option } of jobRows) command.addOption(option);
  addServerOptions(command, environment);
  addOutputOptions(command, endpoint);
  command.action(async () => {
    const { args } = command;
    const options = command.opts<ToolOptions>();
    const { server, from, json = false, stream = false, format, file } = options;
    if (tool.without && args.length === 0 && file === undefined) {
      const { rawArgs: words } = program as Command & { readonly rawArgs: readonly string[] };
      await program.parseAsync(words.with(words.indexOf(tool.name), tool.without), {
        from: "user",
      });
      return;
    }
    const wrong = (why: string) => command.error(`error: ${why}`);
    const unserved = server
      ? undefined
      : tool.needsServer
        ? "sees your address"
        : from && "knows other locations";
    if (stream && !json) wrong("--stream needs --json");
    if (file !== undefined && args.length > 0) wrong("a name and --file exclude each other");
    if (stream && file !== undefined) wrong("--stream shows one name; leave out --file");
    if (unserved) wrong(`only a service ${unserved}; name one with --server URL`);
    // Only the answer shows how many locations a tag means.
    if (format && (from === ALL_LOCATIONS || from?.includes(","))) wrong(ONE_LOCATION);
    const words =
      tool.name === "dns"
        ? await readDnsWords(args, command, environment)
        : {
            parameters: subject && args[0] !== undefined ? { [subject[0]]: args[0] } : {},
            config: {},
          };
    read(parameters, words.parameters, command);
    const bounds = { ...(server ? parameters : alone(parameters)), ...tool.settings };
    const chosen = readOptions(rows, bounds, command);
    const config = { ...words.config, ...chosen.config };
    if (server && Object.keys(config).length > 0) {
      wrong("a service decides its own times and servers; leave out --server or the option");
    }
    if (file !== undefined) {
      const names = await namesOf(file, command);
      const { jobs = `${JOBS.default}` } = readOptions(jobRows, { jobs: JOBS }, command).texts;
      using here = server ? null : await openHere(environment, { config });
      const call = here?.call ?? callerFor(options, command, environment);
      const question = { endpoint, parameters: chosen.texts };
      return setStatus(await checkNames(names, call, question, Number(jobs), json, environment));
    }
    const callEndpoint = callerFor(options, command, environment, { ...words, config });
    const hasRounds = options.report || command.getOptionValue("rounds") !== undefined;
    const isScreen =
      tool.name === "mtr" &&
      !(hasRounds || json || format || from) &&
      isTerminal(environment["TERM"]);
    const most = isScreen ? { rounds: `${server ? MAX_ROUNDS : MAX_ROUNDS_ALONE}` } : {};
    const question = { endpoint, parameters: { ...words.parameters, ...chosen.texts, ...most } };
    const output = { json, stream, format: format && FORMATS[format], isFullScreen: isScreen };
    setStatus(await runTool(tool, callEndpoint, question, output, environment));
  });
}

/** The names of a file or of standard input. Ends the command if there are none. */
async function namesOf(file: string, command: Command): Promise<readonly string[]> {
  const wrong = (why: string) =>
    command.error(`error: --file: a file with a name on each line; ${why}.`);
  const read = async () => (file === "-" ? await Bun.stdin.text() : readRegularFile(file));
  const names = readNames(await read().catch((error) => wrong(reasonOf(error))));
  return names.length > 0 ? names : wrong("it has none");
}

/** The options of parameters. */
function optionRows(parameters: Parameters, isSetting: boolean) {
  return Object.entries(parameters).flatMap(([name, parameter]) => {
    const { option: named, bounds, isInSeconds, switches, default: fallback } = parameter;
    if (switches) {
      return Object.entries(switches).map(([value, { flags, help }]) => {
        return { name, parameter, option: new Option(`${flags} [port]`, help), isSetting, value };
      });
    }
    if (named === undefined) return [];
    // For a parameter with two words, the option means the one that is not the default.
    const [other, ...more] =
      bounds && "allowed" in bounds ? bounds.allowed.filter((word) => word !== fallback) : [];
    const isSwitch = other !== undefined && more.length === 0;
    const value = isSwitch ? "" : ` <${isInSeconds ? "seconds" : bounds ? "n" : "locations"}>`;
    const inUnit = (number: unknown) => (isInSeconds ? Number(number) / 1000 : number);
    const help = named.help ?? firstClause(parameter.description);
    const range =
      bounds && "minimum" in bounds
        ? `, ${inUnit(bounds.minimum)} to ${inUnit(bounds.maximum)}${parameter.maximumAlone ? " at a service" : ""}`
        : "";
    const preset = value !== "" && fallback !== undefined ? ` (default: ${inUnit(fallback)})` : "";
    const here = isSetting ? ", here only" : "";
    const option = new Option(`${named.flags}${value}`, `${help}${here}${range}${preset}`);
    return [{ name, option: isSwitch ? option.preset(other) : option, isSetting }];
  });
}

/** Reads the given options: texts for the API, and settings. Ends the command for a wrong one. */
function readOptions(
  rows: ReturnType<typeof optionRows>,
  parameters: Parameters,
  command: Command,
) {
  const texts: Record<string, string> = {};
  const config: Record<string, unknown> = {};
  for (const { name, option, isSetting, ...chosen } of rows) {
    const { [name]: parameter, port } = parameters;
    const given: unknown = command.getOptionValue(option.attributeName());
    if (given === undefined || parameter === undefined) continue;
    if ("value" in chosen && port) {
      if (texts[name]) command.error("error: --tcp and --udp exclude each other");
      if (given) read({ port }, { port: String(given) }, command);
      Object.assign(texts, { [name]: chosen.value }, given && { port: given });
      continue;
    }
    const flag = option.long ?? name;
    const named = { [flag]: optionParameter(parameter) };
    const value = read(named, { [flag]: String(given) }, command)[flag];
    if (isSetting) config[name] = value;
    else texts[name] = String(value);
  }
  return { texts, config };
}

/** Reads parameters, and ends the command for a wrong one as the API refuses it. */
function read(parameters: Parameters, texts: Readonly<Record<string, string>>, command: Command) {
  try {
    return readTexts(parameters, texts);
  } catch (error) {
    return command.error(`error: ${inCommandWords(apiErrorOf(error).message, parameters)}`);
  }
}

/** Adds the options of `ServerOptions`. */
export function addServerOptions(command: Command, environment: NodeJS.ProcessEnv): Command {
  const server = new Option("--server <url>", "ask the service there, instead of working here");
  return command
    .addOption(server.env(TOOL_SETTINGS.server).argParser(parseServer))
    .option("--plain-http", "send the API key over plain HTTP too, where others may read it")
    .option("--key-from <source>", KEY_FROM, (source) => readKey(source, environment));
}

/**
 * Makes the function that calls the chosen service with its API key, or works here with the user's choices. Ends the
 * command if others could read the key on its way.
 */
export function callerFor(
  { server, keyFrom, plainHttp }: ServerOptions,
  command: Command,
  environment: NodeJS.ProcessEnv,
  choices: OwnChoices = {},
): CallEndpoint {
  if (!server) return callHere(environment, choices);
  const key = keyFrom ?? ownKey(server, environment);
  if (key && !plainHttp && !isPrivateWay(server)) {
    const why = `others could read the API key on its way to ${server.origin}`;
    command.error(`error: ${why}; use https, or --plain-http`);
  }
  return callServer(server, key);
}

/** Adds the options for the output of a tool. */
function addOutputOptions(command: Command, { events }: Endpoint): void {
  command.option("--json", "print the JSON document of the API");
  if (events) command.option("--stream", "with --json, print one event a line");
  if (command.name() !== "mtr") return;
  const format = new Option("--format <name>", "print what mtr --report-wide or mtr --json prints");
  command
    .option("--report", "print the result of the rounds, without the screen")
    .addOption(format.choices(Object.keys(FORMATS)).conflicts("json"));
}
