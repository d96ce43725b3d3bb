import { type Clock, systemClock } from "../util/clock.ts";
import { openHttps } from "./https.ts";
import type { DnsServer } from "./server.ts";
import { openTcp } from "./stream.ts";
import { createTlsOpener } from "./tls.ts";
import type { DnsSocket, SocketEvents, Sockets, Transport } from "./transport.ts";
import { createUdpOpener } from "./udp.ts";

type Open = (server: DnsServer, events: SocketEvents) => DnsSocket | Promise<DnsSocket>;

/**
 * The machine's sockets for one client, which keeps some of them for later queries.
 *
 * @param ca a certificate to trust instead of the usual ones, in PEM; for tests
 */
export function systemSockets(clock: Clock = systemClock, ca?: string): Sockets {
  const open: Readonly<Record<Transport, Open>> = {
    udp: createUdpOpener(clock),
    tcp: openTcp,
    tls: createTlsOpener(clock, ca),
    https: (server, events) => openHttps(server, events, ca),
  };
  return { open: async (transport, server, events) => open[transport](server, events) };
}
