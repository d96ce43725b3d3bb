import type { TLSSocket } from "node:tls";
import type { Clock } from "../util/clock.ts";
import { errorCode } from "../util/errors.ts";
import { type DnsServer, hostnameOf } from "./server.ts";
import type { DnsSocket, SocketEvents } from "./sockets.ts";
import { frameMessage, MessageStream } from "./stream.ts";

/** Milliseconds that a connection without queries stays open. */
const IDLE_MS = 10_000;

/** A query on its way. */
interface Query {
  readonly message: Uint8Array;
  readonly events: SocketEvents;
  /** Where it waits for its response; null when it does not. */
  connection: Connection | null;
}

/** The connections of one client for DNS over TLS, one to each server at a time; RFC 7858. */
export class TlsConnections {
  readonly #clock: Clock;
  readonly #ca: string | undefined;
  readonly #current = new Map<DnsServer, Connection>();

  /** @param ca a certificate to trust instead of the usual ones, in PEM */
  constructor(clock: Clock, ca?: string) {
    this.#clock = clock;
    this.#ca = ca;
  }

  /** Queries share the connection, and their responses come in any order; RFC 7766 section 6.2.1.1. */
  open(server: DnsServer, events: SocketEvents): DnsSocket {
    let query: Query | null = null;
    return {
      send: (message) => {
        query = { message, events, connection: null };
        this.#send(server, query);
      },
      close: () => query?.connection?.withdraw(query),
    };
  }

  #send(server: DnsServer, query: Query): void {
    const connection = this.#current.get(server) ?? this.#connect(server);
    connection.send(query);
  }

  #connect(server: DnsServer): Connection {
    const { port, name } = server;
    // Loaded at the first use, because few services need it.
    const { connect } = process.getBuiltinModule("node:tls");
    const socket = connect({
      host: hostnameOf(server),
      port,
      ...(name !== undefined && { servername: name }),
      ...(this.#ca !== undefined && { ca: this.#ca }),
    });
    const connection = new Connection(socket, this.#clock, {
      retired: () => {
        if (this.#current.get(server) === connection) this.#current.delete(server);
      },
      resend: (query) => this.#send(server, query),
    });
    this.#current.set(server, connection);
    return connection;
  }
}

interface ConnectionEvents {
  /** It takes no further query. */
  retired(): void;
  /** A query needs another connection. */
  resend(query: Query): void;
}

class Connection {
  readonly #socket: TLSSocket;
  readonly #clock: Clock;
  readonly #events: ConnectionEvents;
  /** The queries without a response, by their ID on this connection. */
  readonly #pending = new Map<number, Query>();
  #lastId = 0;
  #hasAnswered = false;
  #cancelIdle = () => {};

  constructor(socket: TLSSocket, clock: Clock, events: ConnectionEvents) {
    this.#socket = socket;
    this.#clock = clock;
    this.#events = events;
    const stream = new MessageStream();
    socket.on("data", (bytes: Uint8Array) => {
      for (const message of stream.add(bytes)) this.#receive(message);
    });
    socket.on("error", (error) => this.#end(errorCode(error) ?? "UNKNOWN"));
    socket.on("end", () => this.#end("EOF"));
    socket.on("close", () => this.#end("EOF"));
  }

  send(query: Query): void {
    this.#cancelIdle();
    do this.#lastId = (this.#lastId + 1) & 0xffff;
    while (this.#pending.has(this.#lastId));
    this.#pending.set(this.#lastId, query);
    query.connection = this;
    this.#socket.write(frameMessage(withId(query.message, this.#lastId)));
  }

  /** No longer waits for the response to a query. A connection that left one unanswered may be dead, so it takes no other. */
  withdraw(query: Query): void {
    this.#events.retired();
    for (const [id, other] of this.#pending) if (other === query) this.#pending.delete(id);
    query.connection = null;
    if (this.#pending.size === 0) this.#end("EOF");
  }

  #receive(message: Uint8Array): void {
    const id = idOf(message);
    const query = this.#pending.get(id);
    if (query === undefined) return;
    this.#pending.delete(id);
    this.#hasAnswered = true;
    query.connection = null;
    if (this.#pending.size === 0) {
      this.#cancelIdle = this.#clock.after(IDLE_MS, () => this.#end("EOF"));
    }
    query.events.message(withId(message, idOf(query.message)));
  }

  #end(code: string): void {
    this.#cancelIdle();
    this.#events.retired();
    this.#socket.destroy();
    const unanswered = [...this.#pending.values()];
    this.#pending.clear();
    for (const query of unanswered) {
      query.connection = null;
      // A server may close a connection at any time; only a new one shows that it does not answer.
      if (this.#hasAnswered) this.#events.resend(query);
      else query.events.failed(code);
    }
  }
}

/** The ID of a message; 0 for one that is too short. */
function idOf(message: Uint8Array): number {
  return ((message[0] ?? 0) << 8) | (message[1] ?? 0);
}

/** A copy of the message with another ID. */
function withId(message: Uint8Array, id: number): Uint8Array {
  const copy = Uint8Array.from(message);
  copy[0] = id >>> 8;
  copy[1] = id & 0xff;
  return copy;
}
