import { traceNotes } from "../../../tools/trace/report.ts";
import type { Hop } from "../../../tools/trace/result.ts";
import { inWords, plural } from "../../../util/text.ts";
import type { Path } from "./bundle.ts";
import { HopList } from "./hop-list.tsx";

interface PathsProps {
  paths: readonly Path[];
  /** The hops of all paths. */
  nodes: readonly Hop[];
  /** The URL of a trace with one flow label. */
  linkOf: (flowLabel: number) => string;
  /** The index of the path that the way shows alone. */
  alone: number | null;
  onAlone(path: number): void;
}

/** The paths to a target, each with a link, and the hops of all, each with the paths that lead there. */
export function Paths({ paths, nodes, linkOf, alone, onAlone }: PathsProps) {
  const byNode = new Map(
    nodes.map((node) => [
      node,
      paths.flatMap(({ addresses }, index) => (addresses[node.hop - 1] === node.ip ? index : [])),
    ]),
  );
  const pathsBy = (node: Hop) => byNode.get(node) ?? [];
  const firstBy = (node: Hop) => pathsBy(node)[0] ?? paths.length;
  const notesOf = (node: Hop) => {
    const by = pathsBy(node);
    const ending = by.filter((index) => {
      const { reached = true, addresses = [] } = paths[index] ?? {};
      return !reached && addresses.length === node.hop;
    });
    return [
      ...(by.length < paths.length && by.length > 0 ? [pathsText(by)] : []),
      ...traceNotes(node.details, node.ip),
      ...(ending.length > 0 ? [`${pathsText(ending)}: no reply from here on`] : []),
    ];
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
            {!reached && <span class="bad">not reached: {inWords(reason)}</span>}
          </li>
        ))}
      </ol>
      <HopList
        hops={nodes.toSorted((a, b) => a.hop - b.hop || firstBy(a) - firstBy(b))}
        notesOf={notesOf}
      />
    </>
  );
}

/** `path 1`, `paths 1, 2`, from indexes. */
function pathsText(indexes: readonly number[]): string {
  return `path${indexes.length === 1 ? "" : "s"} ${indexes.map((index) => index + 1).join(", ")}`;
}
