import { type Clock, systemClock } from "../util/clock.ts";
import { openHttps } from "./https.ts";
import type { DnsServer } from "./server.ts";
import { openTcp } from "./stream.ts";
import { TlsConnections } from "./tls.ts";
import { UdpSockets } from "./udp.ts";

/** How a message travels. */
export const TRANSPORTS = ["udp", "tcp", "tls", "https"] as const;

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
  open(transport: Transport, server: DnsServer, events: SocketEvents): Promise<DnsSocket>;
}

/**
 * The machine's sockets for one client, which keeps some of them for later queries.
 *
 * @param ca a certificate to trust instead of the usual ones, in PEM; for tests
 */
export function systemSockets(clock: Clock = systemClock, ca?: string): Sockets {
  const udp = new UdpSockets(clock);
  const tls = new TlsConnections(clock, ca);
  return {
    async open(transport, server, events) {
      switch (transport) {
        case "udp":
          return udp.open(server, events);
        case "tcp":
          return openTcp(server, events);
        case "tls":
          return tls.open(server, events);
        case "https":
          return openHttps(server, events, ca);
      }
    },
  };
}
