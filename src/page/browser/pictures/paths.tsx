import { formatMs } from "../../../tools/numbers.ts";
import { traceNotes } from "../../../tools/trace/report.ts";
import { plural } from "../../../util/text.ts";
import { Who } from "./parts.tsx";
import { type Graph, isLossy, levelsOf, type NodeRow, type Path } from "./paths-lanes.ts";

/** Pixels: a lane of the picture, all of them together, and the height of the links between two hops. */
const LANE = 16;
const MOST = 96;
const LINKS = 20;

interface PathsProps {
  paths: readonly Path[];
  graph: Graph;
  /** The URL of a trace with one flow label. */
  linkOf: (flowLabel: number) => string;
  /** The index of the path that the way shows alone. */
  alone: number | null;
  onAlone(path: number): void;
}

/** The paths to a target: a graph of their hops from top to bottom, below a list with a link for each. */
export function Paths({ paths, graph, linkOf, alone, onAlone }: PathsProps) {
  const levels = levelsOf(paths, graph);
  const lanes = Math.max(...levels.map(({ rows }) => rows.length));
  const laneWidth = Math.min(LANE, MOST / lanes);
  const kindOf = (on: readonly number[]) => (isLossy(on, paths) ? "lossy" : "");
  const middle = (lane: number) => (lane + 0.5) * laneWidth;
  const line = (on: readonly number[], near: number, far: number, y1: string, y2: string) => (
    <line class={`edge ${kindOf(on)}`} x1={middle(near)} x2={middle(far)} y1={y1} y2={y2} />
  );
  // Beside a node pass the links that lead to nodes at its right, and from nodes at its left.
  const stem = ({ lane: here }: NodeRow, { lane, on, hasPrevious, hasNext }: NodeRow) => {
    const isAbove = lane < here ? hasNext : hasPrevious;
    const isBelow = lane > here ? hasPrevious : hasNext;
    return line(on, lane, lane, isAbove ? "0" : "50%", isBelow ? "100%" : "50%");
  };
  return (
    <>
      <ol class="ways" aria-label="Paths">
        {paths.map(({ flowLabel, labels, reached, reason }, index) => (
          <li class="cluster">
            <button
              type="button"
              aria-pressed={alone === index ? "true" : "false"}
              onClick={() => onAlone(index)}
            >
              Path {index + 1}
            </button>
            <span class="soft">{plural(labels, "flow label")}</span>
            <a href={linkOf(flowLabel)}>Trace {flowLabel} alone</a>
            {!reached && <span class="bad">not reached: {reason}</span>}
          </li>
        ))}
      </ol>
      <ol class="graph" aria-label="Hops of all paths">
        {levels.map(({ rows, links }) =>
          rows.map((row) => (
            <li class={`hop ${row.node.ip === null ? "silent" : ""}`}>
              {row.lane === 0 && links.some(({ from, to }) => from.lane !== to.lane) && (
                <svg class="links" width={lanes * laneWidth} height={LINKS} aria-hidden="true">
                  {links.map(({ on, from, to }) => line(on, from.lane, to.lane, "0", "100%"))}
                </svg>
              )}
              <svg class="lanes" width={lanes * laneWidth} aria-hidden="true">
                {rows.map((other) => stem(row, other))}
                <circle
                  class={`node ${kindOf(row.on)} ${row.node.ip === null ? "hollow" : ""}`}
                  cx={middle(row.lane)}
                  cy="50%"
                  r={Math.min(5, laneWidth / 2 - 1)}
                />
              </svg>
              <About row={row} paths={paths} />
            </li>
          )),
        )}
      </ol>
    </>
  );
}

/** A node of the graph: its hop, host and notes, the paths that lead there, and those that end there. */
function About({ row: { node, on }, paths }: { row: NodeRow; paths: readonly Path[] }) {
  const { hop, ip, rtt, details } = node;
  const ending = on.filter((index) => {
    const { reached = true, addresses = [] } = paths[index] ?? {};
    return !reached && addresses.length === hop;
  });
  const isOnSome = on.length < paths.length && on.length > 0;
  const notes = [...(isOnSome ? [pathsText(on)] : []), ...traceNotes(details, ip)];
  return (
    <>
      <span class="position">{hop}</span>
      <span class="host">
        <Who host={node} notes={notes} />
        {ending.length > 0 && (
          <span class="tag bad">{pathsText(ending)}: no reply from here on</span>
        )}
      </span>
      <span class="time">{rtt !== null && `${formatMs(rtt)} ms`}</span>
    </>
  );
}

/** `path 1`, `paths 1, 2`, from indexes. */
function pathsText(indexes: readonly number[]): string {
  return `path${indexes.length === 1 ? "" : "s"} ${indexes.map((index) => index + 1).join(", ")}`;
}
