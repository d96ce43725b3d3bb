import { type Draft, hopNotes, latest, type Reporter, type Row, runReport } from "../report.ts";
import type { DoubtfulTooBig, MtuHop, MtuResult, TooBig } from "./result.ts";

type Message = TooBig & Partial<DoubtfulTooBig>;

/** A measurement as far as it is known. */
export type MtuDocument = Draft<MtuResult, "target" | "hops">;

/** The path MTU, and the largest packet that reaches each hop. */
export const mtuReport: Reporter<MtuDocument, MtuHop> = {
  draft: (target, parts) => ({ target, hops: latest(parts, ({ hop }) => hop), details: {} }),
  report(document) {
    const { mtu = null, atMost = null, hops, packetTooBig, details } = document;
    const { doubtful = [], verdict } = details;
    const messages: readonly Message[] = [...(packetTooBig ? [packetTooBig] : []), ...doubtful];
    const elsewhere = messages.filter(({ hop }) => !hops.some((row) => row.hop === hop));
    const facts = [
      ["Path MTU", boundsText(mtu, atMost)] as const,
      ...elsewhere.map((message) => [message.from, textOf(message), "warn"] as const),
    ];
    const rows = hops.map((hop) => rowOf(hop, messages));
    const isMeasured = mtu !== null && verdict !== undefined && verdict.code !== "at-least";
    return runReport(document, facts, [{ columns: COLUMNS, rows }], isMeasured);
  },
};

const COLUMNS = [
  { name: "hop", kind: "position" },
  { name: "largest", kind: "bytes" },
  { name: "address", kind: "host" },
  { name: "", kind: "notes" },
] as const;

function rowOf(
  { hop, ip, hostname, mtu, atMost, details }: MtuHop,
  messages: readonly Message[],
): Row {
  const texts = messages.filter((message) => message.hop === hop).map(textOf);
  const bound = mtu === null || mtu === atMost ? [] : [`perhaps up to ${atMost} bytes`];
  return { cells: [hop, mtu, { ip, hostname }, [...bound, ...hopNotes(details), ...texts]] };
}

function boundsText(mtu: number | null, atMost: number | null): string | null {
  if (mtu === atMost) return mtu === null ? null : `${mtu} bytes`;
  return `${mtu === null ? "" : `at least ${mtu}, `}at most ${atMost} bytes`;
}

function textOf({ mtu, sent, doubt }: Message): string {
  const text = `says Packet Too Big: ${mtu} bytes, not ${sent}`;
  return doubt ? `${text}, not believed: ${DOUBTS[doubt]}` : text;
}

const DOUBTS = {
  "below-1280": "every link of IPv6 carries 1280 bytes",
  "not-smaller": "that is not less than was sent",
  disproved: "larger packets get through",
  "not-ours": "it quotes what was not sent",
} as const satisfies Record<DoubtfulTooBig["doubt"], string>;
