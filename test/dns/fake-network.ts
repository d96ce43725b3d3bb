import { formatSocketAddress, type SocketAddress } from "../../src/addr/socket-address.ts";
import { systemSockets } from "../../src/dns/transport/sockets.ts";
import type {
  DnsSocket,
  SocketEvents,
  Sockets,
  Transport,
} from "../../src/dns/transport/transport.ts";
import { FakeClock } from "../util/fake-clock.ts";

/** The behaviour of a fake server: it returns the response to a query, or null for silence. */
export type Behaviour = (query: Uint8Array) => Uint8Array | null | "ECONNREFUSED";

/** A query that arrived at a fake server. */
export interface Arrival {
  readonly server: string;
  readonly transport: Transport;
  readonly atMs: number;
  readonly query: Uint8Array;
  /** Sends a datagram to the socket that the query came from. */
  readonly answer: (reply: Uint8Array) => void;
  /** True if that socket is still open. */
  readonly isOpen: () => boolean;
}

/** Sockets without a network: each server is a function for each transport, silent without one. */
export class FakeNetwork implements Sockets {
  readonly #servers: Readonly<Record<string, Partial<Record<Transport, Behaviour>>>>;
  readonly #clock: FakeClock;
  readonly arrivals: Arrival[] = [];
  openCount = 0;
  mostOpen = 0;

  /** @param servers by their endpoints, as `[2001:db8::1]:53` */
  constructor(
    servers: Readonly<Record<string, Partial<Record<Transport, Behaviour>>>>,
    clock = new FakeClock(),
  ) {
    this.#servers = servers;
    this.#clock = clock;
  }

  /** Servers that were asked, in order: `[2001:db8::1]:53 udp`. */
  asked(): string[] {
    return this.arrivals.map(({ server, transport }) => `${server} ${transport}`);
  }

  async open(
    transport: Transport,
    endpoint: SocketAddress,
    query: Uint8Array,
    events: SocketEvents,
  ): Promise<DnsSocket> {
    const server = formatSocketAddress(endpoint);
    let isOpen = true;
    // As a socket takes a moment to open.
    await null;
    this.openCount += 1;
    this.mostOpen = Math.max(this.openCount, this.mostOpen);
    const reply = this.#servers[server]?.[transport]?.(query) ?? null;
    this.arrivals.push({
      server,
      transport,
      atMs: this.#clock.nowMs(),
      query,
      answer: events.message,
      isOpen: () => isOpen,
    });
    const answer = () => {
      if (!isOpen || reply === null) return;
      if (typeof reply === "string") events.failed(reply);
      else events.message(reply);
    };
    // A reply comes after the socket is there.
    queueMicrotask(() => queueMicrotask(answer));
    const close = () => {
      if (isOpen) this.openCount -= 1;
      isOpen = false;
    };
    return { close };
  }
}

/** The machine's sockets, and how many of them are open. */
export class CountedSockets implements Sockets {
  readonly #sockets = systemSockets();
  openCount = 0;

  async open(
    transport: Transport,
    server: SocketAddress,
    query: Uint8Array,
    events: SocketEvents,
  ): Promise<DnsSocket> {
    const socket = await this.#sockets.open(transport, server, query, events);
    this.openCount += 1;
    return {
      close: () => {
        this.openCount -= 1;
        socket.close();
      },
    };
  }
}
