import { randomInt } from "node:crypto";
import { errorCode } from "../../util/errors.ts";
import { type DnsServer, hostnameOf } from "../server.ts";
import type { DnsSocket, SocketEvents } from "./transport.ts";

/** The lowest port that needs no privilege. */
export const FIRST_PORT = 1024;

/** The number of ports. */
const PORTS = 65_536;

/** Random ports that may be in use before the machine counts as out of ports. */
const MAX_BIND_TRIES = 16;

type UdpSocket = Pick<Bun.udp.ConnectedSocket<"uint8array">, "send" | "close" | "remoteAddress">;

/** Makes a connected UDP socket: `Bun.udpSocket`, as far as it is used. */
type MakeUdpSocket = (options: Bun.udp.ConnectSocketOptions<"uint8array">) => Promise<UdpSocket>;

/**
 * Opens a UDP socket on a random port for one query; see docs/decisions/random-ports.md. It receives from the
 * server only.
 *
 * @param makeSocket for tests
 */
export async function openUdp(
  server: DnsServer,
  message: Uint8Array,
  events: SocketEvents,
  makeSocket: MakeUdpSocket = Bun.udpSocket,
): Promise<DnsSocket> {
  const { address, port } = server;
  let peerAddress: string | undefined;
  const bind = async (tries = 1): Promise<UdpSocket> => {
    try {
      return await makeSocket({
        hostname: address.version === 6 ? "::" : "0.0.0.0",
        port: randomInt(FIRST_PORT, PORTS),
        connect: { hostname: hostnameOf(server), port },
        binaryType: "uint8array",
        socket: {
          // Between bind and connect, the kernel accepts datagrams from any address.
          data(_, bytes, fromPort, from) {
            // Bun 1.4.4 leaves out the zone in `remoteAddress`; a sender has it by name, not by number.
            if (fromPort === port && from.split("%")[0] === peerAddress) events.message(bytes);
          },
          // Bun 1.4.4 passes only the error, although its types say that the socket comes first.
          error: (...parts: unknown[]) => events.failed(errorCode(parts.at(-1)) ?? "UNKNOWN"),
        },
      });
    } catch (error) {
      if (errorCode(error) !== "EADDRINUSE" || tries === MAX_BIND_TRIES) throw error;
      return bind(tries + 1);
    }
  };
  const socket = await bind();
  peerAddress = socket.remoteAddress.address;
  try {
    socket.send(message);
  } catch (error) {
    socket.close();
    throw error;
  }
  return socket;
}
