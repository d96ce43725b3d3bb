import type { SocketAddress } from "../addr/socket-address.ts";
import { errorCode } from "../util/errors.ts";
import { type AskTcp, judgeDatagram, judgeStreamed, type Reply } from "./match-response.ts";
import { frameMessage, MessageStream } from "./message-stream.ts";
import type { Query } from "./query.ts";
import type { DnsSocket, SocketEvents, Sockets } from "./socket.ts";

/** The server could not be reached, or broke off. */
export interface Unreachable {
  readonly kind: "unreachable";
  /** An errno name; `EOF` where the server ended a connection without an answer. */
  readonly code: string;
}

/** Sends the query in a datagram, from a socket of its own, and waits for the reply. Null when the signal stopped it. */
export function exchangeUdp(
  sockets: Sockets,
  server: SocketAddress,
  query: Query,
  signal: AbortSignal,
): Promise<Reply | AskTcp | Unreachable | null> {
  return exchange(signal, {
    open: (events) => sockets.openUdp(server, events),
    bytes: query.bytes,
    judge: (datagram) => judgeDatagram(datagram, query),
  });
}

/** The same over a connection of its own; RFC 7766. */
export function exchangeTcp(
  sockets: Sockets,
  server: SocketAddress,
  query: Query,
  signal: AbortSignal,
): Promise<Reply | Unreachable | null> {
  const stream = new MessageStream();
  return exchange(signal, {
    open: (events) => sockets.openTcp(server, events),
    bytes: frameMessage(query.bytes),
    judge: (piece) => {
      const message = stream.add(piece);
      return message === null ? null : judgeStreamed(message, query);
    },
  });
}

interface Exchange<Verdict> {
  open(events: SocketEvents): Promise<DnsSocket>;
  /** What is sent. */
  readonly bytes: Uint8Array;
  /** What the bytes that arrived mean; null to keep waiting. */
  judge(received: Uint8Array): Verdict | null;
}

/** Holds a socket from the first to the last moment of an exchange, and no longer. */
async function exchange<Verdict>(
  signal: AbortSignal,
  { open, bytes, judge }: Exchange<Verdict>,
): Promise<Verdict | Unreachable | null> {
  if (signal.aborted) return null;
  const { promise: end, resolve, reject } = Promise.withResolvers<Verdict | Unreachable | null>();
  const stop = () => resolve(null);
  signal.addEventListener("abort", stop);
  let socket: DnsSocket | undefined;
  try {
    socket = await open({
      data(received) {
        try {
          const verdict = judge(received);
          if (verdict !== null) resolve(verdict);
        } catch (error) {
          reject(error);
        }
      },
      failed: (code) => resolve({ kind: "unreachable", code }),
    });
    socket.send(bytes);
    return await end;
  } catch (error) {
    const code = errorCode(error);
    if (code === undefined) throw error;
    return { kind: "unreachable", code };
  } finally {
    signal.removeEventListener("abort", stop);
    socket?.close();
  }
}
