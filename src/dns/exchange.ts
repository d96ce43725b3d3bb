import { formatIp } from "../addr/ip.ts";
import type { SocketAddress } from "../addr/socket-address.ts";
import type { Clock } from "../util/clock.ts";
import { errorCode } from "../util/errors.ts";
import { createQuery, type Query, type Question } from "./message.ts";
import {
  type AskTcp,
  type DnsResponse,
  matchDatagram,
  matchStreamed,
  refusesEdns,
} from "./response.ts";

/** What a socket reports until it is closed. */
export interface SocketEvents {
  /** A datagram, or some bytes of a stream. */
  data(bytes: Uint8Array): void;
  /** The socket failed. @param code an errno name, or `EOF` if the peer ended a stream */
  failed(code: string): void;
}

/** A socket that talks to one server only. */
export interface DnsSocket {
  /** Sends a datagram, or bytes of a stream as soon as it is connected. */
  send(bytes: Uint8Array): void;
  close(): void;
}

/** Opens sockets; a test can pass its own. Both functions throw an Error with an errno name as its `code`. */
export interface Sockets {
  openUdp(server: SocketAddress, events: SocketEvents): Promise<DnsSocket>;
  openTcp(server: SocketAddress, events: SocketEvents): Promise<DnsSocket>;
}

/** What an exchange needs of the machine. */
export interface ExchangeContext {
  readonly sockets: Sockets;
  readonly clock: Clock;
}

/** The server could not be reached, or ended the connection. */
export interface Unreachable {
  readonly kind: "unreachable";
  /** An errno name; `EOF` if the server ended a connection without an answer. */
  readonly code: string;
}

/** The result of asking one server. */
export type ServerResult = (DnsResponse | Unreachable) & { readonly transport: "udp" | "tcp" };

/** Milliseconds for TCP to confirm a datagram that repeats the question in another case. */
const CONFIRM_TIMEOUT_MS = 1000;

/** Bytes of the length before each message on a connection; RFC 1035 section 4.2.2. */
const LENGTH_BYTES = 2;

/** The machine's sockets. */
export const systemSockets: Sockets = {
  openUdp,
  openTcp,
};

/** Asks one server, once more without EDNS if it does not support that. Null when the signal aborts. */
export async function askServer(
  context: ExchangeContext,
  server: SocketAddress,
  question: Question,
  signal: AbortSignal,
): Promise<ServerResult | null> {
  const result = await askOnce(context, server, question, true, signal);
  return result?.kind === "message" && refusesEdns(result.message)
    ? askOnce(context, server, question, false, signal)
    : result;
}

/** Asks over UDP, then over TCP if the datagram cannot be the answer. */
async function askOnce(
  { sockets, clock }: ExchangeContext,
  server: SocketAddress,
  question: Question,
  withEdns: boolean,
  signal: AbortSignal,
): Promise<ServerResult | null> {
  const newQuery = () => createQuery(question, withEdns);
  const overUdp = await exchangeUdp(sockets, server, newQuery(), signal);
  if (overUdp?.kind !== "ask-tcp") return overUdp && { ...overUdp, transport: "udp" };
  const { fallback } = overUdp;
  if (fallback === null) {
    const overTcp = await exchangeTcp(sockets, server, newQuery(), signal);
    return overTcp && { ...overTcp, transport: "tcp" };
  }
  const timeout = new AbortController();
  const cancel = clock.after(CONFIRM_TIMEOUT_MS, () => timeout.abort());
  const stop = AbortSignal.any([signal, timeout.signal]);
  const overTcp = await exchangeTcp(sockets, server, newQuery(), stop).finally(cancel);
  return overTcp?.kind === "message"
    ? { ...overTcp, transport: "tcp" }
    : { ...fallback, transport: "udp" };
}

/** Sends the query in a datagram from a new socket and waits for the response. Null when the signal aborts. */
function exchangeUdp(
  sockets: Sockets,
  server: SocketAddress,
  query: Query,
  signal: AbortSignal,
): Promise<DnsResponse | AskTcp | Unreachable | null> {
  return exchange(
    (events) => sockets.openUdp(server, events),
    query.bytes,
    (datagram) => matchDatagram(datagram, query),
    signal,
  );
}

/** The same over a new connection; RFC 7766. */
function exchangeTcp(
  sockets: Sockets,
  server: SocketAddress,
  query: Query,
  signal: AbortSignal,
): Promise<DnsResponse | Unreachable | null> {
  const stream = new MessageStream();
  return exchange(
    (events) => sockets.openTcp(server, events),
    frameMessage(query.bytes),
    (piece) => {
      const message = stream.add(piece);
      return message && matchStreamed(message, query);
    },
    signal,
  );
}

/** Opens a socket, sends the bytes, and closes the socket once `match` returns something or the exchange ends otherwise. */
async function exchange<Match>(
  open: (events: SocketEvents) => Promise<DnsSocket>,
  bytes: Uint8Array,
  match: (received: Uint8Array) => Match | null,
  signal: AbortSignal,
): Promise<Match | Unreachable | null> {
  if (signal.aborted) return null;
  const { promise: end, resolve, reject } = Promise.withResolvers<Match | Unreachable | null>();
  const stop = () => resolve(null);
  signal.addEventListener("abort", stop);
  let socket: DnsSocket | undefined;
  try {
    socket = await open({
      data(received) {
        try {
          const matched = match(received);
          if (matched !== null) resolve(matched);
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

/** Makes a connected UDP socket: `Bun.udpSocket`, as far as it is used. */
type MakeUdpSocket = (
  options: Bun.udp.ConnectSocketOptions<"uint8array">,
) => Promise<Pick<Bun.udp.ConnectedSocket<"uint8array">, "send" | "close" | "remoteAddress">>;

/** Opens a UDP socket that receives from the server only. @param makeSocket for tests */
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
        // Between bind and connect, the kernel accepts datagrams from any address.
        const peer = socket.remoteAddress;
        if (port === peer.port && address === peer.address) events.data(bytes);
      },
      // Bun 1.4.4 passes only the error, although its types say that the socket comes first.
      error: (...parts: unknown[]) => fail(parts.at(-1)),
    },
  });
  return {
    send(bytes) {
      try {
        socket.send(bytes);
      } catch (error) {
        // An ICMP error that arrived in the meantime.
        fail(error);
      }
    },
    close: () => socket.close(),
  };
}

/** Uses node:net, because Bun.connect cannot close a connection that is not established yet; loaded at the first use. */
async function openTcp(server: SocketAddress, events: SocketEvents): Promise<DnsSocket> {
  const { connect } = process.getBuiltinModule("node:net");
  const socket = connect({ host: formatIp(server.address), port: server.port });
  socket.on("data", (bytes: Uint8Array) => events.data(bytes));
  socket.on("error", (error) => events.failed(errorCode(error) ?? "UNKNOWN"));
  socket.on("end", () => events.failed("EOF"));
  return {
    send: (bytes) => socket.write(bytes),
    close: () => socket.destroy(),
  };
}

/** Puts the length before the message, so that one write sends both; RFC 7766 section 8. */
export function frameMessage(message: Uint8Array): Uint8Array {
  return Uint8Array.from([message.length >>> 8, message.length, ...message]);
}

/** Reassembles the first message of a connection from the pieces in which it arrives. */
export class MessageStream {
  #bytes = Buffer.alloc(0);

  /** Adds a piece; returns the message once it is complete, null before. Ignores what follows it. */
  add(piece: Uint8Array): Uint8Array | null {
    this.#bytes = Buffer.concat([this.#bytes, piece]);
    if (this.#bytes.length < LENGTH_BYTES) return null;
    const end = LENGTH_BYTES + this.#bytes.readUInt16BE();
    return this.#bytes.length < end ? null : this.#bytes.subarray(LENGTH_BYTES, end);
  }
}
