import type { DnsServer } from "../server.ts";

/** How a message travels. */
export type Transport = "udp" | "tcp" | "tls" | "https";

/** The events of a socket, until it is closed. */
export interface SocketEvents {
  /** A whole message has arrived, or on UDP any datagram. */
  message(bytes: Uint8Array): void;
  /** The socket failed. @param code an errno name, `no-connection`, or `EOF` if the peer ended the connection */
  failed(code: string): void;
}

/** A socket that carries one query to one server. */
export interface DnsSocket {
  /** Call it once. */
  close(): void;
}

/** Opens a socket for a query of one transport. */
export type Open = (
  server: DnsServer,
  message: Uint8Array,
  events: SocketEvents,
) => DnsSocket | Promise<DnsSocket>;

/** Opens sockets; a test can pass its own. */
export interface Sockets {
  /** Sends the message as soon as the socket is connected. Throws an Error with an errno name as its `code`. */
  open(transport: Transport, ...query: Parameters<Open>): Promise<DnsSocket>;
}
