import { TEXTS } from "./texts.ts";
import type { MtuResult } from "./types.ts";

const T = TEXTS.mtu;

const KINDS = {
  clear: "good",
  narrowed: "warn",
  blackHole: "bad",
  below1280: "bad",
  inconclusive: "warn",
} as const satisfies Record<MtuResult["verdict"], string>;

/** In words what the measurement means, and where the path narrows. */
export function mtuVerdict({ verdict, told, hops, lastLarge, firstSmall }: MtuResult) {
  const nameOf = (hop: number | null) => {
    const row = hops.find((each) => each.hop === hop);
    return row ? TEXTS.mtr.at(row.hop, row.hostname ?? row.ip) : null;
  };
  const what = told ? T.told(nameOf(told.hop) ?? told.from, told.mtu) : T.verdicts[verdict];
  const isSaid = told?.hop === lastLarge && told !== null;
  const where = isSaid ? "" : T.where(nameOf(lastLarge), nameOf(firstSmall));
  return { kind: KINDS[verdict], text: [what, where].filter(Boolean).join(" ") };
}

/** What routers said about packets that were too big, and why it is not believed if it is not. */
export function mtuNotes({ told, details }: MtuResult) {
  return [
    ...(told ? [{ ...told, text: T.said(told.mtu, told.sent) }] : []),
    ...details.doubtful.map((doubtful) => ({
      ...doubtful,
      text: T.doubtful(doubtful.mtu, doubtful.sent, T.doubts[doubtful.doubt]),
    })),
  ];
}
