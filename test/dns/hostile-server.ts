import { createServer, type Server, type Socket } from "node:net";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { MessageStream } from "../../src/dns/transport/stream.ts";
import { freePort } from "../lab/port.ts";

/** A query over UDP, and the ways to respond. */
export interface Datagram {
  readonly query: Uint8Array;
  /** How many came before it. */
  readonly index: number;
  reply(bytes: Uint8Array): void;
  /** Replies to an earlier query, to the socket that it came from. */
  replyTo(index: number, bytes: Uint8Array): void;
  /** Replies from another port of the same address. */
  replyFromElsewhere(bytes: Uint8Array): void;
}

/** The behaviour of the server; without `tcp` it refuses connections. */
export interface Manners {
  udp(datagram: Datagram): void | Promise<void>;
  /** A whole query has arrived over a connection. */
  tcp?(query: Uint8Array, connection: Socket): void | Promise<void>;
  /** Some bytes have arrived over a connection. */
  tcpPiece?(bytes: Uint8Array): void;
}

/** A DNS server on the loopback interface that misbehaves as a test wants. */
export interface HostileServer {
  readonly endpoint: SocketAddress;
  /** Every query over UDP, with the port that it came from. */
  readonly arrivals: readonly { readonly query: Uint8Array; readonly port: number }[];
  stop(): Promise<void>;
}

/** Starts a server at the address, on a free port. */
export async function startHostileServer(
  manners: Manners,
  address = "::1",
): Promise<HostileServer> {
  const arrivals: { query: Uint8Array; port: number; address: string }[] = [];
  const elsewhere = await Bun.udpSocket({ hostname: address, socket: { error() {} } });
  const socket = await Bun.udpSocket({
    hostname: address,
    port: await freePort(),
    socket: {
      async data(_, bytes, port, from) {
        const query = new Uint8Array(bytes);
        const index = arrivals.push({ query, port, address: from }) - 1;
        await manners.udp({
          query,
          index,
          reply: (reply) => send(socket, reply, port, from),
          replyTo(earlier, reply) {
            const asker = arrivals[earlier];
            if (asker) send(socket, reply, asker.port, asker.address);
          },
          replyFromElsewhere: (reply) => send(elsewhere, reply, port, from),
        });
      },
      error() {},
    },
  });
  const tcp = manners.tcp ? await listen(manners, socket.port, address) : null;
  return {
    endpoint: tryParseSocketAddress(address.replace(/%.*/, ""), socket.port) as SocketAddress,
    arrivals,
    async stop() {
      socket.close();
      elsewhere.close();
      await tcp?.stop();
    },
  };
}

function send(socket: Bun.udp.Socket<"buffer">, bytes: Uint8Array, port: number, address: string) {
  try {
    socket.send(bytes, port, address);
  } catch {
    // An ICMP error for an earlier datagram, because the client has closed its socket.
  }
}

async function listen(
  manners: Manners,
  port: number,
  host: string,
): Promise<{ stop(): Promise<void> }> {
  const connections = new Set<Socket>();
  const server: Server = createServer((connection) => {
    connections.add(connection);
    const stream = new MessageStream();
    connection.on("data", (bytes: Uint8Array) => {
      manners.tcpPiece?.(bytes);
      for (const query of stream.add(bytes)) manners.tcp?.(query.slice(), connection);
    });
    connection.on("error", () => {});
    connection.on("close", () => connections.delete(connection));
  });
  await new Promise<void>((resolve, reject) => {
    server.on("error", reject);
    server.listen(port, host, resolve);
  });
  return {
    stop: () =>
      new Promise((resolve) => {
        for (const connection of connections) connection.destroy();
        server.close(() => resolve());
      }),
  };
}
