import type { Clock } from "../util/clock.ts";
import { errorCode } from "../util/errors.ts";
import { createQuery, type Query, type Question } from "./message.ts";
import {
  type AskTcp,
  type DnsResponse,
  matchDatagram,
  matchStreamed,
  refusesEdns,
} from "./response.ts";
import type { DnsServer } from "./server.ts";
import type { DnsSocket, Sockets, Transport } from "./sockets.ts";

/** What an exchange needs of the machine. */
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

/** What an exchange reports; one of them, once, unless the exchange is stopped before. */
export interface ExchangeEvents {
  done(result: ServerResult): void;
  /** An error that is not about the network. */
  broken(error: unknown): void;
}

/** Milliseconds for TCP to confirm a datagram that repeats the question in another case. */
const CONFIRM_TIMEOUT_MS = 1000;

/** Datagrams that do not belong to the query, after which TCP is asked: a flood can push out the answer. */
const MAX_JUNK = 8;

/** Probable forgeries after which the datagrams of a socket are no longer read. */
export const MAX_FORGERIES = 8;

/**
 * Asks one server: over its protocol, or over UDP, then over TCP if the datagrams need that; and once more
 * without EDNS if the server does not support it.
 */
export class Exchange {
  readonly #context: ExchangeContext;
  readonly #server: DnsServer;
  readonly #events: ExchangeEvents;
  readonly #withEdns: boolean;
  readonly #query: Query;
  /** The transports that can still bring the response; null before the socket is open. */
  readonly #waiting = new Map<Transport, DnsSocket | null>();
  #transport: Transport;
  #junk = 0;
  #forgeries = 0;
  /** The response to use if TCP fails. */
  #fallback: ServerResult | null = null;
  /** Why the last transport that failed did so. */
  #failure: ServerResult | null = null;
  #cancelConfirmation = () => {};
  #retry: Exchange | null = null;

  constructor(
    context: ExchangeContext,
    server: DnsServer,
    question: Question,
    events: ExchangeEvents,
    withEdns = true,
  ) {
    this.#context = context;
    this.#server = server;
    this.#events = events;
    this.#withEdns = withEdns;
    this.#query = createQuery(question, withEdns);
    this.#transport = server.protocol ?? "udp";
    this.#ask(this.#transport);
  }

  /** The transport that was asked last. */
  get transport(): Transport {
    return this.#retry?.transport ?? this.#transport;
  }

  /** Ends the exchange without an event. Returns the response that waits for TCP to confirm it, if any. */
  stop(): ServerResult | null {
    this.#closeAll(false);
    return this.#retry === null ? this.#fallback : this.#retry.stop();
  }

  async #ask(transport: Transport): Promise<void> {
    this.#transport = transport;
    this.#waiting.set(transport, null);
    try {
      const socket = await this.#context.sockets.open(transport, this.#server, {
        message: (bytes) => this.#guard(() => this.#receive(transport, bytes)),
        failed: (code) => this.#guard(() => this.#fail(transport, code)),
      });
      if (!this.#waiting.has(transport)) return socket.close(false);
      this.#waiting.set(transport, socket);
      socket.send(this.#query.bytes);
    } catch (error) {
      this.#guard(() => {
        const code = errorCode(error);
        if (code === undefined) throw error;
        this.#fail(transport, code);
      });
    }
  }

  #receive(transport: Transport, bytes: Uint8Array): void {
    if (!this.#waiting.has(transport)) return;
    const match = (transport === "udp" ? matchDatagram : matchStreamed)(bytes, this.#query);
    if (match === null) {
      this.#junk += 1;
      if (this.#junk === MAX_JUNK) this.#askTcp();
    } else if (match.kind === "ask-tcp") {
      this.#turnToTcp(match);
    } else {
      this.#finish({ ...match, transport });
    }
  }

  #turnToTcp({ fallback, isForgery }: AskTcp): void {
    this.#askTcp();
    if (isForgery) this.#forgeries += 1;
    if (fallback !== null) {
      const confirmed = { ...fallback, transport: "udp" } as const;
      this.#fallback = confirmed;
      this.#cancelConfirmation = this.#context.clock.after(CONFIRM_TIMEOUT_MS, () =>
        this.#finish(confirmed),
      );
    }
    // Among a few forgeries, the right ID decides; among many, only TCP.
    if (!isForgery || this.#forgeries === MAX_FORGERIES) this.#leave("udp");
  }

  /** Asks over TCP, once. */
  #askTcp(): void {
    if (this.#transport === "udp") this.#ask("tcp");
  }

  #fail(transport: Transport, code: string): void {
    if (!this.#waiting.has(transport)) return;
    this.#failure = { kind: "unreachable", code, transport };
    this.#leave(transport);
  }

  /** Expects nothing more from a transport; ends if it was the last. */
  #leave(transport: Transport): void {
    this.#waiting.get(transport)?.close(false);
    this.#waiting.delete(transport);
    const result = this.#fallback ?? this.#failure;
    if (this.#waiting.size === 0 && result !== null) this.#finish(result);
  }

  #finish(result: ServerResult): void {
    const isClean = this.#junk === 0 && this.#forgeries === 0 && result.kind === "message";
    this.#closeAll(isClean);
    const final = result.kind === "message" ? result : (this.#fallback ?? result);
    if (this.#withEdns && final.kind === "message" && refusesEdns(final.message)) {
      const { question } = this.#query;
      this.#retry = new Exchange(this.#context, this.#server, question, this.#events, false);
    } else {
      this.#events.done(final);
    }
  }

  #closeAll(isClean: boolean): void {
    this.#cancelConfirmation();
    for (const socket of this.#waiting.values()) socket?.close(isClean);
    this.#waiting.clear();
  }

  #guard(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.#closeAll(false);
      this.#events.broken(error);
    }
  }
}
