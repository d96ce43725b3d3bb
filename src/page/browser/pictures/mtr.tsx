import type { MtrDocument } from "../../../tools/mtr/report.ts";
import { scaleOf } from "../../../tools/numbers.ts";
import type { View } from "./picture.ts";

/** Beside each hop a line from its least to its greatest time, and a bar from the median to where 95 % are. */
export const mtrView: View<MtrDocument> = {
  beside({ hops }, { all }) {
    const scale = scaleOf(all.flatMap(({ hops }) => hops.map(({ max }) => max)));
    const share = (ms: number) => `${(ms / scale) * 100}%`;
    return {
      heading: `Median to 95 %, from 0 to ${scale} ms`,
      rows: hops.map(({ min, max, p50, p95 }) => {
        if (min === null || max === null || p50 === null || p95 === null) return null;
        return (
          <svg class="bar" aria-hidden="true">
            <rect class="track" width="100%" height="100%" rx="3" />
            <rect class="extent" x={share(min)} width={share(max - min)} y="42%" height="16%" />
            <rect class="fill" x={share(p50)} width={share(p95 - p50)} height="100%" />
            <rect class="fill" x={share(p50)} width="3" height="100%" />
          </svg>
        );
      }),
    };
  },
};
