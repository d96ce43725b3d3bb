import type { Endpoint } from "../addr/endpoint.ts";
import { type AskTcp, judgeDatagram, judgeStreamed, type Reply } from "./judge.ts";
import { frameMessage, MessageStream } from "./message-stream.ts";
import type { Query, RandomSource } from "./query.ts";
import { type DnsSocket, errorCode, type SocketEvents, type Sockets } from "./socket.ts";
import type { SocketPlaces } from "./socket-places.ts";

/** What an exchange needs of the world. */
export interface ExchangeContext {
  readonly sockets: Sockets;
  readonly places: SocketPlaces;
  readonly fillRandom: RandomSource;
}

/** The server could not be reached, or broke off. */
export interface Unreachable {
  readonly kind: "unreachable";
  /** An errno name; `EOF` where the server ended a connection without an answer. */
  readonly code: string;
}

/**
 * Sends the query in a datagram from a socket of its own, and waits for the reply. Null when the
 * signal stopped it.
 *
 * @param hasBegun whether the query has had a socket before
 */
export function exchangeUdp(
  context: ExchangeContext,
  server: Endpoint,
  query: Query,
  hasBegun: boolean,
  signal: AbortSignal,
): Promise<Reply | AskTcp | Unreachable | null> {
  return exchange(context, hasBegun, signal, {
    open: (events) => context.sockets.openUdp(server, events),
    bytes: query.bytes,
    judge: (datagram) => judgeDatagram(datagram, query),
  });
}

/** The same over a connection of its own; RFC 7766. */
export function exchangeTcp(
  context: ExchangeContext,
  server: Endpoint,
  query: Query,
  signal: AbortSignal,
): Promise<Reply | Unreachable | null> {
  const stream = new MessageStream();
  return exchange(context, true, signal, {
    open: (events) => context.sockets.openTcp(server, events),
    bytes: frameMessage(query.bytes),
    judge: (chunk) => {
      const message = stream.add(chunk);
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

/** Holds a place and a socket from the first to the last moment of an exchange, and no longer. */
async function exchange<Verdict>(
  { places }: ExchangeContext,
  hasBegun: boolean,
  signal: AbortSignal,
  { open, bytes, judge }: Exchange<Verdict>,
): Promise<Verdict | Unreachable | null> {
  if (!(await places.take(hasBegun, signal))) return null;
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
    if (signal.aborted) return null;
    socket.send(bytes);
    return await end;
  } catch (error) {
    return { kind: "unreachable", code: errorCode(error) };
  } finally {
    signal.removeEventListener("abort", stop);
    socket?.close();
    places.give();
  }
}
