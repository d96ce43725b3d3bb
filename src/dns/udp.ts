import type { Clock } from "../util/clock.ts";
import { errorCode } from "../util/errors.ts";
import { type DnsServer, hostnameOf } from "./server.ts";
import type { DnsSocket, SocketEvents } from "./sockets.ts";

/*
 * A socket carries one query at a time, and further ones only after a clean response, as docs/architecture.md
 * explains under "Kept sockets": a port that an attacker finds is of no use soon after.
 */

/** The lowest port that needs no privilege; the highest is 65535. */
export const FIRST_PORT = 1024;

/** Queries that one socket carries. */
export const MAX_USES = 16;

/** Milliseconds until a socket carries no further query. */
export const MAX_AGE_MS = 1000;

/** Random ports that may be in use before the machine counts as out of ports. */
const MAX_BIND_TRIES = 16;

type UdpSocket = Pick<Bun.udp.ConnectedSocket<"uint8array">, "send" | "close" | "remoteAddress">;

/** Makes a connected UDP socket: `Bun.udpSocket`, as far as it is used. */
type MakeUdpSocket = (options: Bun.udp.ConnectSocketOptions<"uint8array">) => Promise<UdpSocket>;

/** The UDP sockets of one client. */
export class UdpSockets {
  readonly #clock: Clock;
  readonly #makeSocket: MakeUdpSocket;
  readonly #idle = new Map<DnsServer, KeptSocket[]>();

  /** @param makeSocket for tests */
  constructor(clock: Clock, makeSocket: MakeUdpSocket = Bun.udpSocket) {
    this.#clock = clock;
    this.#makeSocket = makeSocket;
  }

  /** Takes one of the idle sockets to the server at random, or opens a new one, which receives from the server only. */
  async open(server: DnsServer, events: SocketEvents): Promise<DnsSocket> {
    const idle = this.#idle.get(server) ?? [];
    const [kept] = idle.length > 0 ? idle.splice(random16() % idle.length, 1) : [];
    const socket = kept ?? (await this.#bind(server));
    socket.use(events);
    return socket;
  }

  async #bind(server: DnsServer): Promise<KeptSocket> {
    const { address, port, zone } = server;
    const idle = this.#idle.get(server) ?? [];
    this.#idle.set(server, idle);
    let kept: KeptSocket | null = null;
    for (let tries = 1; ; tries++) {
      try {
        const socket = await this.#makeSocket({
          hostname: address.version === 6 ? "::" : "0.0.0.0",
          port: randomPort(),
          connect: { hostname: hostnameOf(server), port },
          binaryType: "uint8array",
          socket: {
            data: (_, bytes, fromPort, from) => kept?.receive(bytes, fromPort, from),
            // Bun 1.4.4 passes only the error, although its types say that the socket comes first.
            error: (...parts: unknown[]) => kept?.fail(parts.at(-1)),
          },
        });
        kept = new KeptSocket(socket, zone, idle, this.#clock);
        return kept;
      } catch (error) {
        if (errorCode(error) !== "EADDRINUSE" || tries === MAX_BIND_TRIES) throw error;
      }
    }
  }
}

class KeptSocket implements DnsSocket {
  readonly #socket: UdpSocket;
  readonly #peerAddress: string;
  readonly #peerPort: number;
  readonly #idle: KeptSocket[];
  readonly #cancelExpiry: () => void;
  #events: SocketEvents | null = null;
  #usesLeft = MAX_USES;

  /** @param idle the idle sockets to the same server */
  constructor(socket: UdpSocket, zone: string | undefined, idle: KeptSocket[], clock: Clock) {
    const { address, port } = socket.remoteAddress;
    this.#socket = socket;
    // Bun 1.4.4 leaves out the zone here, and has it in the sender of a datagram.
    this.#peerAddress = zone === undefined ? address : `${address}%${zone}`;
    this.#peerPort = port;
    this.#idle = idle;
    this.#cancelExpiry = clock.after(MAX_AGE_MS, () => {
      this.#usesLeft = 0;
      if (this.#events === null) this.#end();
    });
  }

  use(events: SocketEvents): void {
    this.#events = events;
    this.#usesLeft -= 1;
  }

  receive(bytes: Uint8Array, port: number, address: string): void {
    // Between bind and connect, the kernel accepts datagrams from any address.
    if (port !== this.#peerPort || address !== this.#peerAddress) return;
    if (this.#events === null) this.#end();
    else this.#events.message(bytes);
  }

  fail(error: unknown): void {
    if (this.#events === null) this.#end();
    else this.#events.failed(errorCode(error) ?? "UNKNOWN");
  }

  send(message: Uint8Array): void {
    try {
      this.#socket.send(message);
    } catch (error) {
      // An ICMP error that arrived in the meantime.
      this.fail(error);
    }
  }

  close(isClean: boolean): void {
    this.#events = null;
    if (isClean && this.#usesLeft > 0) this.#idle.push(this);
    else this.#end();
  }

  /** Closes an unused socket. */
  #end(): void {
    const at = this.#idle.indexOf(this);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#cancelExpiry();
    this.#socket.close();
  }
}

/** A port of the 64,512 that need no privilege, each with the same chance. */
function randomPort(): number {
  for (;;) {
    const port = random16();
    if (port >= FIRST_PORT) return port;
  }
}

function random16(): number {
  const [value = 0] = crypto.getRandomValues(new Uint16Array(1));
  return value;
}
