import type { SocketAddress } from "../addr/socket-address.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { openTcp } from "./stream.ts";
import { UdpSockets } from "./udp.ts";

/** How a message travels. */
export const TRANSPORTS = ["udp", "tcp"] as const;

export type Transport = (typeof TRANSPORTS)[number];

/** What a socket reports until it is closed. */
export interface SocketEvents {
  /** A whole message has arrived, or on UDP any datagram. */
  message(bytes: Uint8Array): void;
  /** The socket failed. @param code an errno name, or `EOF` if the peer ended the connection */
  failed(code: string): void;
}

/** A socket that carries one query to one server. */
export interface DnsSocket {
  /** Sends a message, as soon as the socket is connected. */
  send(message: Uint8Array): void;
  /** Call it once. @param isClean whether the response came and nothing else, so that another query can use the socket */
  close(isClean: boolean): void;
}

/** Opens sockets; a test can pass its own. */
export interface Sockets {
  /** Throws an Error with an errno name as its `code`. */
  open(transport: Transport, server: SocketAddress, events: SocketEvents): Promise<DnsSocket>;
}

/** The machine's sockets for one client, which keeps some of them for later queries. */
export function systemSockets(clock: Clock = systemClock): Sockets {
  const udp = new UdpSockets(clock);
  return {
    open: (transport, server, events) =>
      transport === "udp" ? udp.open(server, events) : openTcp(server, events),
  };
}
