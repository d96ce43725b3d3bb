import { randomInt } from "node:crypto";
import type { Clock } from "../../util/clock.ts";
import { errorCode } from "../../util/errors.ts";
import { type DnsServer, hostnameOf } from "../server.ts";
import type { DnsSocket, Open, SocketEvents } from "./transport.ts";

/*
 * A socket carries one query at a time, and further ones only after a clean response; see docs/decisions/kept-sockets.md:
 * a port that an attacker finds is of no use soon after.
 */

/** The lowest port that needs no privilege. */
export const FIRST_PORT = 1024;

/** The number of ports. */
const PORTS = 65_536;

/** Queries that one socket carries. */
export const MAX_USES = 16;

/** Milliseconds until a socket carries no further query. */
export const MAX_AGE_MS = 1000;

/** Random ports that may be in use before the machine counts as out of ports. */
const MAX_BIND_TRIES = 16;

type UdpSocket = Pick<Bun.udp.ConnectedSocket<"uint8array">, "send" | "close" | "remoteAddress">;

/** Makes a connected UDP socket: `Bun.udpSocket`, as far as it is used. */
type MakeUdpSocket = (options: Bun.udp.ConnectSocketOptions<"uint8array">) => Promise<UdpSocket>;

interface KeptSocket extends DnsSocket {
  send(message: Uint8Array, events: SocketEvents): void;
  receive(bytes: Uint8Array, port: number, address: string): void;
  fail(error: unknown): void;
}

/**
 * Opens the UDP sockets of one client: takes one of the idle sockets to the server at random, or opens a
 * new one, which receives from the server only.
 *
 * @param makeSocket for tests
 */
export function createUdpOpener(clock: Clock, makeSocket: MakeUdpSocket = Bun.udpSocket) {
  const idleSockets = new Map<DnsServer, KeptSocket[]>();

  const bind = async (server: DnsServer, idle: KeptSocket[]) => {
    let kept: KeptSocket | null = null;
    for (let tries = 1; ; tries++) {
      try {
        const socket = await makeSocket({
          hostname: server.address.version === 6 ? "::" : "0.0.0.0",
          port: randomInt(FIRST_PORT, PORTS),
          connect: { hostname: hostnameOf(server), port: server.port },
          binaryType: "uint8array",
          socket: {
            data: (_, bytes, fromPort, from) => kept?.receive(bytes, fromPort, from),
            // Bun 1.4.4 passes only the error, although its types say that the socket comes first.
            error: (...parts: unknown[]) => kept?.fail(parts.at(-1)),
          },
        });
        kept = keep(socket, server.zone, idle);
        return kept;
      } catch (error) {
        if (errorCode(error) !== "EADDRINUSE" || tries === MAX_BIND_TRIES) throw error;
      }
    }
  };

  /** @param idle the idle sockets to the same server */
  const keep = (socket: UdpSocket, zone: string | undefined, idle: KeptSocket[]) => {
    const peer = socket.remoteAddress;
    // Bun 1.4.4 leaves out the zone here, and has it in the sender of a datagram.
    const peerAddress = zone === undefined ? peer.address : `${peer.address}%${zone}`;
    let events: SocketEvents | null = null;
    let usesLeft = MAX_USES;
    /** Closes an unused socket. */
    const end = () => {
      const at = idle.indexOf(kept);
      if (at >= 0) idle.splice(at, 1);
      cancelExpiry();
      socket.close();
    };
    const cancelExpiry = clock.after(MAX_AGE_MS, () => {
      usesLeft = 0;
      if (events === null) end();
    });
    const kept: KeptSocket = {
      send(message, next) {
        events = next;
        usesLeft -= 1;
        try {
          socket.send(message);
        } catch (error) {
          // An ICMP error that arrived in the meantime.
          kept.fail(error);
        }
      },
      receive(bytes, port, address) {
        // Between bind and connect, the kernel accepts datagrams from any address.
        if (port !== peer.port || address !== peerAddress) return;
        if (events === null) end();
        else events.message(bytes);
      },
      fail(error) {
        if (events === null) end();
        else events.failed(errorCode(error) ?? "UNKNOWN");
      },
      close(isClean) {
        events = null;
        if (isClean && usesLeft > 0) idle.push(kept);
        else end();
      },
    };
    return kept;
  };

  return async (...[server, message, events]: Parameters<Open>): Promise<DnsSocket> => {
    const idle = idleSockets.getOrInsert(server, []);
    const [kept] = idle.length > 0 ? idle.splice(randomInt(idle.length), 1) : [];
    const socket = kept ?? (await bind(server, idle));
    socket.send(message, events);
    return socket;
  };
}
