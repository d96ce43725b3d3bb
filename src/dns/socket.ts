import { connect } from "node:net";
import { formatIp } from "../addr/ip.ts";
import type { SocketAddress } from "../addr/socket-address.ts";
import { errorCode } from "../util/errors.ts";

/** What a socket tells its owner; nothing after it was closed. */
export interface SocketEvents {
  /** A datagram, or some bytes of a stream. */
  data(bytes: Uint8Array): void;
  /** The socket is of no more use. @param code an errno name, or `EOF` where the peer ended a stream */
  failed(code: string): void;
}

/** A socket that talks to one server only. */
export interface DnsSocket {
  /** Sends a datagram, or bytes of a stream as soon as it is connected. */
  send(bytes: Uint8Array): void;
  close(): void;
}

/** The ways to a server, so that a test can hand in its own. Both throw an Error with an errno name as its `code`. */
export interface Sockets {
  openUdp(server: SocketAddress, events: SocketEvents): Promise<DnsSocket>;
  openTcp(server: SocketAddress, events: SocketEvents): Promise<DnsSocket>;
}

/** The machine's sockets. */
export const systemSockets: Sockets = {
  openUdp: (server, events) => openUdp(server, events),
  openTcp,
};

/** What makes a connected UDP socket: `Bun.udpSocket`, as far as it is used. */
type MakeUdpSocket = (
  options: Bun.udp.ConnectSocketOptions<"uint8array">,
) => Promise<Pick<Bun.udp.ConnectedSocket<"uint8array">, "send" | "close" | "remoteAddress">>;

/** Opens a UDP socket that hears the server alone. @param makeSocket for tests */
export async function openUdp(
  server: SocketAddress,
  events: SocketEvents,
  makeSocket: MakeUdpSocket = Bun.udpSocket,
): Promise<DnsSocket> {
  const fail = (error: unknown) => events.failed(errorCode(error) ?? "UNKNOWN");
  const socket = await makeSocket({
    hostname: server.address.version === 6 ? "::" : "0.0.0.0",
    connect: { hostname: formatIp(server.address), port: server.port },
    binaryType: "uint8array",
    socket: {
      data(_, bytes, port, address) {
        // Between binding and connecting, the kernel takes datagrams from anybody.
        const peer = socket.remoteAddress;
        if (port === peer.port && address === peer.address) events.data(bytes);
      },
      // Bun 1.4.4 hands over the error alone, its types promise the socket before it.
      error: (...parts: unknown[]) => fail(parts.at(-1)),
    },
  });
  return {
    send(bytes) {
      try {
        socket.send(bytes);
      } catch (error) {
        // An ICMP error that arrived meanwhile.
        fail(error);
      }
    },
    close: () => socket.close(),
  };
}

/** Over node:net, because a connection that Bun.connect is still trying to make cannot be closed. */
async function openTcp(server: SocketAddress, events: SocketEvents): Promise<DnsSocket> {
  const socket = connect({ host: formatIp(server.address), port: server.port });
  socket.on("data", (bytes: Uint8Array) => events.data(bytes));
  socket.on("error", (error) => events.failed(errorCode(error) ?? "UNKNOWN"));
  socket.on("end", () => events.failed("EOF"));
  return {
    send: (bytes) => socket.write(bytes),
    close: () => socket.destroy(),
  };
}
