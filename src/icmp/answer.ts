import type { Ipv6Address } from "../addr/ipv6.ts";
import type { Extensions } from "./extensions.ts";

interface AnswerBase {
  readonly from: Ipv6Address;
  /** Milliseconds from handing the request to the kernel to its receipt of the answer. */
  readonly rttMs: number;
  /** Hop limit with which the answer arrived. */
  readonly hopLimit: number;
}

/** The target's echo reply. */
export interface EchoReply extends AnswerBase {
  readonly kind: "reply";
}

/** An ICMPv6 error about the probe. */
export interface ProbeError extends AnswerBase {
  readonly kind: "error";
  readonly type: number;
  readonly code: number;
  /** The MTU of a Packet Too Big in bytes, the pointer of a Parameter Problem, else 0. */
  readonly parameter: number;
  readonly extensions: Extensions;
}

/** What came back for a probe. */
export type Answer = EchoReply | ProbeError;
