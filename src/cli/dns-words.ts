import { Argument, type Command, InvalidArgumentError } from "commander";
import { tryParseIp } from "../addr/ip.ts";
import { RESOLVER_NAMES } from "../config/settings.ts";
import { RECORD_TYPES } from "../dns/record.ts";
import { tryParseDnsServer } from "../dns/server.ts";
import { configHere, type OwnChoices } from "./call-here.ts";

/** The meaning of the words of `sixscope dns`. */
interface DnsWords {
  readonly parameters: Readonly<Record<string, string>>;
  readonly config: NonNullable<OwnChoices["config"]>;
}

/** Adds the words of `sixscope dns`, as dig(1) takes them: a name, a type, a server. */
export function addDnsWords(command: Command): void {
  const words = new Argument("[words...]", "the name, then a type and a server");
  words.argChoices = [...RECORD_TYPES, ...[...RESOLVER_NAMES, "all"].map((name) => `@${name}`)];
  command
    .usage("[options] [name] [type] [@server]")
    .addArgument(words)
    .option("-x, --reverse <address>", "look up the name of an address", (text) => {
      if (tryParseIp(text) !== null) return text;
      throw new InvalidArgumentError("It must be an IPv4 or IPv6 address.");
    });
}

/** Reads the words; ends the command if they are wrong. */
export function readDnsWords(
  words: readonly string[],
  command: Command,
  environment: NodeJS.ProcessEnv,
): DnsWords {
  const { reverse } = command.opts<{ reverse?: string }>();
  const rest = words.filter((word) => !word.startsWith("@"));
  const [server, ...servers] = words.filter((word) => word.startsWith("@"));
  const [name, type, ...more] = reverse === undefined ? rest : [reverse, "PTR", ...rest];
  if (name === undefined) return command.error("error: missing the name to look up");
  if (more.length > 0) return command.error(`error: too many words: ${more.join(" ")}`);
  if (servers.length > 0) return command.error("error: name one server");
  const parameters = { hostname: name, ...(type && { type }) };
  if (server === undefined) return { parameters, config: {} };
  if (/^@(resolver_\w+|all)$/.test(server)) {
    return { parameters: { ...parameters, resolver: server.slice(1) }, config: {} };
  }
  const parsed = tryParseDnsServer(server.slice(1));
  if (parsed === null) {
    return command.error(
      `error: ${server} is not a server; write @resolver_b, @all or @address[:port]`,
    );
  }
  const { resolvers } = configHere(environment);
  return { parameters, config: { resolvers: { ...resolvers, resolver_a: [parsed] } } };
}
