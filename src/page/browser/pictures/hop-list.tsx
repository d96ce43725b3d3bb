import { formatMs } from "../../../tools/numbers.ts";
import { hopNotes } from "../../../tools/report.ts";
import type { Hop } from "../../../tools/trace/result.ts";
import { Who } from "./parts.tsx";

interface HopListProps {
  hops: readonly Hop[];
  /** The hop behind which the way breaks. */
  brokenAfter?: number | undefined;
  /** Short notes about a hop. */
  notesOf?: (hop: Hop) => readonly string[];
}

/** The hops of a way with their names, addresses and times, and the break in its place. */
export function HopList({
  hops,
  brokenAfter,
  notesOf = ({ details }) => hopNotes(details),
}: HopListProps) {
  return (
    <ol class="hop-list">
      {hops.map((hop) => (
        <>
          <li class={`hop ${hop.ip === null ? "silent" : ""}`}>
            <span class="position">{hop.hop}</span>
            <Who host={hop} notes={notesOf(hop)} />
            <span class="time">{hop.rtt !== null && `${formatMs(hop.rtt)} ms`}</span>
          </li>
          {hop.hop === brokenAfter && (
            <li class="bad">
              <span />
              <span>The way breaks behind hop {hop.hop}.</span>
            </li>
          )}
        </>
      ))}
    </ol>
  );
}
