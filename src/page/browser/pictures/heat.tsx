import type { Child } from "hono/jsx/dom";
import { lostOf } from "../../../tools/ledger.ts";
import type { MtrDocument } from "../../../tools/mtr/report.ts";
import type { MtrHop, MtrRound } from "../../../tools/mtr/result.ts";
import { formatMs } from "../../../tools/numbers.ts";
import { cellsOf, KINDS, type Kind, roundsPerCell, timesOf } from "./heat-cells.ts";
import type { View } from "./picture.ts";
import { segmentsOf, tintsOf } from "./segments.ts";
import { markOf, Name, Rail } from "./standing-way.tsx";

/** The width of a cell with its gap, and the height of a row, in pixels. */
const CELL = 7;
const ROW = 36;

const timeText = (ms: number | null) => (ms === null ? "–" : formatMs(ms));

/** The most important numbers; a phone shows those that are not `extra`. */
const NUMBERS: readonly [name: string, kind: string, content: (hop: MtrHop) => Child][] = [
  ["Lost", "number", lostText],
  ["Best", "number extra soft", ({ min }) => timeText(min)],
  ["Median", "number", ({ p50 }) => timeText(p50)],
  ["Slow 5 %", "number extra soft", ({ p95 }) => timeText(p95)],
];

/** The lost probes among those whose fate is known; a hop that never answers has lost none. */
function lostText(hop: MtrHop): Child {
  const { ip, sent, unknown, cause } = hop;
  if (ip === null || sent === unknown) return "–";
  if (cause === null) return "0";
  if (cause === "replies") return <span class="soft">ignores</span>;
  return (
    <span class={cause === "path" ? "bad" : "warn"}>
      <b>{lostOf(hop)}</b> of {sent - unknown}
    </span>
  );
}

/** The hops as those of a way, with the median as their time. A hop that has not answered while later ones have has no row. */
function wayOf({ hops }: MtrDocument) {
  const rows = new Map(hops.map((hop) => [hop.hop, hop]));
  return Array.from({ length: hops.at(-1)?.hop ?? 0 }, (_, at) => {
    const row = rows.get(at + 1);
    return { ip: null, hostname: null, ...row, hop: at + 1, rtt: row?.p50 ?? null, row };
  });
}

/** The way, and beside each hop its rounds as a strip of cells, and numbers. */
export const heatView: View<MtrDocument> = {
  folded: "All eleven numbers",
  figure(document, { all, values, parts, isRunning }) {
    const { rounds: told, hops, details } = document;
    if (hops.length === 0) return null;
    const rounds = isRunning ? Math.max(told, Number(values["rounds"])) : told;
    const { times } = timesOf(parts as readonly MtrRound[]);
    const tints = tintsOf(all.map(wayOf));
    const now = isRunning ? told / roundsPerCell(rounds) : 0;
    // A document from a link or a file has no rounds.
    const strip = (content: Child) => <td class="strip soft">{parts.length > 0 && content}</td>;
    const rows = segmentsOf(wayOf(document), tints).flatMap(({ hops, ...network }) =>
      hops.map((hop, at) => ({ ...network, hop, isFirst: at === 0 })),
    );
    return (
      <table class="heat wide">
        <thead>
          <tr>
            <td class="network" />
            <td class="railed" />
            <td />
            <th>Hop</th>
            {strip(
              <>
                Each cell a round: stronger is slower, <span class="bad">hollow is lost</span>
              </>,
            )}
            {NUMBERS.map(([name, kind]) => (
              <th class={kind}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, tint, hop, isFirst }) => {
            const { row } = hop;
            const isLast = hop.hop === hops.at(-1)?.hop;
            const mark = markOf(hop, isLast && details.reached === true);
            const label = name ?? (hop.ip !== null && tints.size > 0 && "not known");
            const above = hop.hop === 1 ? null : "whole";
            const cells = row && cellsOf(times.get(hop.hop) ?? [], row, told, rounds);
            return (
              <tr key={hop.hop}>
                <td class="network soft">{isFirst && label}</td>
                <td class="railed">
                  <Rail {...{ tint, isFirst, mark, above }} below={isLast ? null : "whole"} />
                </td>
                <td class="number soft">{hop.hop}</td>
                <td>{row ? <Name hop={row} /> : <span class="soft">…</span>}</td>
                {strip(
                  cells && <Strip {...{ cells, now }} isDoubtful={row?.cause === "unclear"} />,
                )}
                {NUMBERS.map(([, kind, content]) => (
                  <td class={kind}>{row ? content(row) : "–"}</td>
                ))}
              </tr>
            );
          })}
        </tbody>
        <tfoot>
          <tr>
            <td class="network" />
            <td class="railed" />
            <td />
            <td />
            {strip(<Axis {...{ told, rounds, isRunning }} />)}
            <td class="number soft">milliseconds</td>
          </tr>
        </tfoot>
      </table>
    );
  },
};

/** Strokes that keep their width if there are many rounds. */
const STROKE = {
  "stroke-width": 2,
  "stroke-linecap": "round",
  "vector-effect": "non-scaling-stroke",
} as const;

/** The cells that are an outline or a dot; the others are filled. */
const STROKES: Partial<Record<Kind, string>> = {
  ahead: "var(--line)",
  ignored: "var(--soft)",
  lost: "var(--bad)",
};

function outlineOf(kind: Kind, x: number): string {
  if (kind === "unknown") return "";
  if (kind === "lost") return `M${x + 1} 8h4v20h-4z`;
  return kind in STROKES ? `M${x + 3} 18h0` : `M${x} 9h6v18h-6z`;
}

/** The cells of a hop: one path for each kind, so that a hundred rounds of thirty hops are few elements. */
function Strip(props: { cells: readonly Kind[]; now: number; isDoubtful: boolean }) {
  const { cells, now, isDoubtful } = props;
  const width = cells.length * CELL;
  const strokeOf = (kind: Kind) =>
    kind === "lost" && isDoubtful ? "var(--doubt)" : (STROKES[kind] ?? "none");
  const outlines = (kind: Kind) =>
    cells.map((each, at) => (each === kind ? outlineOf(kind, at * CELL) : "")).join("");
  return (
    <svg width={width} aria-hidden="true">
      <svg
        {...{ width: "100%", height: ROW, viewBox: `0 0 ${width} ${ROW}` }}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {KINDS.map((kind) => (
          <path
            class={kind}
            {...STROKE}
            fill={kind in STROKES ? "none" : `var(--${kind})`}
            stroke={strokeOf(kind)}
            d={outlines(kind)}
          />
        ))}
      </svg>
      {now > 0 && (
        <rect x={`${(now / cells.length) * 100}%`} width="2" height="100%" fill="var(--accent)" />
      )}
    </svg>
  );
}

/** The numbers of the first, the current and the last round, unless they are too close. */
function Axis({ told, rounds, isRunning }: { told: number; rounds: number; isRunning: boolean }) {
  if (rounds === 0) return null;
  const hasNow = isRunning && told > 0;
  const share = hasNow ? told / rounds : 0.5;
  const text = (round: number, at: number, anchor: string, fill = "var(--soft)") => (
    <text x={`${at * 100}%`} y="23" text-anchor={anchor}>
      <tspan fill={fill}>{round}</tspan>
    </text>
  );
  return (
    <svg width={Math.ceil(rounds / roundsPerCell(rounds)) * CELL} aria-hidden="true">
      {share > 0.1 && (told > 1 || !hasNow) && text(1, 0, "start")}
      {hasNow && text(told, share, "middle", "var(--accent)")}
      {share < 0.9 && rounds > 1 && text(rounds, 1, "end")}
    </svg>
  );
}
