import type { MplsLabel } from "./packet.ts";

/** Which probes get no answer: a probability from 0 to 1, or their numbers, counted from 1. */
export type Loss = number | readonly number[];

/** A token bucket as Linux has it for ICMPv6 errors: `burst` at once, then one per interval. */
export type RateLimit = { readonly intervalMs: number; readonly burst: number };

/**
 * The error in an answer. `cookie`, `identifier` and `sequence` invert that part of the echo
 * (in an error: of the quoted echo), the cookie being its first 8 bytes of data; `source` inverts
 * the last byte of the sender's address, `destination` that of the quoted packet's; `checksum` is
 * wrong; `garbage` keeps type and code and makes the rest random; `cutTo` keeps that number of
 * bytes of the ICMPv6 message. But for `checksum`, the checksum is right.
 */
export type Change =
  | "cookie"
  | "identifier"
  | "sequence"
  | "source"
  | "destination"
  | "checksum"
  | "garbage"
  | { readonly cutTo: number };

/**
 * Sends something else instead of, or beside, a true answer. Several rules may concern one probe.
 * A duplicate: `{ beside: true, afterMs: 5 }`; a late answer: `{ afterMs: 3000 }`; a forgery that
 * arrives before the true answer: `{ beside: true, change: "cookie" }`.
 */
export type AnswerRule = {
  /** Numbers, counted from 1, of the probes that it concerns; default all. */
  readonly probes?: readonly number[];
  readonly change?: Change;
  /** Default 1; 0 sends nothing. */
  readonly copies?: number;
  /** Later than the true answer, or earlier where negative; default 0. */
  readonly afterMs?: number;
  /** True if the true answer is sent too; default false. */
  readonly beside?: boolean;
};

/** The properties that routers and hosts share. Probes are counted from 1 for each node, those that it would
 * answer: of a host's rules the numbers mean each of its addresses, of a router's all destinations. */
export type Node = {
  /** From the test host to this node and back, whatever lies between; default 0. */
  readonly rttMs?: number;
  /** Up to so much more, evenly spread; default 0. */
  readonly jitterMs?: number;
  /** Probes that it does not answer; default none. */
  readonly loss?: Loss;
  /** Answers nothing; default false. */
  readonly silent?: boolean;
  /** Hop limit with which its packets set out; default 64. */
  readonly hopLimit?: number;
  /** Most bytes of a packet that its errors quote, from 48 to 1232; default 1232. */
  readonly quotationBytes?: number;
  readonly rules?: readonly AnswerRule[];
};

/** A type and code of an ICMPv6 error. */
export type ErrorKind = { readonly type: number; readonly code: number };

/** A router of a path. Routers with the same address are one: they share counts and rate limit. */
export type Router = Node & {
  readonly address: string;
  /** Answers each probe from another address, which differs in its last 32 bits; default false. */
  readonly isMany?: boolean;
  /** For each address that it answers to; default none. */
  readonly rateLimit?: RateLimit;
  /** MTU of the link behind it: larger packets are answered with Packet Too Big. */
  readonly mtu?: number;
  /** The MTU that its Packet Too Big claims; default `mtu`. */
  readonly claimedMtu?: number;
  /** Answers this instead of forwarding. */
  readonly error?: ErrorKind;
  /** Packets that it does not forward; default none. */
  readonly forwardLoss?: Loss;
  /**
   * The extensions of its Time Exceeded and Destination Unreachable, behind a quotation of at least
   * 128 bytes: an RFC 4884 structure of MPLS labels, or any bytes.
   */
  readonly extensions?: readonly MplsLabel[] | Uint8Array;
  /** The length field of RFC 4884 where it is not to be right; 0 as routers from before RFC 4884 have it. */
  readonly lengthField?: number;
};

/** The end of a path; it has whatever address of the destination's prefix was asked. */
export type Host = Node & {
  /** Answers this instead of an echo reply. */
  readonly error?: ErrorKind;
};

/** A way of routers, in order from the test host, and what is at its end. */
export type Path = {
  readonly routers?: readonly Router[];
  /** A host, nothing, or the last `loopOf` routers in a circle; default a host that answers at once. */
  readonly end?: Host | "blackhole" | { readonly loopOf: number };
};

/** A part of the internet. Where prefixes overlap, the longest decides. */
export type Destination = {
  /** An address or a prefix, such as `2001:db8:2::/48`. */
  readonly to: string;
} & (
  | Path
  | {
      /** Paths of equal cost: number (flow label, or ICMPv6 checksum) modulo their count is taken; any for each packet. */
      readonly equalPaths: readonly Path[];
      /** Default `flowLabel`. */
      readonly balanceBy?: "flowLabel" | "checksum" | "packet";
    }
);

/** A simulated internet as the test host sees it: plain data. */
export type InternetDescription = {
  readonly destinations: readonly Destination[];
  /** The test host's address; default 2001:db8::1. */
  readonly source?: string;
  /** MTU of the test host's link; default 1500. */
  readonly mtu?: number;
  /** Makes loss and jitter repeatable; default 1. */
  readonly seed?: number;
};

/** The default of a Linux router: one error per 100 ms for an address, after a burst of 6. */
export const LINUX_RATE_LIMIT: RateLimit = { intervalMs: 100, burst: 6 };
