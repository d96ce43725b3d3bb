import type { Clock } from "../../util/clock.ts";
import { errorCode } from "../../util/errors.ts";
import { createQuery, type Question } from "../message/message.ts";
import {
  type AskTcp,
  type DnsResponse,
  matchDatagram,
  matchStreamed,
  refusesEdns,
} from "../message/response.ts";
import type { DnsServer } from "../server.ts";
import type { DnsSocket, Sockets, Transport } from "./transport.ts";

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
export type ServerResult = (DnsResponse | Unreachable) & { readonly transport: Transport };

/** Milliseconds for TCP to confirm a datagram that repeats the question in another case. */
const CONFIRM_TIMEOUT_MS = 1000;

/** Datagrams that do not belong to the query, after which TCP is asked: a flood can push out the answer. */
const MAX_JUNK = 8;

/** Probable forgeries after which the datagrams of a socket are no longer read. */
export const MAX_FORGERIES = 8;

/** A server that is being asked. */
export type Exchange = ReturnType<typeof startExchange>;

/**
 * Asks one server: over its protocol, or over UDP, then over TCP if the datagrams need that; and once more
 * without EDNS if the server does not support it.
 */
export function startExchange(
  context: ExchangeContext,
  server: DnsServer,
  question: Question,
  withEdns = true,
) {
  const { promise, resolve, reject } = Promise.withResolvers<ServerResult>();
  const query = createQuery(question, withEdns);
  /** The transports that can still bring the response; null before the socket is open. */
  const waiting = new Map<Transport, DnsSocket | null>();
  let lastAsked: Transport = server.protocol ?? (question.overTcp ? "tcp" : "udp");
  let junk = 0;
  let forgeries = 0;
  /** The response to use if TCP fails. */
  let fallback: ServerResult | null = null;
  /** Why the last transport that failed did so. */
  let failure: ServerResult | null = null;
  let cancelConfirmation = () => {};
  let retry: Exchange | null = null;

  async function ask(transport: Transport): Promise<void> {
    lastAsked = transport;
    waiting.set(transport, null);
    try {
      const socket = await context.sockets.open(transport, server, query.bytes, {
        message: (bytes) => guard(() => receive(transport, bytes)),
        failed: (code) => guard(() => fail(transport, code)),
      });
      if (waiting.has(transport)) waiting.set(transport, socket);
      else socket.close();
    } catch (error) {
      if (!waiting.has(transport)) return;
      guard(() => {
        const code = errorCode(error);
        if (code === undefined) throw error;
        fail(transport, code);
      });
    }
  }

  function receive(transport: Transport, bytes: Uint8Array): void {
    if (!waiting.has(transport)) return;
    const match = (transport === "udp" ? matchDatagram : matchStreamed)(bytes, query);
    if (match === null) {
      junk += 1;
      if (junk === MAX_JUNK) askTcp();
    } else if (match.kind === "ask-tcp") {
      turnToTcp(match);
    } else {
      finish({ ...match, transport });
    }
  }

  function turnToTcp({ fallback: response, isForgery }: AskTcp): void {
    askTcp();
    if (isForgery) forgeries += 1;
    if (response !== null) {
      const confirmed = { ...response, transport: "udp" } as const;
      fallback = confirmed;
      cancelConfirmation = context.clock.after(CONFIRM_TIMEOUT_MS, () => finish(confirmed));
    }
    // Among a few forgeries, the right ID decides; among many, only TCP.
    if (!isForgery || forgeries === MAX_FORGERIES) leave("udp");
  }

  /** Asks over TCP, once. */
  function askTcp(): void {
    if (lastAsked === "udp") ask("tcp");
  }

  function fail(transport: Transport, code: string): void {
    if (!waiting.has(transport)) return;
    failure = { kind: "unreachable", code, transport };
    leave(transport);
  }

  /** Expects nothing more from a transport; ends if it was the last. */
  function leave(transport: Transport): void {
    waiting.get(transport)?.close();
    waiting.delete(transport);
    const result = fallback ?? failure;
    if (waiting.size === 0 && result !== null) finish(result);
  }

  function finish(result: ServerResult): void {
    closeAll();
    const final = result.kind === "message" ? result : (fallback ?? result);
    if (withEdns && final.kind === "message" && refusesEdns(final.message)) {
      retry = startExchange(context, server, question, false);
      resolve(retry.result);
    } else {
      resolve(final);
    }
  }

  function closeAll(): void {
    cancelConfirmation();
    for (const socket of waiting.values()) socket?.close();
    waiting.clear();
  }

  function guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      closeAll();
      reject(error);
    }
  }

  ask(lastAsked);
  return {
    /** Settles unless the exchange is stopped before; rejects for an error that is not about the network. */
    result: promise,
    /** The transport that was asked last. */
    get transport(): Transport {
      return retry?.transport ?? lastAsked;
    },
    /** The response that waits for TCP to confirm it, if any. */
    get fallback(): ServerResult | null {
      return retry === null ? fallback : retry.fallback;
    },
    /** Ends the exchange without a result. */
    stop(): void {
      closeAll();
      retry?.stop();
    },
  };
}
