import type { SocketAddress } from "../addr/socket-address.ts";
import { Coalescer } from "../util/coalesce.ts";
import { type Asked, type AttemptContext, attempt } from "./attempt.ts";
import { type Clock, systemClock } from "./clock.ts";
import {
  ATTEMPT_STARTS_MS,
  MAX_OPEN_SOCKETS,
  MAX_SERVERS,
  QUERY_TIMEOUT_MS,
  SHARED_MS,
} from "./limits.ts";
import { canonicalName } from "./name.ts";
import {
  conclude,
  type DnsOutcome,
  isDecisive,
  type Resolution,
  resolutionOf,
  shownOutcome,
} from "./outcome.ts";
import type { RandomSource } from "./query.ts";
import type { RecordType, ResourceRecord } from "./record.ts";
import { alternateFamilies, runSchedule } from "./schedule.ts";
import { SocketPlaces } from "./semaphore.ts";
import { type Sockets, systemSockets } from "./socket.ts";

/** What a client is made of; all but the servers is for tests. */
export interface DnsClientOptions {
  /** One to 16, the preferred first. */
  readonly servers: readonly SocketAddress[];
  readonly sockets?: Sockets;
  readonly clock?: Clock;
  readonly fillRandom?: RandomSource;
  /** Sockets open at the same time. */
  readonly maxOpenSockets?: number;
}

/** How one question is asked. */
export interface QueryOptions {
  /** Milliseconds until the outcome is `timeout`. */
  readonly timeoutMs?: number;
  /** Ends the question for this caller, with the outcome `aborted`. */
  readonly signal?: AbortSignal;
}

/** A stub resolver: asks the servers of one resolver service, each question by itself, and keeps nothing. */
export interface DnsClient {
  /**
   * Asks for the records of a name, in presentation form with or without the final dot; `parseHostname`
   * makes one from a user's text. Throws DnsFormatError for a name that breaks the rules of the DNS;
   * everything that can go wrong on the way is an outcome.
   */
  query(name: string, type: RecordType, options?: QueryOptions): Promise<DnsOutcome>;
  /** As `query`, with the records' data decoded instead of shown. */
  resolve(
    name: string,
    type: RecordType,
    options?: QueryOptions,
  ): Promise<DnsOutcome<ResourceRecord>>;
  /** Attempts under way, each of which holds one socket. */
  readonly openSockets: number;
}

/** Throws RangeError for no server or more than 16. */
export function createDnsClient({
  servers,
  sockets = systemSockets,
  clock = systemClock,
  fillRandom = (bytes) => crypto.getRandomValues(bytes),
  maxOpenSockets = MAX_OPEN_SOCKETS,
}: DnsClientOptions): DnsClient {
  if (servers.length === 0 || servers.length > MAX_SERVERS) {
    throw new RangeError(`a resolver has 1 to ${MAX_SERVERS} servers, not ${servers.length}`);
  }
  const inTurn = alternateFamilies(servers);
  const places = new SocketPlaces(maxOpenSockets);
  const context: AttemptContext = { clock, sockets, places, fillRandom };
  const coalescer = new Coalescer<Resolution<ResourceRecord>>();

  /** Asks the servers, for everybody who waits for this question. */
  async function ask(asked: Asked, timeoutMs: number, signal: AbortSignal) {
    const end = await runSchedule<Resolution<ResourceRecord>>({
      servers: inTurn,
      startsMs: ATTEMPT_STARTS_MS,
      timeoutMs,
      clock,
      signal,
      attempt: async (server, isFirst, stop) => {
        const end = await attempt(context, server, asked, isFirst, stop);
        return end && resolutionOf(server, asked, end);
      },
      isDecisive,
      isCrowded: () => places.areContended,
    });
    return conclude(end);
  }

  async function resolve(
    name: string,
    type: RecordType,
    { timeoutMs = QUERY_TIMEOUT_MS, signal }: QueryOptions = {},
  ): Promise<DnsOutcome<ResourceRecord>> {
    const startMs = clock.nowMs();
    const asked: Asked = { name: canonicalName(name), type };
    // What is shared ends for all at once: so only who asks at nearly the same time, for as long,
    // shares it. The case of the name is part of it, for it shows in an answer that repeats it.
    const moment = Math.floor(startMs / SHARED_MS);
    const key = `${moment} ${timeoutMs} ${type} ${asked.name}`;
    const shared = await coalescer.join(key, signal, (stop) => ask(asked, timeoutMs, stop));
    const resolution = shared ?? ({ kind: "aborted" } as const);
    return { ...resolution, queryTimeMs: Math.round(clock.nowMs() - startMs) };
  }

  return {
    resolve,
    async query(name, type, options) {
      return shownOutcome(await resolve(name, type, options));
    },
    get openSockets() {
      return places.taken;
    },
  };
}
