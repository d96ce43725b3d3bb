import { Argument, type Command, InvalidArgumentError } from "commander";
import { tryParseIp } from "../addr/ip.ts";
import { RESOLVER_NAMES } from "../config/settings.ts";
import { createDnsClient, MAX_SERVERS } from "../dns/client.ts";
import { parseHostname } from "../dns/hostname.ts";
import { RECORD_TYPES } from "../dns/message/record.ts";
import { valuesIn } from "../dns/outcome.ts";
import { type DnsServer, tryParseDnsServer } from "../dns/server.ts";
import { configHere } from "./call-here.ts";

/** A server by its name: `tls://dns.example:853`, with a port and a path if need be. */
const NAMED_SERVER = /^((?:tls|https):\/\/)?([^\s:/@#?[\]]+)(:\d{1,5})?(\/[^\s#]*)?$/;

/** Adds the words of `sixscope dns`, as dig(1) takes them: a name, a type, a server. */
export function addDnsWords(command: Command): void {
  const words = new Argument("[words...]", "the name, then a type and a server");
  words.argChoices = [
    ...RECORD_TYPES,
    ...[...RESOLVER_NAMES, "all", "zone"].map((name) => `@${name}`),
  ];
  command
    .usage("[options] [name] [type] [@server]")
    .addArgument(words)
    .option("-x, --reverse <address>", "look up the name of an address", (text) => {
      if (tryParseIp(text) !== null) return text;
      throw new InvalidArgumentError("It must be an IPv4 or IPv6 address.");
    });
}

/** Reads the words, and looks up the server if it has a name; ends the command if they are wrong. */
export async function readDnsWords(
  words: readonly string[],
  command: Command,
  environment: NodeJS.ProcessEnv,
) {
  const { reverse } = command.opts<{ reverse?: string }>();
  const rest = words.filter((word) => !word.startsWith("@"));
  const [server, ...servers] = words.filter((word) => word.startsWith("@"));
  const [name, type, ...more] = reverse === undefined ? rest : [reverse, "PTR", ...rest];
  if (name === undefined) return command.error("error: missing the name to look up");
  if (more.length > 0) return command.error(`error: too many words: ${more.join(" ")}`);
  if (servers.length > 0) return command.error("error: name one server");
  const parameters = { hostname: name, ...(type && { type }) };
  if (server === undefined) return { parameters, config: {} };
  if (/^@(resolver_\w+|all|zone)$/.test(server)) {
    return { parameters: { ...parameters, resolver: server.slice(1) }, config: {} };
  }
  const { resolvers } = configHere(environment);
  const resolverTitle = server.slice(1);
  const parsed = tryParseDnsServer(resolverTitle);
  const found = parsed ? [parsed] : await lookUpServer(resolverTitle, resolvers.resolver_a);
  if (found === null) {
    return command.error(
      `error: ${server} is not a server; write @resolver_b, @all, @zone, @address[:port] or @name[:port]`,
    );
  }
  if (found.length === 0) {
    const why =
      resolvers.resolver_a.length > 0
        ? "has no address that the resolver of this machine knows"
        : "cannot be looked up: /etc/resolv.conf names no resolver; write @address";
    return command.error(`error: ${server} ${why}`);
  }
  return { parameters, config: { resolvers: { ...resolvers, resolver_a: found } }, resolverTitle };
}

/** The servers at the addresses of a name, IPv6 first; null if the text does not name a server. */
async function lookUpServer(text: string, servers: readonly DnsServer[]) {
  const [, scheme = "", host = "", port = "", path = ""] = NAMED_SERVER.exec(text) ?? [];
  const name = parseHostname(host, "AAAA");
  if (!name.ok) return null;
  const certificateName = scheme && `#${name.name}`;
  const serverAt = (ip: string) =>
    tryParseDnsServer(`${scheme}${ip}${port}${path}${certificateName}`);
  // With any address, it shows if the port and the path are right.
  if (serverAt("[::1]") === null) return null;
  const client = createDnsClient({ servers });
  const types = ["AAAA", "A"] as const;
  const outcomes = await Promise.all(types.map((type) => client.query(name.name, type)));
  const addresses = outcomes.flatMap((outcome) => [
    ...valuesIn(outcome, "AAAA").map((ip) => `[${ip}]`),
    ...valuesIn(outcome, "A"),
  ]);
  return addresses.flatMap((ip) => serverAt(ip) ?? []).slice(0, MAX_SERVERS);
}
