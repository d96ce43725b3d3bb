import { Argument, Command, CommanderError, Help } from "commander";
import { interfaceText } from "../server/endpoints.ts";
import { TOOLS } from "../tools/table.ts";
import { COMMIT, VERSION } from "../util/version.ts";
import { about } from "./about.ts";
import { runAgent } from "./agent.ts";
import { candidates, SCRIPTS } from "./completion.ts";
import { runDoctor } from "./doctor.ts";
import { addKeyCommands } from "./keys.ts";
import { runServe } from "./serve.ts";
import { print, say } from "./terminal.ts";
import { addServerOptions, addTool, type ServerOptions } from "./tool-commands.ts";
import { addWatchCommands } from "./watch.ts";

/** The exit status for wrong usage; the parser has no fixed one. */
const WRONG_USAGE = 2;

/**
 * Runs a command and returns the exit status: 0 done, 1 failed, 2 wrong usage.
 *
 * @throws whatever the command throws
 */
export async function runCommandLine(argv: readonly string[], environment: NodeJS.ProcessEnv) {
  let status = 0;
  try {
    const commands = describeCommands(environment, (toolStatus) => {
      status = toolStatus;
    });
    await commands.parseAsync(argv.map(withoutValue), { from: "user" });
    return status;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? 0 : WRONG_USAGE;
  }
}

/** Writes `--tcp` as `--tcp=`, so that the parser does not read the target as its port. */
function withoutValue(word: string, _: number, [command]: readonly string[]): string {
  return command !== "dns" && /^--(tcp|udp)$/.test(word) ? `${word}=` : word;
}

/** The least columns for a description beside its term; with fewer, it goes below. */
const NARROWEST = 28;

function formatItem(this: Help, ...item: Parameters<Help["formatItem"]>): string {
  const [term, termWidth, description, helper] = item;
  const { helpWidth = 80 } = this;
  if (helpWidth - termWidth >= NARROWEST + 4) return Help.prototype.formatItem.apply(this, item);
  return `  ${term}\n${helper.boxWrap(description, helpWidth - 6).replace(/^/gm, " ".repeat(6))}`;
}

/**
 * All commands: the parser, the help, the completion and the manual page are made from this.
 *
 * @param setStatus takes the exit status of a tool
 */
export function describeCommands(
  environment: NodeJS.ProcessEnv,
  setStatus: (status: number) => void = () => {},
): Command {
  const commit = COMMIT === null ? "" : ` (${COMMIT})`;
  const program = new Command("sixscope")
    .description("IPv6 diagnostics as a JSON HTTP API")
    .version(`sixscope ${VERSION}${commit}`, "-v, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .exitOverride()
    .configureHelp({ minWidthToWrap: NARROWEST, formatItem })
    .configureOutput({
      writeOut: (text) => say(text.trimEnd()),
      outputError: (text, write) => write(inOurWords(text)),
    });
  addServiceCommands(program, environment);
  for (const tool of TOOLS) addTool(program, tool, environment, setStatus);
  addWatchCommands(program, environment);
  about(
    program.command("diff"),
    "Show what is different between two results of a tool. Each file has a document as --json prints it, or one on each line, as those of check --file. With - instead, standard input has the documents before and after on each line.",
    "sixscope diff yesterday.json today.json",
  )
    .argument("<before>", "a file with the result before, or -")
    .argument("[after]", "a file with the result after")
    .option("--json", "print the differences as JSON")
    .action(
      async (before: string, after: string | undefined, { json = false }, command: Command) => {
        if ((before === "-") === (after !== undefined))
          command.error("error: name two files, or -");
        const { runDiff } = await import("./diff.ts");
        setStatus(await runDiff(before, after, json || before === "-", environment));
      },
    );
  about(
    addServerOptions(program.command("mcp"), environment),
    "Let a program such as an assistant use the tools. It speaks the Model Context Protocol over standard input and output, until the input ends. The program starts this command itself; docs/configuration.md shows how to set it up.",
    "sixscope mcp --server https://six.example.com",
  ).action(async (options: ServerOptions, command: Command) => {
    const { runMcp } = await import("./mcp.ts");
    await runMcp(options, command, environment);
  });
  about(
    program.command("completion"),
    "Print a script that completes commands, options and their values in a shell. The packages install it.",
    "sixscope completion bash > ~/.local/share/bash-completion/completions/sixscope",
  )
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .action((shell: keyof typeof SCRIPTS) => print(SCRIPTS[shell].trimEnd()));
  program
    .command("__complete", { hidden: true })
    .argument("[words...]")
    .allowUnknownOption()
    .action((words: string[]) => print(candidates(program, words).join("\n")));
  pointToHelp(program, "sixscope");
  return program;
}

/** The parser's words for a wrong value. */
const WRONG_VALUE =
  /^error: (?:option '(?:-\w, )?(--[\w-]+)(?:[^\w'-][^']*)?' (?:argument|value)|command-argument value) '.*?'(?: from env '(\w+)')? is invalid(?: for argument '(\w+)')?\. It must be /s;

/** An error of the parser as the API would say it. */
function inOurWords(text: string): string {
  return text
    .replace("Allowed choices are ", "It must be one of ")
    .replace(/^(error: unknown option '--\w+)='/, "$1'")
    .replace(
      WRONG_VALUE,
      (_, flag, variable, argument) => `sixscope: ${variable ?? flag ?? argument}: `,
    )
    .replace(/^error: /, "sixscope: ");
}

/** Makes each command end an error with a line that says how it is used. */
function pointToHelp(command: Command, name: string): void {
  command.showHelpAfterError(`usage: ${name} ${command.usage()}; see ${name} --help`);
  for (const inner of command.commands) pointToHelp(inner, `${name} ${inner.name()}`);
}

function addServiceCommands(program: Command, environment: NodeJS.ProcessEnv): void {
  about(
    program.command("serve"),
    "Run the service; without a command, sixscope does this. It runs until SIGTERM or SIGINT. Its settings are environment variables that begin with SIXSCOPE_; docs/configuration.md lists them.",
    "SIXSCOPE_LISTEN=[::1]:8080 sixscope serve",
  ).action(() => runServe(environment));
  about(
    program.command("agent"),
    "Measure here for instances elsewhere, over NATS. This is the service without HTTP: until SIGTERM or SIGINT, it is connected to SIXSCOPE_NATS_URL and measures for requests with from=SIXSCOPE_LOCATION. docs/operations.md shows how to set it up.",
    "SIXSCOPE_NATS_URL=tls://nats.example.com SIXSCOPE_LOCATION=ams sixscope agent",
  )
    .option("--new-key <file>", "only write a new NATS key into a file, and print its public part")
    .action(({ newKey }: { newKey?: string }) => runAgent(newKey, environment));
  about(
    program.command("doctor"),
    "Find problems and say how to solve them. The doctor checks the machine, the settings and the installed service.",
    "sudo sixscope doctor",
  )
    .option("--json", "print one JSON document")
    .action(({ json = false }: { json?: boolean }) => runDoctor(json, environment));
  addKeyCommands(program, environment);
  about(
    program.command("openapi"),
    "Print the API as an OpenAPI 3.1 document.",
    "sixscope openapi > sixscope.json",
  ).action(() => print(JSON.stringify(JSON.parse(interfaceText()), null, 2)));
}
