import type { Ipv6Address } from "../addr/ipv6.ts";

/** An echo request on its way out. */
export interface OutgoingPacket {
  readonly destination: Ipv6Address;
  /** Index of the interface of a link-local destination, 0 for none. */
  readonly scopeId: number;
  readonly source: Ipv6Address;
  readonly hopLimit: number;
  /** 20 bits; 0 for none. */
  readonly flowLabel: number;
  /** The ICMPv6 message from its type byte on. */
  readonly message: Uint8Array;
}

/** A message that has come in. */
export interface ReceivedPacket {
  readonly source: Ipv6Address;
  /** Index of the interface of a link-local sender, 0 otherwise. */
  readonly scopeId: number;
  readonly hopLimit: number;
  /** When the kernel received it, in nanoseconds of the monotonic clock; see `receivedAtNs`. */
  readonly receivedNs: number;
  /** When it was read from the socket: an upper bound of the former that no clock step can move. */
  readonly readNs: number;
  /** The ICMPv6 message from its type byte on. */
  readonly message: Uint8Array;
}

/** What became of a packet. */
export type SendResult =
  | {
      readonly kind: "sent";
      /** When it was handed to the kernel, in nanoseconds of the monotonic clock. */
      readonly sentNs: number;
      /** The one that it has; 0 where the kernel did not take the one asked for. */
      readonly flowLabel: number;
    }
  /** With the errno name of its refusal. */
  | { readonly kind: "failed"; readonly code: string };

/** The source address that the kernel chooses for a destination, or the errno name of why it has none. */
export type SourceChoice =
  | { readonly kind: "source"; readonly address: Ipv6Address }
  | { readonly kind: "failed"; readonly code: string };

/** All that the ICMPv6 module wants of the operating system, apart from a clock and random bytes. */
export interface IcmpSocket {
  /** Asks the routing table; sends nothing. */
  sourceFor(destination: Ipv6Address, scopeId: number): SourceChoice;
  /** Sends without blocking. */
  send(packet: OutgoingPacket): SendResult;
  /** Room for packets that have not left this machine, in bytes as the kernel counts them. */
  readonly sendBufferBytes: number;
  /** Grows at least twice a second while the receiver lives. */
  readonly beats: number;
  /** Resolves once nothing uses the socket any more; nothing is delivered from the call on. */
  close(): Promise<void>;
}

/** Who hears from a socket. */
export interface SocketListener {
  /** Packets have arrived; they stand in the order in which the kernel received them. */
  packets(packets: readonly ReceivedPacket[]): void;
  /** Nothing will be received any more, though the socket was not closed. */
  failed(error: Error): void;
}

/**
 * Opens a socket that delivers echo replies and errors whose identifier has the tag in its high byte.
 *
 * @throws SystemError where the process may not have one
 */
export type OpenSocket = (tag: number, listener: SocketListener) => IcmpSocket;
