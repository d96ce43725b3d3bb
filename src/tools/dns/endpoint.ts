import { z } from "zod";
import { dnsReply } from "../../api/dns-schemas.ts";
import { ApiError } from "../../api/errors.ts";
import { choiceParameter } from "../../api/parameters.ts";
import { once, textSchema } from "../../api/schemas.ts";
import { RESOLVER_NAMES, type ResolverName } from "../../config/settings.ts";
import { parseHostname } from "../../dns/hostname.ts";
import { QUERY_TIMEOUT_MS } from "../../dns/inquiry.ts";
import { RECORD_TYPES, tryParseRecordType } from "../../dns/message/record.ts";
import { MAX_WAIT_MS } from "../../gate/fair-slots.ts";
import { newStamp } from "../../util/stamp.ts";
import { endpoint } from "../services.ts";
import { takeSlot } from "../turn.ts";
import { compareReplies, isAnswer } from "./comparison.ts";
import { askResolver, firstAnswer } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { requireAnswer } from "./failure.ts";
import { detailsOf } from "./reply.ts";
import { dnsResult } from "./result.ts";
import { dnsVerdict, unansweredText } from "./verdict.ts";
import { askZone, LONGEST_ZONE_MS } from "./zone.ts";

/** URL parsers remove a lone dot from a path, also if it is written as `%2E`. */
const EMPTY = "it is empty, as URLs drop a lone dot (the root is written as %E3%80%82)";

/** Why the servers of a zone are not asked. */
const NOT_OF_ZONE = "the servers of the zone are asked without validation, and not for class CH";

/** Milliseconds for the answer of a resolver, and as many for the verdict. */
const LONGEST_ANSWER_MS = 2 * QUERY_TIMEOUT_MS;

/** The price of a question in requests: a zone with four servers takes 20 packets. */
const PRICES: Readonly<Record<string, number>> = { all: RESOLVER_NAMES.length, zone: 20 };

/** A parameter with two words, the default first. The option chooses the other word, and the help says what that does. */
const switchParameter = <const Words extends readonly [string, string]>(
  words: Words,
  flags: string,
  help: string,
  label?: string,
) =>
  choiceParameter(words, {
    default: words[0],
    description: `With \`${words[1]}\`: ${help}.`,
    example: words[0],
    option: { flags, help },
    ...(label && { label }),
  });

const typeSchema = once(() =>
  z
    .string()
    .transform((text) => tryParseRecordType(text) ?? "")
    .pipe(z.union([z.enum(RECORD_TYPES), z.templateLiteral(["TYPE", z.int().min(1)])]))
    .default("AAAA"),
);

/** `GET /dns/{hostname}`: the records of a name, from one resolver. */
export const dns = endpoint({
  runsElsewhere: true,
  path: "/dns/{hostname}",
  operationId: "queryDns",
  summary: "DNS records of a name",
  description:
    "First the CNAME chain in order, then the records of the requested type. The list is empty if the name exists without such records.",
  needsKey: false,
  parameters: {
    hostname: {
      in: "path",
      schema: textSchema,
      whenEmpty: "",
      description:
        "The name; if it is not ASCII, it is converted by UTS 46. A name that is not a host name is written as answers show it, such as `we\\.ird.example.`. With type PTR, an IPv4 or IPv6 address means its reverse name.",
      example: "www.example.com",
      label: "Name",
      hint: "For PTR, an address of either family",
    },
    type: {
      in: "query",
      schema: typeSchema,
      bounds: { allowed: RECORD_TYPES },
      expected: `one of ${RECORD_TYPES.join(", ")}, or TYPE and the number of another type`,
      default: "AAAA",
      description: "The type of the records, in upper or lower case.",
      example: "AAAA",
      label: "Record type",
    },
    resolver: choiceParameter([...RESOLVER_NAMES, "all", "zone"], {
      default: "resolver_a",
      description:
        "The resolver to query. With `all`, `details` compares all three, and the rest is the answer of the first that has records, or else of the first that answers. With `zone`, each name server of the zone itself is asked, and the rest is the answer of most.",
      example: "resolver_a",
      price: (resolver) => PRICES[resolver] ?? 1,
    }),
    dnssec: switchParameter(
      ["no", "yes"],
      "--dnssec",
      "show signatures and validate them from the trust anchor down",
      "Validate DNSSEC",
    ),
    class: switchParameter(["IN", "CH"], "--chaos", "ask for what servers say of themselves"),
    nsid: switchParameter(["no", "yes"], "--nsid", "ask for the name of the server that answers"),
    transport: switchParameter(["any", "tcp"], "--tcp", "do not try UDP first"),
    recursion: switchParameter(["yes", "no"], "--norecurse", "ask only what the resolver knows"),
  },
  events: () => ({ reply: dnsReply() }),
  response: dnsResult,
  example,
  errors: [
    "INVALID_ADDRESS",
    "INVALID_HOSTNAME",
    "HOSTNAME_NOT_FOUND",
    "TOO_MANY_PROBES",
    "RESOLVER_TIMEOUT",
    "RESOLVER_FAILURE",
  ],
  async handle(parameters, call, services) {
    const { hostname, type, resolver } = parameters;
    const { querySlots } = services;
    const stamp = newStamp();
    const { signal, client } = call;
    const parsed = parseHostname(hostname, type);
    if (!parsed.ok) {
      throw parsed.code === "INVALID_ADDRESS"
        ? new ApiError("INVALID_ADDRESS", { address: hostname })
        : new ApiError("INVALID_HOSTNAME", { hostname, reason: hostname ? parsed.reason : EMPTY });
    }
    const dnssec = parameters.dnssec === "yes";
    const options = {
      ...{ signal, client, dnssec, class: parameters.class, nsid: parameters.nsid === "yes" },
      ...{ overTcp: parameters.transport === "tcp", isIterative: parameters.recursion === "no" },
    };
    const question = { name: parsed.name, type, options };
    const ask = async (name: ResolverName) => {
      const reply = await askResolver(name, question, services);
      call.onEvent?.("reply", reply);
      return reply;
    };
    // At the command line, only the first resolver is always there.
    const isThere = (name: ResolverName, at: number) =>
      at === 0 || services.config.resolvers[name].length > 0;
    const askResolvers = async (names: readonly ResolverName[]) => {
      const replies = await Promise.all(names.map(ask));
      const comparison = replies.length > 1 ? compareReplies(replies) : {};
      const reply = firstAnswer(replies);
      const isFailure = !isAnswer(reply) && reply.attempts.length > 0;
      const others = { resolvers: replies.slice(1), unanswered: [...names] };
      return { reply, found: comparison, text: isFailure ? unansweredText(others) : undefined };
    };
    const isZone = resolver === "zone";
    if (isZone && (dnssec || parameters.class === "CH")) {
      const details = { parameter: "resolver", value: resolver };
      throw new ApiError("INVALID_PARAMETER", details, NOT_OF_ZONE);
    }
    const atOnce = querySlots.tryTake(client);
    const longestMs = MAX_WAIT_MS + (isZone ? LONGEST_ZONE_MS : LONGEST_ANSWER_MS);
    if (atOnce === null || dnssec || isZone) call.allowSeconds(longestMs / 1000);
    const release = atOnce ?? (await takeSlot(querySlots, call, "DNS queries"));
    const asked = isZone
      ? askZone(question, hostname, services)
      : askResolvers(resolver === "all" ? RESOLVER_NAMES.filter(isThere) : [resolver]);
    const { reply: first, found: more, text } = await asked.finally(release);
    requireAnswer(first, hostname, more, text);
    const { records, queryTime } = first;
    const found = { ...detailsOf(first), ...more };
    const verdict = dnsVerdict(first.resolver, records, found, text);
    const details = { ...stamp, verdict, ...found };
    return { hostname, records, resolver: first.resolver, queryTime, details };
  },
});
