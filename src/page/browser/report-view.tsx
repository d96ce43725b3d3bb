import type { Child } from "hono/jsx/dom";
import { NUMBER_FORMATS } from "../../tools/numbers.ts";
import type { Cell, Column, Kind, Row, Table } from "../../tools/report.ts";
import { isHost } from "../../tools/report-text.ts";
import { reporterOf, type ToolName } from "../../tools/reports.ts";
import { capitalized } from "../../util/text.ts";
import { Answer } from "./answer.tsx";
import { Breakable, Facts, Value, Who } from "./pictures/parts.tsx";
import type { Asked } from "./pictures/picture.ts";
import { viewOf } from "./views.ts";

interface ReportViewProps {
  tool: ToolName;
  /** The document so far; null if nothing is known. */
  document: object | null;
  asked: Asked;
  /** The request, as the heading while there is no answer. */
  title: string;
  isRunning: boolean;
  /** The text while nothing is known; false if no answer is awaited. */
  waiting: string | false;
  /** The level of the heading with the answer. */
  level: 1 | 3;
}

/** The answer of a document, the pictures of its tool, and the report. */
export function ReportView(props: ReportViewProps) {
  const { tool, document, asked, isRunning, ...answer } = props;
  const report = document && reporterOf(tool).report(document);
  const view = viewOf(tool);
  const facts = report && <Facts facts={report.facts} />;
  const picture = document && view.insteadOfTables?.(document, asked);
  // Below the hops, facts that come at the end do not push them down. They come last, so that hops do not push the facts.
  const areLast = !picture && report?.tables.some(hasHosts);
  const { verdict: stated } = ((document as { details?: object } | null)?.details ?? {}) as {
    readonly verdict?: object;
  };
  return (
    <>
      <Answer {...{ ...answer, report, stated, isRunning }} />
      {document && view.figure?.(document, asked)}
      {!areLast && !view.hasOwnFacts && facts}
      {picture ??
        (report && (
          <Folded label={view.folded}>
            <Tables tables={report.tables} maxRows={view.maxRows} />
          </Folded>
        ))}
      {areLast && !isRunning && facts}
      {document && props.level === 3 && view.more && (
        <div class="more">{view.more(document, asked)}</div>
      )}
    </>
  );
}

/** Content that a press on the label opens; without a label, it is open. */
function Folded({ label, children }: { label: string | undefined; children: Child }) {
  if (label === undefined) return <>{children}</>;
  return (
    <div class="more">
      <details>
        <summary>{label}</summary>
        {children}
      </details>
    </div>
  );
}

/** How a table without a heading is shown. */
interface Extras {
  maxRows?: number | undefined;
}

/** One table, or several side by side. */
export function Tables({ tables, ...manner }: Extras & { tables: readonly Table[] }) {
  const [first] = tables;
  if (first?.heading === undefined) return first ? <Rows table={first} {...manner} /> : null;
  return (
    <div class="replies">
      {tables.map((table) => (
        <section class="reply">
          <h2>{table.heading}</h2>
          <Rows table={table} />
          <Facts facts={table.facts ?? []} />
        </section>
      ))}
    </div>
  );
}

/** A table: first the number of a row, then its host with the notes, then the numbers. */
function Rows({ table, maxRows = table.rows.length }: Extras & { table: Table }) {
  const { rows, columns } = table;
  if (rows.length === 0) return null;
  const notesAt = columns.findIndex(({ kind }) => kind === "notes");
  const isSilent = ({ cells }: Row) => cells.some((cell) => isHost(cell) && cell.ip === null);
  const shown = shownColumns(table);
  return (
    <table class={hasHosts(table) ? "rows hops" : "rows"}>
      <thead>
        <tr>
          {shown.map(([, column]) => (
            <th scope="col" class={classOf(column)}>
              {headingOf(column)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {[...rows.entries()].slice(-maxRows).map(([index, row]) => (
          <tr key={index} class={isSilent(row) ? "hop silent" : "hop"}>
            {shown.map(([at, column]) => (
              <td
                class={`${classOf(column)} ${(column.isToned && row.tone) || ""}`}
                data-label={headingOf(column)}
              >
                {contentOf(column.kind, row.cells[at] ?? null, row.cells[notesAt] ?? null)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const hasHosts = ({ columns }: Table) => columns.some(({ kind }) => kind === "host");

/** The columns without the notes, and without one that has neither a name nor a value: first position, then host. */
function shownColumns({ columns, rows }: Table): [at: number, column: Column][] {
  const hasValues = (at: number) => rows.some(({ cells }) => cells[at] !== null);
  const placeOf = ({ kind }: Column) => (kind === "position" ? 0 : kind === "host" ? 1 : 2);
  return [...columns.entries()]
    .filter(([at, { name, kind }]) => kind !== "notes" && (name !== "" || hasValues(at)))
    .sort(([, a], [, b]) => placeOf(a) - placeOf(b));
}

const classOf = ({ kind, isExtra, isDetail }: Column) =>
  `${NUMBER_FORMATS[kind] ? "number" : kind} ${isExtra ? "extra" : isDetail ? "detail" : ""}`;

const headingOf = ({ name }: Column) => (name === "" ? "Note" : capitalized(name));

function contentOf(kind: Kind, cell: Cell, notes: Cell): Child {
  if (isHost(cell)) return <Who host={cell} notes={Array.isArray(notes) ? notes : []} />;
  const format = NUMBER_FORMATS[kind];
  // An unknown number is shown as a dash.
  if (format) return typeof cell === "number" ? format(cell) : "–";
  if (cell === null) return "";
  return kind === "value" ? <Value text={`${cell}`} /> : <Breakable text={`${cell}`} />;
}
