import { formatSocketAddress, type SocketAddress } from "../../src/addr/socket-address.ts";
import { frameMessage, MessageStream } from "../../src/dns/message-stream.ts";
import type { DnsSocket, SocketEvents, Sockets } from "../../src/dns/socket.ts";

/** What a fake server does with a query; what it returns is its reply, null for silence. */
export type Behaviour = (query: Uint8Array, asked: number) => Uint8Array | null | "ECONNREFUSED";

/** A query that arrived at a fake server. */
export interface Arrival {
  readonly server: string;
  readonly transport: "udp" | "tcp";
  readonly query: Uint8Array;
  /** Sends a datagram to the socket that the query came from. */
  readonly answer: (reply: Uint8Array) => void;
}

/** Sockets without a network: each server is a function for each transport, silent where it has none. */
export class FakeNetwork implements Sockets {
  readonly #servers: Readonly<Record<string, { udp?: Behaviour; tcp?: Behaviour }>>;
  readonly arrivals: Arrival[] = [];
  open = 0;
  mostOpen = 0;

  /** @param servers by their endpoints, as `[2001:db8::1]:53` */
  constructor(servers: Readonly<Record<string, { udp?: Behaviour; tcp?: Behaviour }>>) {
    this.#servers = servers;
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
      const reply = this.#servers[server]?.[transport]?.(query, this.arrivals.length) ?? null;
      this.arrivals.push({ server, transport, query, answer: events.data });
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
