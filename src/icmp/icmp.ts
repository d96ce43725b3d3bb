/** The module for probes: it opens a `Prober` or says why there is none; the prober probes until it is closed. */
import { SystemError } from "../platform/libc.ts";
import { attempt } from "../util/errors.ts";
import { Prober } from "./prober/prober.ts";
import { DatagramSocket } from "./socket/datagram-socket.ts";
import { RawSocket } from "./socket/raw-socket.ts";
import type { NoIcmp } from "./unavailable.ts";

/**
 * Opens a prober with the raw socket, or, without privileges, with the datagram socket if the kernel allows it.
 * Returns why there is no raw socket if it can open neither.
 *
 * @param fd a raw ICMPv6 socket that is open already, or null to open one
 */
export function openIcmpIfAllowed(fd: number | null = null): Prober | NoIcmp {
  try {
    return new Prober({ openSocket: (tag) => new RawSocket(tag, fd) });
  } catch (error) {
    if (!(error instanceof SystemError)) throw error;
    const withoutRaw = { unavailable: error.message };
    const openSocket = () => new DatagramSocket();
    return attempt(() => new Prober({ openSocket, withoutRaw })) ?? withoutRaw;
  }
}
