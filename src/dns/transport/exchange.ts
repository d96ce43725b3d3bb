import { addAbortListener } from "node:events";
import type { Clock } from "../../util/clock.ts";
import { errorCode } from "../../util/errors.ts";
import { createQuery, type Query, type Question } from "../message/message.ts";
import {
  ASK_TCP,
  type DnsResponse,
  matchDatagram,
  matchStreamed,
  refusesEdns,
} from "../message/response.ts";
import type { DnsServer } from "../server.ts";
import type { Sockets, Transport } from "./transport.ts";

/** The parts of the machine that an exchange uses. */
export interface ExchangeContext {
  readonly sockets: Sockets;
  readonly clock: Clock;
}

/** The server could not be reached, or ended the connection. */
export interface Unreachable {
  readonly kind: "unreachable";
  /** An errno name; `EOF` if the server ended a connection without an answer. */
  readonly code: string;
}

/** The result of asking one server. */
export type ServerResult = (DnsResponse | Unreachable) & {
  readonly transport: Transport;
  /** True if the query that counts had no EDNS. */
  readonly isPlain?: true;
};

/** Milliseconds for TCP to confirm a datagram that repeats the question in another case. */
const CONFIRM_TIMEOUT_MS = 1000;

/** Datagrams that do not belong to the query, after which TCP is asked: a flood can push out the answer. */
const MAX_JUNK = 8;

/** A server that is being asked. */
export type Exchange = ReturnType<typeof startExchange>;

/**
 * Asks one server: over its protocol, or over UDP, then over TCP if the first datagram needs that; and once
 * more without EDNS if the server does not support it.
 *
 * @param withEdns false to ask without EDNS at once
 * @param signal ends the exchange; its result has no meaning then
 */
export function startExchange(
  { sockets, clock }: ExchangeContext,
  server: DnsServer,
  question: Question,
  withEdns: boolean,
  signal: AbortSignal,
) {
  const firstTransport = server.protocol ?? (question.overTcp ? "tcp" : "udp");
  let transport: Transport = firstTransport;

  async function run(isPlain: boolean): Promise<ServerResult> {
    const result = await ask(createQuery(question, !isPlain));
    if (isPlain) return { ...result, isPlain };
    const isRefused = result.kind === "message" && refusesEdns(result.message);
    return isRefused ? run(true) : result;
  }

  async function ask(query: Query): Promise<ServerResult> {
    transport = firstTransport;
    if (transport !== "udp") return { ...(await askStreamed(query)), transport };
    let junk = 0;
    const match = await receive(query, (bytes) => {
      const response = matchDatagram(bytes, query);
      if (response === null) junk += 1;
      return junk === MAX_JUNK ? ASK_TCP : response;
    });
    if (match.kind !== "ask-tcp") return { ...match, transport };
    transport = "tcp";
    const { fallback } = match;
    const result = await askStreamed(query, fallback ? CONFIRM_TIMEOUT_MS : undefined);
    if (fallback === null || result.kind === "message") return { ...result, transport };
    return { ...fallback, transport: "udp" };
  }

  const askStreamed = (query: Query, timeoutMs?: number) =>
    receive(query, (bytes) => matchStreamed(bytes, query), timeoutMs);

  /** Sends the query over the transport. Returns the first result of `read` that is not null. */
  async function receive<T>(
    query: Query,
    read: (bytes: Uint8Array) => T | null,
    timeoutMs?: number,
  ): Promise<T | Unreachable> {
    const { promise, resolve, reject } = Promise.withResolvers<T | Unreachable>();
    const failed = (code: string) => resolve({ kind: "unreachable", code });
    const message = (bytes: Uint8Array) => {
      try {
        const result = read(bytes);
        if (result !== null) resolve(result);
      } catch (error) {
        reject(error);
      }
    };
    const events = { message, failed };
    const opening = sockets.open(transport, server, query.bytes, events).catch((error): null => {
      const code = errorCode(error);
      if (code === undefined) reject(error);
      else failed(code);
      return null;
    });
    using held = new DisposableStack();
    held.defer(() => opening.then((socket) => socket?.close()));
    held.use(addAbortListener(signal, () => failed("ABORTED")));
    if (timeoutMs) held.defer(clock.after(timeoutMs, () => failed("ETIMEDOUT")));
    return await promise;
  }

  return {
    /** Rejects for an error that is not about the network. */
    result: run(!withEdns),
    /** The transport that was asked last. */
    get transport(): Transport {
      return transport;
    },
  };
}
