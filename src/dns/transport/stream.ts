import type { Socket } from "node:net";
import { errorCode } from "../../util/errors.ts";
import { hostnameOf } from "../server.ts";
import type { Open, SocketEvents } from "./transport.ts";

/** Bytes of the length before each message on a connection; RFC 1035 section 4.2.2. */
const LENGTH_BYTES = 2;

/**
 * Opens a TCP connection for one query. It uses node:net, because Bun.connect cannot close a connection that is not
 * established yet; node:net is loaded at the first use.
 */
export const openTcp: Open = (server, message, events) => {
  const { connect } = process.getBuiltinModule("node:net");
  const socket = connect({ host: hostnameOf(server), port: server.port });
  onMessages(socket, events);
  socket.write(frameMessage(message));
  return { close: () => socket.destroy() };
};

/**
 * Reports the messages that arrive over a connection, and its end: an errno name, `EOF`, or `no-connection` if
 * it was not established. Bun 1.4.4 reports ECONNREFUSED also if no route leads to the server.
 */
export function onMessages(socket: Socket, { message, failed }: SocketEvents): void {
  const stream = new MessageStream();
  socket.on("data", (bytes: Uint8Array) => {
    for (const received of stream.add(bytes)) message(received);
  });
  socket.on("error", (error) => {
    const code = errorCode(error) ?? "UNKNOWN";
    failed(code === "ECONNREFUSED" ? "no-connection" : code);
  });
  socket.on("end", () => failed("EOF"));
}

/** Puts the length before the message, so that one write sends both; RFC 7766 section 8. */
export function frameMessage(message: Uint8Array): Uint8Array {
  return Uint8Array.from([message.length >>> 8, message.length, ...message]);
}

/** Reassembles the messages of a connection from the pieces in which they arrive. */
export class MessageStream {
  #bytes = Buffer.alloc(0);

  /** Adds a piece; returns the messages that it completes, in order. */
  add(piece: Uint8Array): Uint8Array[] {
    this.#bytes = Buffer.concat([this.#bytes, piece]);
    const messages: Uint8Array[] = [];
    while (this.#bytes.length >= LENGTH_BYTES) {
      const end = LENGTH_BYTES + this.#bytes.readUInt16BE();
      if (this.#bytes.length < end) break;
      messages.push(this.#bytes.subarray(LENGTH_BYTES, end));
      this.#bytes = this.#bytes.subarray(end);
    }
    return messages;
  }
}
