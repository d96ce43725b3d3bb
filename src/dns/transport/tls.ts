import type { Clock } from "../../util/clock.ts";
import { type DnsServer, hostnameOf } from "../server.ts";
import { frameMessage, onMessages } from "./stream.ts";
import type { Open, SocketEvents } from "./transport.ts";

/** Milliseconds that a connection without queries stays open. */
const IDLE_MS = 10_000;

/** Connections to one server: the one that takes queries, and those that wait for late responses. */
const MAX_CONNECTIONS = 4;

/** A query on its way. */
interface Query {
  readonly message: Uint8Array;
  readonly events: SocketEvents;
  /** Where it waits for its response; null when it does not. */
  connection: TlsConnection | null;
}

interface TlsConnection {
  send(query: Query): void;
  /** No longer waits for the response to a query. A connection that left one unanswered may be dead, so it takes no other before it answers. */
  withdraw(query: Query): void;
}

/**
 * Opens connections for DNS over TLS, one to each server at a time (RFC 7858). Queries share it, and their
 * responses come in any order (RFC 7766 section 6.2.1.1).
 *
 * @param ca a certificate to trust instead of the usual ones, in PEM
 */
export function createTlsOpener(clock: Clock, ca?: string): Open {
  /** The connections that take further queries. */
  const current = new Map<DnsServer, TlsConnection>();
  /** How many are open. */
  const open = new Map<DnsServer, number>();
  const send = (server: DnsServer, query: Query) =>
    current.getOrInsertComputed(server, connect).send(query);

  const count = (server: DnsServer, change: number) =>
    open.set(server, (open.get(server) ?? 0) + change).get(server) as number;

  const connect = (server: DnsServer): TlsConnection => {
    count(server, 1);
    // Loaded at the first use, because few services need it.
    const { connect } = process.getBuiltinModule("node:tls");
    const socket = connect({
      host: hostnameOf(server),
      port: server.port,
      ...(server.name !== undefined && { servername: server.name }),
      ...(ca !== undefined && { ca }),
    });
    /** The queries without a response, by their ID on this connection. */
    const pending = new Map<number, Query>();
    let lastId = 0;
    let hasAnswered = false;
    let isOpen = true;
    let cancelIdle = () => {};

    const retire = () => {
      if (current.get(server) === connection) current.delete(server);
    };
    const receive = (message: Uint8Array) => {
      const id = idOf(message);
      const query = pending.get(id);
      if (query === undefined || !isOpen) return;
      pending.delete(id);
      current.getOrInsert(server, connection);
      hasAnswered = true;
      query.connection = null;
      if (pending.size === 0) cancelIdle = clock.after(IDLE_MS, () => end("EOF"));
      query.events.message(withId(message, idOf(query.message)));
    };
    const end = (code: string) => {
      if (!isOpen) return;
      isOpen = false;
      count(server, -1);
      cancelIdle();
      retire();
      socket.destroy();
      const unanswered = [...pending.values()];
      pending.clear();
      for (const query of unanswered) {
        query.connection = null;
        // A server may close a connection at any time; only a new one shows that it does not answer.
        if (hasAnswered) send(server, query);
        else query.events.failed(code);
      }
    };
    onMessages(socket, receive, end);
    socket.on("close", () => end("EOF"));
    const connection: TlsConnection = {
      send(query) {
        cancelIdle();
        do lastId = (lastId + 1) & 0xffff;
        while (pending.has(lastId));
        pending.set(lastId, query);
        query.connection = connection;
        socket.write(frameMessage(withId(query.message, lastId)));
      },
      withdraw(query) {
        if (count(server, 0) < MAX_CONNECTIONS) retire();
        for (const [id, other] of pending) if (other === query) pending.delete(id);
        query.connection = null;
        if (pending.size === 0) end("EOF");
      },
    };
    return connection;
  };

  return (server, message, events) => {
    const query: Query = { message, events, connection: null };
    send(server, query);
    return { close: () => query.connection?.withdraw(query) };
  };
}

/** The ID of a message; 0 for one that is too short. */
function idOf([high = 0, low = 0]: Uint8Array): number {
  return (high << 8) | low;
}

/** A copy of the message with another ID. */
function withId([, , ...rest]: Uint8Array, id: number): Uint8Array {
  return Uint8Array.from([id >>> 8, id & 0xff, ...rest]);
}
