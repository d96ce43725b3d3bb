import { mergeRound, outcomesIn } from "../../../tools/mtr/report.ts";
import type { MtrHop, MtrRound } from "../../../tools/mtr/result.ts";
import { foldOf } from "../../../util/fold.ts";

/** The kinds of cells, from the best to the worst; `h1` to `h5` are the shades. */
export const KINDS = ["ahead", "unknown", "ignored", "h1", "h2", "h3", "h4", "h5", "lost"] as const;

export type Kind = (typeof KINDS)[number];

/** The greatest milliseconds above the least time of a hop for each shade; the last shade has no end. */
const SHADES_MS = [1, 3, 8, 18];

/** Cells of a strip: on a phone, each has 3 px with its gap. */
const MAX_CELLS = 105;

/** The fields that cells of a hop depend on beside its times. */
type Cause = Pick<MtrHop, "ip" | "min" | "cause">;

/** Round-trip times in milliseconds by round from 0; null for a round without an answer. */
type Times = (number | null | undefined)[];

/** The times of each hop, from the events of a run. */
export const timesOf = foldOf(
  () => ({ known: undefined as MtrRound | undefined, times: new Map<number, Times>() }),
  ({ known, times }, part: MtrRound) => {
    for (const { hop, rtt } of outcomesIn(known, part)) {
      const ofHop = times.get(hop) ?? [];
      ofHop[part.round - 1] = rtt;
      times.set(hop, ofHop);
    }
    return { known: mergeRound(known, part), times };
  },
);

/** The index in `KINDS` of one round of a hop. */
function rankOf(ms: Times[number], { ip, min, cause }: Cause): number {
  if (ms === undefined) return KINDS.indexOf("unknown");
  if (ms === null) return KINDS.indexOf(ip === null || cause === "replies" ? "ignored" : "lost");
  const shade = SHADES_MS.findIndex((limitMs) => ms - (min ?? ms) <= limitMs);
  return KINDS.indexOf(shade < 0 ? "h5" : "h1") + Math.max(0, shade);
}

/** Rounds that a cell stands for. */
export const roundsPerCell = (rounds: number) => Math.ceil(rounds / MAX_CELLS);

/**
 * The cells of a hop: each round, or the worst of several.
 *
 * @param told rounds that have ended
 * @param rounds that there will be
 */
export function cellsOf(times: Times, hop: Cause, told: number, rounds: number): Kind[] {
  const each = roundsPerCell(rounds);
  const cells = Array.from({ length: Math.ceil(rounds / each) }, () => 0);
  for (let round = 0; round < told; round++) {
    const cell = Math.floor(round / each);
    cells[cell] = Math.max(cells[cell] ?? 0, rankOf(times[round], hop));
  }
  return cells.map((rank) => KINDS[rank] as Kind);
}
