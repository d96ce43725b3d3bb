import { type Clock, systemClock } from "../../util/clock.ts";
import type { DnsServer } from "../server.ts";
import { createHttpsOpener } from "./https.ts";
import { openTcp } from "./stream.ts";
import { createTlsOpener } from "./tls.ts";
import type { Open, Sockets, Transport } from "./transport.ts";
import { createUdpOpener } from "./udp.ts";

/** Queries on their way to one server over TLS or HTTPS: as many as questions of a client. */
const MAX_OUTSTANDING = 256;

/**
 * The machine's sockets for one client, which keeps some of them for later queries.
 *
 * @param ca a certificate to trust instead of the usual ones, in PEM; for tests
 */
export function systemSockets(clock: Clock = systemClock, ca?: string): Sockets {
  const open: Readonly<Record<Transport, Open>> = {
    udp: createUdpOpener(clock),
    tcp: openTcp,
    tls: bounded(createTlsOpener(clock, ca)),
    https: bounded(createHttpsOpener(ca)),
  };
  return { open: async (transport, ...query) => open[transport](...query) };
}

/** Refuses a query to a server that has too many to answer; it counts as a shortage of this machine. */
function bounded(open: Open): Open {
  const outstanding = new Map<DnsServer, number>();
  const add = (server: DnsServer, change: number) =>
    outstanding.set(server, (outstanding.get(server) ?? 0) + change);
  return async (server, ...query) => {
    if (outstanding.get(server) === MAX_OUTSTANDING) {
      const text = `${MAX_OUTSTANDING} queries wait for the server`;
      throw Object.assign(new Error(text), { code: "ENOBUFS" });
    }
    add(server, 1);
    const socket = await open(server, ...query);
    return {
      close(isClean) {
        add(server, -1);
        socket.close(isClean);
      },
    };
  };
}
