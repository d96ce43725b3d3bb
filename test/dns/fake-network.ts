import { formatSocketAddress, type SocketAddress } from "../../src/addr/socket-address.ts";
import {
  type DnsSocket,
  frameMessage,
  MessageStream,
  type SocketEvents,
  type Sockets,
  systemSockets,
} from "../../src/dns/exchange.ts";
import { FakeClock } from "./fake-clock.ts";

/** What a fake server does with a query: it returns the response, or null for silence. */
export type Behaviour = (query: Uint8Array) => Uint8Array | null | "ECONNREFUSED";

/** A query that arrived at a fake server. */
export interface Arrival {
  readonly server: string;
  readonly transport: "udp" | "tcp";
  readonly atMs: number;
  readonly query: Uint8Array;
  /** Sends a datagram to the socket that the query came from. */
  readonly answer: (reply: Uint8Array) => void;
  /** Whether that socket is still open. */
  readonly isOpen: () => boolean;
}

/** Sockets without a network: each server is a function for each transport, silent without one. */
export class FakeNetwork implements Sockets {
  readonly #servers: Readonly<Record<string, { udp?: Behaviour; tcp?: Behaviour }>>;
  readonly #clock: FakeClock;
  readonly arrivals: Arrival[] = [];
  open = 0;
  mostOpen = 0;

  /** @param servers by their endpoints, as `[2001:db8::1]:53` */
  constructor(
    servers: Readonly<Record<string, { udp?: Behaviour; tcp?: Behaviour }>>,
    clock = new FakeClock(),
  ) {
    this.#servers = servers;
    this.#clock = clock;
  }

  openUdp = async (server: SocketAddress, events: SocketEvents): Promise<DnsSocket> =>
    this.#open("udp", server, events, (query) => query);

  openTcp = async (server: SocketAddress, events: SocketEvents): Promise<DnsSocket> => {
    const stream = new MessageStream();
    return this.#open("tcp", server, events, (piece) => stream.add(piece));
  };

  /** Servers that were asked, in order: `[2001:db8::1]:53 udp`. */
  asked(): string[] {
    return this.arrivals.map(({ server, transport }) => `${server} ${transport}`);
  }

  #open(
    transport: "udp" | "tcp",
    endpoint: SocketAddress,
    events: SocketEvents,
    unframe: (bytes: Uint8Array) => Uint8Array | null,
  ): DnsSocket {
    const server = formatSocketAddress(endpoint);
    let isOpen = true;
    this.open += 1;
    this.mostOpen = Math.max(this.open, this.mostOpen);
    const send = (bytes: Uint8Array) => {
      const query = unframe(bytes);
      if (!isOpen || query === null) return;
      const reply = this.#servers[server]?.[transport]?.(query) ?? null;
      this.arrivals.push({
        server,
        transport,
        atMs: this.#clock.nowMs(),
        query,
        answer: events.data,
        isOpen: () => isOpen,
      });
      queueMicrotask(() => {
        if (!isOpen || reply === null) return;
        if (typeof reply === "string") events.failed(reply);
        else events.data(transport === "tcp" ? frameMessage(reply) : reply);
      });
    };
    const close = () => {
      if (isOpen) this.open -= 1;
      isOpen = false;
    };
    return { send, close };
  }
}

/** The machine's sockets, and how many of them are open. */
export class CountedSockets implements Sockets {
  open = 0;

  openUdp = (server: SocketAddress, events: SocketEvents): Promise<DnsSocket> =>
    this.#count(systemSockets.openUdp(server, events));

  openTcp = (server: SocketAddress, events: SocketEvents): Promise<DnsSocket> =>
    this.#count(systemSockets.openTcp(server, events));

  async #count(opening: Promise<DnsSocket>): Promise<DnsSocket> {
    const socket = await opening;
    this.open += 1;
    return {
      send: (bytes) => socket.send(bytes),
      close: () => {
        this.open -= 1;
        socket.close();
      },
    };
  }
}
