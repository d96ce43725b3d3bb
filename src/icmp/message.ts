/** Length of the header that every ICMPv6 message begins with, and of an echo's; RFC 4443 sections 2.1 and 4.1. */
const HEADER_BYTES = 8;

/** ICMPv6 types that sixscope speaks; RFC 4443 section 2.1. */
export const TYPE = {
  destinationUnreachable: 1,
  packetTooBig: 2,
  timeExceeded: 3,
  parameterProblem: 4,
  echoRequest: 128,
  echoReply: 129,
} as const;

/** An echo request or echo reply; RFC 4443 section 4. */
export interface EchoMessage {
  readonly kind: "echo-request" | "echo-reply";
  readonly identifier: number;
  readonly sequence: number;
  readonly data: Uint8Array;
}

/** An error message, type 1 to 4, with the packet that it is about; RFC 4443 section 3. */
export interface ErrorMessage {
  readonly kind: "error";
  readonly type: number;
  readonly code: number;
  /** The second word: the MTU of a Packet Too Big, the pointer of a Parameter Problem. */
  readonly parameter: number;
  /** Length of the quotation in 64-bit words, 0 where the sender says none; RFC 4884 section 4.2. */
  readonly quotedWords: number;
  /** As much of the invoking packet as fits, and extensions behind it. */
  readonly body: Uint8Array;
}

/** A message of a type that sixscope does not interpret. */
export interface OtherMessage {
  readonly kind: "other";
  readonly type: number;
  readonly code: number;
  readonly body: Uint8Array;
}

/** An ICMPv6 message of any type. */
export type IcmpMessage = EchoMessage | ErrorMessage | OtherMessage;

type Decoder = (view: DataView, bytes: Uint8Array) => IcmpMessage;

const DECODERS: Readonly<Record<number, Decoder>> = {
  [TYPE.destinationUnreachable]: decodeError,
  [TYPE.packetTooBig]: decodeError,
  [TYPE.timeExceeded]: decodeError,
  [TYPE.parameterProblem]: decodeError,
  [TYPE.echoRequest]: (view, bytes) => decodeEcho("echo-request", view, bytes),
  [TYPE.echoReply]: (view, bytes) => decodeEcho("echo-reply", view, bytes),
};

/**
 * An echo request with its checksum left 0, for the kernel to fill in; RFC 4443 section 4.1.
 *
 * @param identifier 16 bits
 * @param sequence 16 bits
 */
export function encodeEchoRequest(
  identifier: number,
  sequence: number,
  data: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(new ArrayBuffer(HEADER_BYTES + data.length));
  const view = new DataView(bytes.buffer);
  view.setUint8(0, TYPE.echoRequest);
  view.setUint16(4, identifier);
  view.setUint16(6, sequence);
  bytes.set(data, HEADER_BYTES);
  return bytes;
}

/**
 * Decodes an ICMPv6 message from its type byte on; RFC 4443. The checksum is the kernel's matter.
 *
 * @returns null where the bytes end before the header does; views into `bytes` otherwise
 */
export function decodeMessage(bytes: Uint8Array): IcmpMessage | null {
  if (bytes.length < HEADER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return (DECODERS[view.getUint8(0)] ?? decodeOther)(view, bytes);
}

function decodeEcho(kind: EchoMessage["kind"], view: DataView, bytes: Uint8Array): EchoMessage {
  return {
    kind,
    identifier: view.getUint16(4),
    sequence: view.getUint16(6),
    data: bytes.subarray(HEADER_BYTES),
  };
}

function decodeError(view: DataView, bytes: Uint8Array): ErrorMessage {
  return {
    kind: "error",
    type: view.getUint8(0),
    code: view.getUint8(1),
    parameter: view.getUint32(4),
    quotedWords: view.getUint8(4),
    body: bytes.subarray(HEADER_BYTES),
  };
}

function decodeOther(view: DataView, bytes: Uint8Array): OtherMessage {
  return {
    kind: "other",
    type: view.getUint8(0),
    code: view.getUint8(1),
    body: bytes.subarray(4),
  };
}
