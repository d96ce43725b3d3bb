import type { AnswerRule, Change } from "./internet-description.ts";
import { ECHO_REPLY, formatIcmp, IPV6_HEADER_BYTES } from "./packet.ts";
import type { Answer } from "./simulation.ts";

/** An ICMPv6 message on its way, its checksum not yet written. */
export type Draft = {
  readonly source: Uint8Array;
  readonly destination: Uint8Array;
  readonly hopLimit: number;
  readonly message: Uint8Array;
};

/** Where the parts of an echo begin in an echo message. */
const IDENTIFIER_AT = 4;
const SEQUENCE_AT = 6;
const COOKIE_AT = 8;
const COOKIE_BYTES = 8;

/** Where the quoted packet begins in an error message, and its destination ends in its header. */
const QUOTATION_AT = 8;
const DESTINATION_END = 40;

/** The first byte of the ICMPv6 checksum in a packet. */
const CHECKSUM_AT = IPV6_HEADER_BYTES + 2;

function inverted(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return bytes.map((byte, index) => (index >= start && index < end ? ~byte : byte));
}

/** A draft with something wrong, as `Change` describes. */
function changed(draft: Draft, change: Change | undefined, random: () => number): Draft {
  const { message, source } = draft;
  const isEcho = message[0] === ECHO_REPLY;
  const echoAt = isEcho ? 0 : QUOTATION_AT + IPV6_HEADER_BYTES;
  const invert = (start: number, bytes: number) => ({
    ...draft,
    message: inverted(message, start, start + bytes),
  });
  switch (change) {
    case undefined:
    case "checksum":
      return draft;
    case "identifier":
      return invert(echoAt + IDENTIFIER_AT, 2);
    case "sequence":
      return invert(echoAt + SEQUENCE_AT, 2);
    case "cookie":
      return invert(echoAt + COOKIE_AT, COOKIE_BYTES);
    case "source":
      return { ...draft, source: inverted(source, source.length - 1, source.length) };
    case "destination":
      return isEcho ? draft : invert(QUOTATION_AT + DESTINATION_END - 1, 1);
    case "garbage":
      return { ...draft, message: message.map((byte, at) => (at < 2 ? byte : random() * 256)) };
    default:
      return { ...draft, message: message.slice(0, change.cutTo) };
  }
}

function format(draft: Draft, change: Change | undefined): Uint8Array {
  const packet = formatIcmp(draft, draft.message);
  return change === "checksum"
    ? packet.map((byte, at) => (at === CHECKSUM_AT ? byte ^ 1 : byte))
    : packet;
}

/** The packets sent where a node would answer its probe number `count` with `answer`, forgeries first. */
export function answersByRules(
  rules: readonly AnswerRule[],
  count: number,
  answer: Draft,
  afterMs: number,
  random: () => number,
): readonly Answer[] {
  const concerned = rules.filter(({ probes }) => probes?.includes(count) ?? true);
  const sent = concerned.flatMap(({ change, copies = 1, afterMs: laterMs = 0 }) =>
    Array.from({ length: copies }, () => ({
      afterMs: Math.max(0, afterMs + laterMs),
      packet: format(changed(answer, change, random), change),
    })),
  );
  return concerned.every(({ beside }) => beside)
    ? [...sent, { afterMs, packet: format(answer, undefined) }]
    : sent;
}
