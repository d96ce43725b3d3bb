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
  /** Ends the wait for its response on the connection that it was sent over last. */
  withdraw?: () => void;
}

interface TlsConnection {
  /** True if it left a query unanswered: it may be dead, so it takes no new query until it answers one. */
  isSuspect: boolean;
  send(query: Query): void;
}

/**
 * Opens connections for DNS over TLS, one to each server at a time (RFC 7858). Queries share it, and their
 * responses come in any order (RFC 7766 section 6.2.1.1).
 *
 * @param ca a certificate to trust instead of the usual ones, in PEM
 */
export function createTlsOpener(clock: Clock, ca?: string): Open {
  const connectionsTo = new Map<DnsServer, Set<TlsConnection>>();

  const send = (server: DnsServer, query: Query) => {
    const open = connectionsTo.getOrInsertComputed(server, () => new Set());
    const usable = [...open].find(({ isSuspect }) => !isSuspect);
    (usable ?? connect(server, open)).send(query);
  };

  /** @param open the connections to the server */
  const connect = (server: DnsServer, open: Set<TlsConnection>): TlsConnection => {
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
    let cancelIdle = () => {};

    const receive = (message: Uint8Array) => {
      const id = idOf(message);
      const query = pending.get(id);
      if (query === undefined) return;
      pending.delete(id);
      connection.isSuspect = false;
      hasAnswered = true;
      if (pending.size === 0) cancelIdle = clock.after(IDLE_MS, () => end("EOF"));
      query.events.message(withId(message, idOf(query.message)));
    };
    const end = (code: string) => {
      open.delete(connection);
      cancelIdle();
      socket.destroy();
      const unanswered = [...pending.values()];
      pending.clear();
      for (const query of unanswered) {
        // A server may close a connection at any time; only a new one shows that it does not answer.
        if (hasAnswered) send(server, query);
        else query.events.failed(code);
      }
    };
    onMessages(socket, { message: receive, failed: end });
    socket.on("close", () => end("EOF"));
    const connection: TlsConnection = {
      isSuspect: false,
      send(query) {
        cancelIdle();
        do lastId = (lastId + 1) & 0xffff;
        while (pending.has(lastId));
        const id = lastId;
        pending.set(id, query);
        query.withdraw = () => {
          if (!pending.delete(id)) return;
          if (open.size < MAX_CONNECTIONS) connection.isSuspect = true;
          if (pending.size === 0) end("EOF");
        };
        socket.write(frameMessage(withId(query.message, id)));
      },
    };
    open.add(connection);
    return connection;
  };

  return (server, message, events) => {
    const query: Query = { message, events };
    send(server, query);
    return { close: () => query.withdraw?.() };
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
