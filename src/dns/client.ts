import { reverseName } from "../addr/format.ts";
import type { IpAddress } from "../addr/ip.ts";
import { tryParseIpv6 } from "../addr/ipv6.ts";
import { FairSlots } from "../gate/fair-slots.ts";
import { systemClock } from "../util/clock.ts";
import { inquire, type Terms } from "./inquiry.ts";
import { createQuestion, type QuestionFlags } from "./message/message.ts";
import { withoutFinalDot } from "./message/name.ts";
import type { RecordType } from "./message/record.ts";
import { type DnsOutcome, valuesIn } from "./outcome.ts";
import { type DnsServer, formatDnsServer } from "./server.ts";
import type { ExchangeContext } from "./transport/exchange.ts";
import { systemSockets } from "./transport/sockets.ts";

/** Servers of one client; a system's resolver configuration has three. */
export const MAX_SERVERS = 16;

/** Milliseconds for the name of a hop, which is less important than other questions. */
export const HOP_NAME_TIMEOUT_MS = 2000;

/** Questions of one client under way. */
export const MAX_QUESTIONS = 256;

/** The servers of a client; the other options are for tests. */
export interface DnsClientOptions extends Partial<ExchangeContext> {
  /** At most 16, the preferred one first. Empty if this machine has no resolver, which each outcome then says. */
  readonly servers: readonly DnsServer[];
  /** Questions under way at the same time. */
  readonly maxQuestions?: number;
}

/** How to ask one question. */
export interface QueryOptions extends QuestionFlags, Terms {}

/** A stub resolver without a cache. */
export type DnsClient = ReturnType<typeof createDnsClient>;

/** A client of the servers of one resolver. Throws RangeError for more than 16 servers. */
export function createDnsClient({
  servers,
  clock = systemClock,
  sockets = systemSockets(clock),
  maxQuestions = MAX_QUESTIONS,
}: DnsClientOptions) {
  if (servers.length > MAX_SERVERS) {
    throw new RangeError(`a resolver has at most ${MAX_SERVERS} servers, not ${servers.length}`);
  }
  const remembered = servers.map((address) => ({
    address,
    text: formatDnsServer(address),
    answeredMs: Number.NEGATIVE_INFINITY,
    failedMs: Number.NEGATIVE_INFINITY,
  }));
  const slots = new FairSlots(maxQuestions);
  return {
    /**
     * Asks for the records of a name in presentation form, with or without the final dot; `parseHostname`
     * makes one from a user's text. Throws DnsFormatError for a name that breaks the rules of the DNS;
     * any other problem is an outcome.
     */
    async query(name: string, type: RecordType, options: QueryOptions = {}): Promise<DnsOutcome> {
      const { timeoutMs, signal, client, ...flags } = options;
      const question = createQuestion(name, type, flags);
      return inquire({ sockets, clock }, remembered, slots, question, options);
    },
  };
}

/** The IPv6 addresses of a name in the order of the answer, empty if it has none, with the outcome. */
export async function lookupAddresses(client: DnsClient, name: string, options?: QueryOptions) {
  const outcome = await client.query(name, "AAAA", options);
  const addresses = valuesIn(outcome, "AAAA").flatMap((value) => tryParseIpv6(value) ?? []);
  return { outcome, addresses };
}

/**
 * The name of an address by its first PTR record, without the final dot. Null if it has none, or no
 * answer comes in time: by default 2 s.
 */
export async function lookupHostname(client: DnsClient, ip: IpAddress, options: QueryOptions = {}) {
  const terms = { timeoutMs: HOP_NAME_TIMEOUT_MS, ...options };
  const outcome = await client.query(reverseName(ip), "PTR", terms);
  const [hostname] = valuesIn(outcome, "PTR");
  return hostname === undefined ? null : withoutFinalDot(hostname);
}
