import { reverseName } from "../addr/format.ts";
import type { IpAddress } from "../addr/ip.ts";
import { type Ipv6Address, tryParseIpv6 } from "../addr/ipv6.ts";
import { formatSocketAddress, type SocketAddress } from "../addr/socket-address.ts";
import { systemClock } from "../util/clock.ts";
import { askServer, type ExchangeContext, type ServerResult, systemSockets } from "./exchange.ts";
import { type ExtendedError, FLAG, type Question } from "./message.ts";
import { canonicalName, withoutFinalDot } from "./name.ts";
import type { DnsRecord, RecordType } from "./record.ts";
import { interpret } from "./response.ts";
import { Semaphore } from "./semaphore.ts";

/** Servers of one client; a system's resolver configuration has three. */
export const MAX_SERVERS = 16;

/** Milliseconds from a question to its outcome, whatever the servers do. */
export const QUERY_TIMEOUT_MS = 5000;

/** The same for the name of a hop, which is less important. */
export const HOP_NAME_TIMEOUT_MS = 2000;

/** Questions of one client under way; each has at most three sockets, one for each attempt. */
const MAX_QUESTIONS = 256;

/** When attempts begin while no answer has come, in milliseconds after the question. */
const ATTEMPT_STARTS_MS: readonly number[] = [0, 1000, 2500];

/**
 * Characters in the values of one answer: every byte of the largest message as `\DDD`. Only compressed
 * names exceed it: two bytes can stand for a thousand characters.
 */
const MAX_ANSWER_CHARACTERS = 4 * 65_536;

/** The server that decided the outcome, and what it said. */
interface FromServer {
  /** The server's address and port: `[2001:db8::1]:53`. */
  readonly server: string;
  readonly transport: "udp" | "tcp";
  /** The response code's name; `MALFORMED`, `UNREACHABLE`, `REFERRAL` or `TOO_LARGE` if no code explains the outcome. */
  readonly rcode: string;
  /** Whether the server claims to have authenticated the answer by DNSSEC: the AD bit, RFC 4035 section 3.2.3. */
  readonly authenticated: boolean;
  /** Why the server answered as it did, in its own words; RFC 8914. */
  readonly extendedErrors: readonly ExtendedError[];
}

/** The result of a question at one server or at all of them; see DnsOutcome. */
export type Resolution =
  | (FromServer & {
      readonly kind: "answer" | "no-data" | "name-error";
      readonly records: readonly DnsRecord[];
    })
  | (FromServer & { readonly kind: "failure" | "malformed" })
  | (FromServer & { readonly kind: "unreachable"; readonly reason: string })
  | { readonly kind: "timeout" | "aborted" };

/**
 * The outcome of a question:
 * - `answer`: the CNAME chain in order, then the requested records;
 * - `no-data`: the name (with a chain: its end) exists without such records; `records` is the chain;
 * - `name-error`: the name (with a chain: its end) does not exist; `records` is the chain;
 * - `failure`: every server failed or refused; `rcode` is the first server's. `REFERRAL` means that it
 *   named other servers, `TOO_LARGE` that the values of its answer have more than 262,144 characters;
 * - `malformed`: a server's response broke the protocol, and no other server answered;
 * - `unreachable`: no server could be reached; `reason` is the first's errno name;
 * - `timeout`: no server answered in time;
 * - `aborted`: the caller's signal ended it.
 */
export type DnsOutcome = Resolution & {
  /** Milliseconds from the question to the outcome, rounded. */
  readonly queryTimeMs: number;
};

/** The servers of a client; the other options are for tests. */
export interface DnsClientOptions extends Partial<ExchangeContext> {
  /** One to 16, the preferred first. */
  readonly servers: readonly SocketAddress[];
  /** Questions under way at the same time. */
  readonly maxQuestions?: number;
}

/** How to ask one question. */
export interface QueryOptions {
  /** Milliseconds until the outcome is `timeout`. */
  readonly timeoutMs?: number;
  /** Ends the question with the outcome `aborted`. */
  readonly signal?: AbortSignal;
}

/** A stub resolver without a cache. */
export interface DnsClient {
  /**
   * Asks for the records of a name in presentation form, with or without the final dot; `parseHostname`
   * makes one from a user's text. Throws DnsFormatError for a name that breaks the rules of the DNS;
   * any other problem is an outcome.
   */
  query(name: string, type: RecordType, options?: QueryOptions): Promise<DnsOutcome>;
}

/** A client of the servers of one resolver. Throws RangeError for no server or more than 16. */
export function createDnsClient({
  servers,
  sockets = systemSockets,
  clock = systemClock,
  maxQuestions = MAX_QUESTIONS,
}: DnsClientOptions): DnsClient {
  if (servers.length === 0 || servers.length > MAX_SERVERS) {
    throw new RangeError(`a resolver has 1 to ${MAX_SERVERS} servers, not ${servers.length}`);
  }
  const context = { sockets, clock };
  const serversInTurn = alternateFamilies(servers);
  // A question holds one permit for all its attempts. An attempt never waits for a permit, so questions
  // cannot wait for each other, and a silent server cannot keep the attempts at the next one waiting.
  const permits = new Semaphore(maxQuestions);

  return {
    async query(name, type, { timeoutMs = QUERY_TIMEOUT_MS, signal } = {}) {
      const startMs = clock.nowMs();
      const question = { name: canonicalName(name), type };
      const timeout = new AbortController();
      const cancel = clock.after(timeoutMs, () => timeout.abort());
      const stop = signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal;
      try {
        const resolutions = (await permits.acquire(stop))
          ? await askServers(context, serversInTurn, question, startMs, stop).finally(() =>
              permits.release(),
            )
          : [];
        const resolution = signal?.aborted
          ? ({ kind: "aborted" } as const)
          : conclude(resolutions, stop.aborted);
        return { ...resolution, queryTimeMs: Math.round(clock.nowMs() - startMs) };
      } finally {
        cancel();
      }
    },
  };
}

/**
 * Asks the servers in turn until one decides, every one has failed, or the signal aborts; returns what
 * each said, in order. An attempt begins at each of ATTEMPT_STARTS_MS, and at once if an attempt
 * fails and a server has not been asked yet. A server that failed is not asked again. Earlier attempts
 * go on, so that a late answer is not lost; every attempt has ended when this returns.
 */
async function askServers(
  context: ExchangeContext,
  servers: readonly SocketAddress[],
  question: Question,
  startMs: number,
  signal: AbortSignal,
): Promise<readonly Resolution[]> {
  const { promise: ended, resolve: end, reject } = Promise.withResolvers<void>();
  const stop = new AbortController();
  const resolutions: Resolution[] = [];
  const attempts: Promise<void>[] = [];
  let running = 0;
  /** First the servers that were not asked yet, then those that have not answered yet. */
  const queue = [...servers];

  const begin = () => {
    const server = queue.shift();
    if (server === undefined) return;
    queue.push(server);
    running += 1;
    attempts.push(attempt(server).catch(reject));
  };

  const attempt = async (server: SocketAddress) => {
    const result = await askServer(context, server, question, stop.signal);
    running -= 1;
    if (result === null) return;
    const resolution = resolutionOf(server, question, result);
    resolutions.push(resolution);
    if (isDecisive(resolution)) return end();
    const index = queue.indexOf(server);
    if (index >= 0) queue.splice(index, 1);
    if (attempts.length < servers.length) begin();
    else if (running === 0) end();
  };

  // A question that waited for its permit does not also wait for a silent first server.
  const waitedMs = context.clock.nowMs() - startMs;
  const timers = ATTEMPT_STARTS_MS.slice(1).map((afterMs) =>
    context.clock.after(Math.max(0, afterMs - waitedMs), begin),
  );
  const abort = () => end();
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  else begin();
  try {
    await ended;
    return resolutions;
  } finally {
    signal.removeEventListener("abort", abort);
    for (const cancel of timers) cancel();
    stop.abort();
    await Promise.all(attempts);
  }
}

/** Interprets the result of one server. */
function resolutionOf(server: SocketAddress, question: Question, result: ServerResult): Resolution {
  const from = {
    server: formatSocketAddress(server),
    transport: result.transport,
    authenticated: false,
    extendedErrors: [],
  };
  const malformed = { ...from, kind: "malformed", rcode: "MALFORMED" } as const;
  if (result.kind === "malformed") return malformed;
  if (result.kind === "referral") return { ...from, kind: "failure", rcode: "REFERRAL" };
  if (result.kind === "unreachable") {
    return { ...from, kind: "unreachable", rcode: "UNREACHABLE", reason: result.code };
  }
  const { flags, rcode, extendedErrors } = result.message;
  const authenticated = (flags & FLAG.authenticated) !== 0;
  const said = { ...from, rcode, authenticated, extendedErrors: extendedErrors ?? [] };
  const { kind, records } = interpret(result.message, question);
  if (kind === "malformed") return malformed;
  if (kind === "failure") return { ...said, kind };
  const shown = records.map(({ type, value, ttl }) => ({ type, value, ttl }));
  const characters = shown.reduce((sum, { value }) => sum + value.length, 0);
  return characters > MAX_ANSWER_CHARACTERS
    ? { ...said, kind: "failure", rcode: "TOO_LARGE" }
    : { ...said, kind, records: shown };
}

/** Whether the server answered the question, so that no other server needs to be asked. */
function isDecisive({ kind }: Resolution): boolean {
  return kind === "answer" || kind === "no-data" || kind === "name-error";
}

/** The answer if one has come, else the best reason for having none. */
function conclude(resolutions: readonly Resolution[], isTimeout: boolean): Resolution {
  const first = (kind: "failure" | "malformed") => resolutions.find((one) => one.kind === kind);
  const said = resolutions.find(isDecisive) ?? first("failure") ?? first("malformed");
  if (said !== undefined) return said;
  return (isTimeout ? undefined : resolutions[0]) ?? { kind: "timeout" };
}

/**
 * The servers in order, alternating between the address families while servers of both remain: if one
 * family is dead, the second attempt already uses the other.
 */
function alternateFamilies(servers: readonly SocketAddress[]): readonly SocketAddress[] {
  const first = servers.filter(({ address }) => address.version === servers[0]?.address.version);
  const second = servers.filter((server) => !first.includes(server));
  return servers
    .flatMap((_, turn) => [first[turn], second[turn]])
    .filter((server) => server !== undefined);
}

/** The IPv6 addresses of a name in the order of the answer, empty if it has none, with the outcome. */
export async function lookupAddresses(
  client: DnsClient,
  name: string,
  options?: QueryOptions,
): Promise<{ outcome: DnsOutcome; addresses: readonly Ipv6Address[] }> {
  const outcome = await client.query(name, "AAAA", options);
  const records = outcome.kind === "answer" ? outcome.records : [];
  const addresses = records.flatMap(({ type, value }) =>
    type === "AAAA" ? (tryParseIpv6(value) ?? []) : [],
  );
  return { outcome, addresses };
}

/**
 * The name of an address by its first PTR record, without the final dot. Null if it has none, or no
 * answer comes in time: by default 2 s.
 */
export async function lookupHostname(
  client: DnsClient,
  ip: IpAddress,
  options: QueryOptions = {},
): Promise<string | null> {
  const outcome = await client.query(reverseName(ip), "PTR", {
    timeoutMs: HOP_NAME_TIMEOUT_MS,
    ...options,
  });
  const records = outcome.kind === "answer" ? outcome.records : [];
  const pointer = records.find(({ type }) => type === "PTR");
  return pointer === undefined ? null : withoutFinalDot(pointer.value);
}
