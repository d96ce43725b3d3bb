import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import { ALL_LOCATIONS, RESOLVER_NAMES, TOOL_SETTINGS } from "../config/settings.ts";
import { RECORD_TYPES } from "../dns/record.ts";
import { tryParseDnsServer } from "../dns/server.ts";
import type { Endpoint } from "../http/endpoint.ts";
import { dns } from "../routes/dns.ts";
import { mtr } from "../routes/mtr.ts";
import { mtu } from "../routes/mtu.ts";
import { myIp } from "../routes/my-ip.ts";
import { ping } from "../routes/ping.ts";
import { traceroute } from "../routes/traceroute.ts";
import { validate } from "../routes/validate.ts";
import { type Ask, askHere, configHere, type OwnChoices } from "./ask.ts";
import { askServer, parseServer } from "./ask-server.ts";
import { type Formats, MTR_FORMATS, PING_FORMATS, TRACE_FORMATS } from "./formats.ts";
import { mtrView, mtuView, traceView } from "./path-views.ts";
import type { Screen } from "./screen.ts";
import { type Output, runTool, type View } from "./tool.ts";
import { addressView, dnsView, fieldsView, locationsView, pingView } from "./views.ts";

/** Options of every tool. */
interface ToolOptions extends Omit<Output, "format"> {
  readonly server?: URL;
  readonly from?: string;
  readonly format?: keyof Formats;
}

/** Milliseconds, as the settings of the service allow. */
const INTERVAL_MS = { least: 10, greatest: 10_000 } as const;
const WAIT_MS = { least: 100, greatest: 10_000 } as const;

/** Milliseconds between two rounds, as the API allows. */
const ROUND_MS = { least: 100, greatest: 1000 } as const;

/** More samples than anyone waits for. */
const MAX_COUNT = 100_000;

/** Asks an endpoint for a command, and shows the answer in a view. */
type Run = (
  command: Command,
  endpoint: Endpoint,
  parameters: Readonly<Record<string, string>>,
  view: (screen: Screen) => View,
  own?: OwnChoices,
  formats?: Formats,
) => Promise<void>;

/**
 * Adds the tools to the commands.
 *
 * @param setStatus takes the exit status of a tool
 */
export function addTools(
  program: Command,
  environment: NodeJS.ProcessEnv,
  setStatus: (status: number) => void,
): void {
  const run: Run = async (command, endpoint, parameters, view, own = {}, formats) => {
    const { format, ...options } = command.opts<ToolOptions>();
    if (options.stream && !options.json) command.error("error: --stream needs --json");
    const { from } = options;
    if (from !== undefined && !options.server) {
      command.error("error: only a service knows other locations; name one with --server URL");
    }
    const question = {
      endpoint,
      parameters: { ...parameters, ...(from !== undefined && { from }) },
    };
    const isAboutSeveral = from === ALL_LOCATIONS || from?.includes(",");
    const shown: typeof view = isAboutSeveral ? (screen) => locationsView(screen, view) : view;
    const ask = askerOf(command, options, own, environment);
    const isTextAsked = endpoint === validate;
    if (isAboutSeveral && format)
      command.error("error: --format can show only one location; name one with --from");
    const output = { ...options, ...(format && formats && { format: formats[format] }) };
    setStatus(await runTool(ask, question, shown, output, environment, isTextAsked));
  };
  addPing(program, run);
  addTrace(program, run);
  addMtr(program, run);
  addMtu(program, run);
  addDns(program, run, environment);
  addValidate(program, run);
  addMyIp(program, run);
}

function addPing(program: Command, run: Run): void {
  withOutput(
    program
      .command("ping")
      .summary("measure round-trip times to a target")
      .description(
        "Sends ICMPv6 echo requests to a name or an IPv6 address, and shows each reply as it comes.\n\nExample: sixscope ping -c 2 www.example.com",
      )
      .argument(
        "<target>",
        "a name or an IPv6 address; a link-local one with its interface, as in fe80::1%eth0",
      )
      .option("-c, --count <n>", "how many requests to send; a service takes 1 to 10", count, 4)
      .option(
        "-i, --interval <seconds>",
        "time between two requests, here only",
        seconds(INTERVAL_MS),
      )
      .option("-W, --timeout <seconds>", "time to wait for a reply, here only", seconds(WAIT_MS)),
    true,
    PING_FORMATS,
  ).action(async (target: string, { count, interval, timeout }, command: Command) => {
    const config = { ...ms("pingIntervalMs", interval), ...ms("probeTimeoutMs", timeout) };
    const { server } = command.opts<ToolOptions>();
    // The service bounds the count for the sake of others; here there are no others.
    const [parameters, values] = server ? [{ count: String(count) }, {}] : [{}, { count }];
    const view = (screen: Screen) => pingView(target, screen);
    const own = { config, values };
    await run(command, ping, { target, ...parameters }, view, own, PING_FORMATS);
  });
}

function addTrace(program: Command, run: Run): void {
  withOutput(
    program
      .command("trace")
      .alias("traceroute")
      .summary("show the routers on the path to a target")
      .description(
        "Shows every hop to a name or an IPv6 address as it answers, with its name.\n\nExample: sixscope trace www.example.com",
      )
      .argument("<target>", "a name or an IPv6 address")
      .option("-m, --max-hops <n>", "hops after which the trace ends")
      .option("-w, --wait <seconds>", "time to wait for an answer, here only", seconds(WAIT_MS))
      .option("--paths <n>", "how many paths to look for, 1 to 16")
      .option("--flow-label <n>", "the flow label of the probes, which repeats a path")
      .option("-n, --numeric", "no names"),
    true,
    TRACE_FORMATS,
  ).action(async (target: string, { wait, ...options }, command: Command) => {
    const parameters = pathParameters(options);
    const view = (screen: Screen) => traceView(target, screen);
    const config = ms("probeTimeoutMs", wait);
    await run(command, traceroute, { target, ...parameters }, view, { config }, TRACE_FORMATS);
  });
}

/** Options of the tools that follow a path. */
interface PathOptions {
  readonly maxHops?: string;
  readonly paths?: string;
  readonly flowLabel?: string;
  readonly numeric?: true;
}

/** The options that are given, as parameters of the API. */
function pathParameters({ maxHops, paths, flowLabel, numeric }: PathOptions) {
  return {
    ...(maxHops && { maxHops }),
    ...(paths && { paths }),
    ...(flowLabel && { flowLabel }),
    ...(numeric && { names: "no" }),
  };
}

function addMtr(program: Command, run: Run): void {
  withOutput(
    program
      .command("mtr")
      .summary("measure loss and round-trip times of every hop")
      .description(
        "Probes every hop to a name or an IPv6 address once a round, and shows a table that grows with each round. A hop that limits its answers is no loss.\n\nExample: sixscope mtr -c 30 www.example.com",
      )
      .argument("<target>", "a name or an IPv6 address")
      .option("-c, --rounds <n>", "probes of each hop; a service takes 1 to 100", count, 10)
      .option("-i, --interval <seconds>", "time between two rounds, 0.1 to 1", seconds(ROUND_MS))
      .option("-m, --max-hops <n>", "hops after which the path ends")
      .option("--flow-label <n>", "the flow label of the probes, which repeats a path")
      .option("-n, --numeric", "no names"),
    true,
    MTR_FORMATS,
  ).action(async (target: string, { rounds, interval, ...options }, command: Command) => {
    const { server } = command.opts<ToolOptions>();
    // The service bounds the rounds for the sake of others; here there are no others.
    const [given, values] = server ? [{ rounds: String(rounds) }, {}] : [{}, { rounds }];
    const parameters = {
      ...given,
      ...(interval && { intervalMs: String(interval) }),
      ...pathParameters(options),
    };
    const view = (screen: Screen) => mtrView(target, screen);
    await run(command, mtr, { target, ...parameters }, view, { values }, MTR_FORMATS);
  });
}

function addMtu(program: Command, run: Run): void {
  withOutput(
    program
      .command("mtu")
      .summary("find the path MTU, and where the path narrows")
      .description(
        "Sends packets of growing size to a name or an IPv6 address, says which is the largest that gets through and why, and shows the largest for each hop.\n\nExample: sixscope mtu www.example.com",
      )
      .argument("<target>", "a name or an IPv6 address")
      .option("-n, --numeric", "no names"),
    true,
  ).action(async (target: string, { numeric }, command: Command) => {
    const parameters = pathParameters({ numeric });
    await run(command, mtu, { target, ...parameters }, (screen) => mtuView(target, screen));
  });
}

function addDns(program: Command, run: Run, environment: NodeJS.ProcessEnv): void {
  withOutput(
    program
      .command("dns")
      .summary("look up the records of a name")
      .usage("[options] [name] [type] [@server]")
      .description(
        "Looks up the records of a name, by default AAAA. A server is @resolver_a, _b or _c, @all to compare the three, or @address[:port]. Here, @resolver_a is the resolver of this machine unless SIXSCOPE_RESOLVER_A is set.\n\nExample: sixscope dns example.com MX @2001:db8::53",
      )
      .addArgument(wordsOfDns())
      .option("-x, --reverse <address>", "look up the name of an address")
      .option("--dnssec", "ask for the resolver's DNSSEC verdict")
      .addOption(fromOption()),
    false,
  ).action(async (words: string[], { reverse, dnssec }, command: Command) => {
    const { resolver, config, rest } = splitServer(words, command, environment);
    const [name, type, ...more] = reverse === undefined ? rest : [reverse, "PTR", ...rest];
    if (name === undefined) command.error("error: missing the name to look up");
    if (more.length > 0) command.error(`error: too many words: ${more.join(" ")}`);
    const parameters = {
      hostname: name,
      ...(type && { type }),
      ...(resolver && { resolver }),
      ...(dnssec && { dnssec: "yes" }),
    };
    await run(command, dns, parameters, dnsView, { config });
  });
}

function addValidate(program: Command, run: Run): void {
  withOutput(
    program
      .command("validate")
      .summary("say what an IPv6 address is")
      .description(
        "Says whether a text is an IPv6 address, its type, and both its text forms.\n\nExample: sixscope validate 2001:0db8::0001",
      )
      .argument("<address>", "the text"),
    false,
  ).action((address: string, _, command: Command) =>
    run(command, validate, { address }, fieldsView),
  );
}

function addMyIp(program: Command, run: Run): void {
  withOutput(
    program
      .command("my-ip")
      .summary("show the address that a service sees")
      .description(
        "Shows the address that your connection to a service comes from.\n\nExample: sixscope my-ip --server https://six.example.com",
      ),
    false,
  ).action(async (_, command: Command) => {
    if (command.opts<ToolOptions>().server === undefined) {
      command.error("error: only a service sees your address; name one with --server URL");
    }
    await run(command, myIp, {}, addressView);
  });
}

/** The words of `dns`, which can come in any order; some are known. */
function wordsOfDns(): Argument {
  const words = new Argument("[words...]", "the name, then a type and a server");
  words.argChoices = [...RECORD_TYPES, ...[...RESOLVER_NAMES, "all"].map((name) => `@${name}`)];
  return words;
}

/** Adds the options of every tool. */
function withOutput(command: Command, hasEvents: boolean, formats?: Formats): Command {
  command
    .addOption(
      new Option("--server <url>", "ask the service there, instead of working here")
        .env(TOOL_SETTINGS.server)
        .argParser(parseServer),
    )
    .option("--json", "print the JSON document of the API");
  if (formats !== undefined) {
    command.addOption(
      new Option(
        "--format <name>",
        "print what mtr --report-wide or mtr --json prints, or a result of RIPE Atlas",
      )
        .choices(Object.keys(formats))
        .conflicts("json"),
    );
  }
  return hasEvents
    ? command.option("--stream", "with --json, print one event a line").addOption(fromOption())
    : command;
}

/** Where a service measures instead. */
function fromOption(): Option {
  return new Option(
    "--from <locations>",
    "with --server, the location that measures, several (a,b), or the word all",
  );
}

function askerOf(
  command: Command,
  { server }: ToolOptions,
  own: OwnChoices,
  environment: NodeJS.ProcessEnv,
): Ask {
  if (server === undefined) return askHere(environment, own);
  if (Object.keys(own.config ?? {}).length > 0) {
    command.error(
      "error: a service decides its own times and servers; leave out --server or the option",
    );
  }
  return askServer(server, environment[TOOL_SETTINGS.key]);
}

/** Takes `@server` out of the words of `dns`. */
function splitServer(words: readonly string[], command: Command, environment: NodeJS.ProcessEnv) {
  const rest = words.filter((word) => !word.startsWith("@"));
  const [server, ...more] = words
    .filter((word) => word.startsWith("@"))
    .map((word) => word.slice(1));
  if (more.length > 0) command.error("error: name one server");
  if (server === undefined) return { resolver: null, config: {}, rest };
  if (/^(resolver_\w+|all)$/.test(server)) return { resolver: server, config: {}, rest };
  const parsed = tryParseDnsServer(server);
  if (parsed === null) {
    command.error(`error: @${server} is not a server; write @resolver_b, @all or @address[:port]`);
  }
  const { resolvers } = configHere(environment);
  return { resolver: null, config: { resolvers: { ...resolvers, resolver_a: [parsed] } }, rest };
}

/** A setting in milliseconds from an option in seconds, if it is given. */
function ms<Name extends string>(name: Name, value: number | undefined) {
  return (value === undefined ? {} : { [name]: value }) as { readonly [Key in Name]?: number };
}

function seconds({ least, greatest }: { readonly least: number; readonly greatest: number }) {
  return (text: string): number => {
    const value = /^\d+(\.\d+)?$/.test(text) ? Math.round(Number(text) * 1000) : Number.NaN;
    if (value >= least && value <= greatest) return value;
    throw new InvalidArgumentError(`It must be ${least / 1000} to ${greatest / 1000} seconds.`);
  };
}

function count(text: string): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= MAX_COUNT) return value;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${MAX_COUNT}.`);
}
