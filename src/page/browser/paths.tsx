import { useId, useState } from "hono/jsx/dom";
import { formatMs } from "./numbers.ts";
import { isLossy, type Level, type Link, levelsOf, type Row } from "./paths-lanes.ts";
import { hashOf } from "./place.ts";
import { TEXTS } from "./texts.ts";
import type { PathDetails, PathGraph, TracePath } from "./types.ts";
import { hopTags, Who } from "./who.tsx";

const T = TEXTS.paths;

/** Pixels: a lane of the picture, all of them together, and the height of the links between two hops. */
const LANE = 16;
const MOST = 96;
const LINKS = 20;

/** Which path is chosen, and how many pixels a lane has. */
interface Picture {
  readonly paths: readonly TracePath[];
  readonly chosen: number | null;
  readonly lanes: number;
  readonly laneWidth: number;
}

interface PathsProps {
  target: string;
  /** The location that traced; undefined for the service itself. */
  from: string | undefined;
  paths: readonly TracePath[];
  graph: PathGraph;
}

/** The paths to a target: a graph of their hops from top to bottom, in which one can be chosen. */
export function Paths({ target, from, paths, graph }: PathsProps) {
  // Several locations have a choice each.
  const group = useId();
  const [chosen, setChosen] = useState<number | null>(null);
  const levels = levelsOf(paths, graph);
  const lanes = Math.max(...levels.map(({ rows }) => rows.length));
  const laneWidth = Math.min(LANE, MOST / lanes);
  const picture = { paths, chosen, lanes, laneWidth };
  return (
    <>
      <fieldset class="ways">
        <legend>{T.choose}</legend>
        <ol>
          {[null, ...paths.keys()].map((index) => (
            <li class="way">
              <label class="check">
                <input
                  type="radio"
                  name={group}
                  checked={chosen === index}
                  onChange={() => setChosen(index)}
                />{" "}
                {index === null ? T.all : T.path(index + 1)}
              </label>
              {index !== null && (
                <About target={target} from={from} path={paths[index] as TracePath} />
              )}
            </li>
          ))}
        </ol>
      </fieldset>
      <ol class="hops graph" aria-label={T.graph}>
        {levels.map((level) =>
          level.rows.map((row) => <NodeRow row={row} level={level} picture={picture} />),
        )}
      </ol>
    </>
  );
}

/** The numbers of the paths that do not reach the target, if others do. */
export function failingPaths({ paths = [] }: PathDetails): number[] {
  const failing = paths.flatMap(({ reached }, index) => (reached ? [] : [index + 1]));
  return failing.length < paths.length ? failing : [];
}

/** How many paths there are, and which of them do not reach the target. */
export function PathsVerdict({ details }: { details: PathDetails }) {
  const { paths, labels = 0, complete, perPacket = [] } = details;
  if (paths === undefined) return null;
  const failing = failingPaths(details);
  return (
    <>
      {failing.length > 0 && <p class="verdict bad">{T.notReached(failing, paths.length)}</p>}
      <p>
        {T.found(paths.length, labels)} {complete ? T.complete : T.incomplete}{" "}
        {perPacket.length > 0 && T.perPacket(perPacket)}
      </p>
    </>
  );
}

/** How a path ends, and where it is traced alone. */
function About({ target, from, path }: Pick<PathsProps, "target" | "from"> & { path: TracePath }) {
  const { flowLabel, labels, reached, reason } = path;
  const parameters = { flowLabel: String(flowLabel), ...(from && { from }) };
  return (
    <>
      <span class="soft">{T.labels(labels)}</span>
      <a href={hashOf({ tool: "trace", subject: target, parameters })}>{T.alone(flowLabel)}</a>
      {!reached && <span class="bad">{TEXTS.trace.reasons[reason]}</span>}
    </>
  );
}

const numbers = (indexes: readonly number[]) => indexes.map((index) => index + 1);

function NodeRow({ row, level, picture }: { row: Row; level: Level; picture: Picture }) {
  const { node, on } = row;
  const { paths, lanes, laneWidth, chosen } = picture;
  const isAt = (path: TracePath) => path.addresses.length === node.hop;
  const ending = on.filter((index) => !paths[index]?.reached && isAt(paths[index] as TracePath));
  const isChosen = chosen !== null && on.includes(chosen);
  const tags = [
    ...(on.length < paths.length && on.length > 0 ? [T.on(numbers(on))] : []),
    ...hopTags(node.details),
  ];
  return (
    <li class={`hop ${node.ip === null ? "silent" : ""} ${isChosen ? "chosen" : ""}`}>
      {row.lane === 0 && level.links.some(({ from, to }) => from.lane !== to.lane) && (
        <svg class="links" width={lanes * laneWidth} height={LINKS} aria-hidden="true">
          {level.links.map((link) => (
            <Line
              on={link.on}
              picture={picture}
              lanes={[link.from.lane, link.to.lane]}
              ends={["0", "100%"]}
            />
          ))}
        </svg>
      )}
      <svg class="lanes" width={lanes * laneWidth} aria-hidden="true">
        <Stems row={row} rows={level.rows} picture={picture} />
      </svg>
      <span class="position">{node.hop}</span>
      <span class="at">
        <Who ip={node.ip} hostname={node.hostname} tags={tags} />
        {ending.length > 0 && <span class="tag bad">{T.ends(numbers(ending))}</span>}
      </span>
      <span class="time">
        {node.rtt !== null && formatMs(node.rtt)}{" "}
        {node.rtt !== null && <span class="soft">{TEXTS.ms}</span>}
      </span>
    </li>
  );
}

/** A node, and the lines to it, from it, and past it to and from others of its hop. */
function Stems({ row, rows, picture }: { row: Row; rows: readonly Row[]; picture: Picture }) {
  const { chosen, paths, laneWidth } = picture;
  const kind = kindOf(row.on, paths, chosen);
  const stem = ({ lane, on }: Row, y1: string, y2: string) => (
    <Line on={on} picture={picture} lanes={[lane, lane]} ends={[y1, y2]} />
  );
  return (
    <>
      {rows.map((other) =>
        (other.lane > row.lane && other.hasPrevious) || (other.lane < row.lane && other.hasNext)
          ? stem(other, "0", "100%")
          : null,
      )}
      {row.hasPrevious && stem(row, "0", "50%")}
      {row.hasNext && stem(row, "50%", "100%")}
      <circle
        class={`node ${kind} ${row.node.ip === null ? "hollow" : ""}`}
        cx={(row.lane + 0.5) * laneWidth}
        cy="50%"
        r={Math.min(5, laneWidth / 2 - 1)}
      />
    </>
  );
}

interface LineProps {
  on: Link["on"];
  picture: Picture;
  lanes: readonly [near: number, far: number];
  ends: readonly [near: string, far: string];
}

function Line({ on, picture: { paths, chosen, laneWidth }, lanes, ends }: LineProps) {
  const x = (lane: number) => (lane + 0.5) * laneWidth;
  const [near, far] = lanes;
  const [y1, y2] = ends;
  return (
    <line class={`edge ${kindOf(on, paths, chosen)}`} x1={x(near)} x2={x(far)} y1={y1} y2={y2} />
  );
}

function kindOf(on: readonly number[], paths: readonly TracePath[], chosen: number | null): string {
  const isChosen = chosen !== null && on.includes(chosen);
  return `${isLossy(on, paths) ? "lossy" : ""} ${isChosen ? "chosen" : ""}`;
}
