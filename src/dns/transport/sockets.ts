import { type Clock, systemClock } from "../../util/clock.ts";
import { createHttpsOpener } from "./https.ts";
import { openTcp } from "./stream.ts";
import { createTlsOpener } from "./tls.ts";
import type { Open, Sockets, Transport } from "./transport.ts";
import { openUdp } from "./udp.ts";

/**
 * The machine's sockets for one client; connections over TLS and HTTPS are kept for later queries.
 *
 * @param ca a certificate to trust instead of the usual ones, in PEM; for tests
 */
export function systemSockets(clock: Clock = systemClock, ca?: string): Sockets {
  const open: Readonly<Record<Transport, Open>> = {
    udp: openUdp,
    tcp: openTcp,
    tls: createTlsOpener(clock, ca),
    https: createHttpsOpener(ca),
  };
  return { open: async (transport, ...query) => open[transport](...query) };
}
