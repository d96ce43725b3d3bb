import type { MtuDocument } from "../../../tools/mtu/report.ts";
import { tonedVerdict } from "../../../tools/report.ts";
import type { Asked, View } from "./picture.ts";

/** Percent of the height: a pipe of the smallest size, and what the largest has more. */
const LEAST = 30;
const MORE = 40;

/** With more hops than this, only every fifth hop and the last one are numbered. */
const NUMBERED = 16;

type Hops = MtuDocument["hops"];

/** A run of hops with the same size. */
interface Stretch {
  /** Null if no packet tells. */
  readonly bytes: number | null;
  /** The positions in the row of hops, from 0; `end` is behind the last one. */
  readonly start: number;
  readonly end: number;
}

/** The path as a pipe. */
export const mtuView: View<MtuDocument> = {
  figure: (document, { all }) =>
    document.hops.length > 0 ? <Pipe {...document} all={all} /> : null,
};

/** The path from here to the target, as wide as the packets that got through. */
function Pipe({ mtu, hops, details, all }: MtuDocument & Pick<Asked<MtuDocument>, "all">) {
  const { verdict } = details;
  const stretches = stretchesOf(hops);
  const every = all.flatMap((document) => document.hops.flatMap((hop) => hop.mtu ?? []));
  const sizes = [...new Set(every)].sort((a, b) => a - b);
  // Not to scale: 80 bytes of 1500 would not be seen.
  const heightOf = (bytes: number | null) =>
    bytes === null ? 0 : LEAST + (MORE * (sizes.indexOf(bytes) + 1)) / sizes.length;
  const x = (at: number) => `${(at / hops.length) * 100}%`;
  const isBroken = tonedVerdict(verdict)?.tone === "bad";
  const isNarrow = isBroken || verdict?.code === "narrowed";
  const texts = stretches.map((stretch) => textOf(stretch, hops));
  return (
    <figure class={isBroken ? "pipe broken" : "pipe"}>
      <svg role="img" aria-label={`The path: ${texts.join("; ")}`}>
        {stretches.map(({ bytes, start, end }, index) => {
          const height = heightOf(bytes);
          const isFirst = start === 0;
          const isLast = end === hops.length;
          return (
            <g>
              <rect
                class={isNarrow && bytes === mtu ? "tube narrow" : "tube"}
                x={x(start)}
                width={x(end - start)}
                y={`${50 - height / 2}%`}
                height={`${Math.max(1, height)}%`}
              />
              <text
                x={isFirst ? "0" : isLast ? "100%" : x((start + end) / 2)}
                y={index % 2 === 0 ? "9%" : "98%"}
                text-anchor={isFirst ? "start" : isLast ? "end" : "middle"}
              >
                {bytes ?? "?"}
              </text>
            </g>
          );
        })}
        {hops.map(({ hop }, index) =>
          hops.length <= NUMBERED || hop % 5 === 0 || index === hops.length - 1 ? (
            <text class="number" x={x(index + 0.5)} y="50%" dy="0.35em" text-anchor="middle">
              {hop}
            </text>
          ) : null,
        )}
      </svg>
      <figcaption class="soft">From here to the target, by hop; in bytes, not to scale</figcaption>
    </figure>
  );
}

/** A hop that does not tell is at least as wide as the next one that does. */
function stretchesOf(hops: Hops): Stretch[] {
  const stretches: Stretch[] = [];
  for (const [start, { mtu }] of hops.entries()) {
    const bytes = mtu ?? hops.slice(start).find((hop) => hop.mtu !== null)?.mtu ?? null;
    const last = stretches.at(-1);
    if (last?.bytes === bytes) stretches.splice(-1, 1, { ...last, end: start + 1 });
    else stretches.push({ bytes, start, end: start + 1 });
  }
  return stretches;
}

function textOf({ bytes, start, end }: Stretch, hops: Hops): string {
  const [first, last] = [hops[start]?.hop, hops[end - 1]?.hop];
  return `${first === last ? `hop ${first}` : `hops ${first} to ${last}`}: ${bytes ?? "unknown"}`;
}
