import type { Child } from "hono/jsx/dom";
import { NUMBER_FORMATS } from "../../tools/numbers.ts";
import type { Cell, Kind, Report, Row, Table } from "../../tools/report.ts";
import { isHost } from "../../tools/report-text.ts";
import { reporterOf, type ToolName } from "../../tools/reports.ts";
import { Breakable, Facts, Value, Who } from "./pictures/parts.tsx";
import type { Asked, Pictures } from "./pictures/picture.ts";
import { TEXTS } from "./texts.ts";
import { viewOf } from "./views.ts";

/** More numbers than this are below each other where there is little room. */
const FEW_NUMBERS = 3;

/** A table with more rows than this has no other one beside it. */
const LONG = 8;

interface ReportViewProps {
  tool: ToolName;
  /** As far as it is known; null if nothing is. */
  document: object | null;
  asked: Asked;
  isRunning?: boolean;
}

/** The report of a document, and the pictures of its tool. */
export function ReportView({ tool, document, asked, isRunning = false }: ReportViewProps) {
  const report = document && reporterOf(tool).report(document);
  const view = viewOf(tool);
  return (
    <>
      <Announcement report={report} waiting={isRunning && TEXTS.waiting} />
      {document && view.figure?.(document, asked)}
      {report && <Facts facts={report.facts} />}
      {(document && view.insteadOfTables?.(document, asked)) ??
        (report && (
          <Tables
            tables={report.tables}
            maxRows={view.maxRows}
            pictures={document && view.beside?.(document, asked)}
          />
        ))}
    </>
  );
}

interface AnnouncementProps {
  report: Pick<Report, "verdict" | "facts"> | null;
  /** Said as long as nothing is known; false if nothing is waited for. */
  waiting: string | false;
}

/** The line that screen readers announce: first that a tool is running, then the verdict or the first fact. */
export function Announcement({ report, waiting }: AnnouncementProps) {
  const { verdict, facts = [] } = report ?? {};
  const [fact] = facts;
  const [about, text] = verdict
    ? [`verdict ${verdict.tone}`, verdict.text]
    : waiting
      ? ["waiting", report === null ? waiting : ""]
      : ["unseen", fact ? `${fact.name}: ${fact.value}` : ""];
  return (
    <div class="announce" role="status">
      {text && (
        <p class={about}>
          <Breakable text={text} />
        </p>
      )}
    </div>
  );
}

/** How a table without a heading is shown. */
interface Extras {
  maxRows?: number | undefined;
  pictures?: Pictures | null | undefined;
}

/** One table, or several side by side. */
export function Tables({ tables, ...manner }: Extras & { tables: readonly Table[] }) {
  const [first] = tables;
  if (first?.heading === undefined) return first ? <Rows table={first} {...manner} /> : null;
  return (
    <div class="replies">
      {tables.map((table) => (
        <section class={table.rows.length > LONG ? "reply long" : "reply"}>
          <h2>{table.heading}</h2>
          <Rows table={table} />
          <Facts facts={table.facts ?? []} />
        </section>
      ))}
    </div>
  );
}

/** A column as the page shows it: its classes, its heading, and what is in a row. */
interface ShownColumn {
  readonly about: string;
  readonly heading: string;
  readonly isToned?: boolean | undefined;
  contentOf(row: Row, index: number): Child;
}

/** A table: first the number of a row, and who it is about with the notes, then the numbers, then the pictures. */
function Rows({ table, maxRows = table.rows.length, pictures }: Extras & { table: Table }) {
  const { rows } = table;
  if (rows.length === 0) return null;
  const columns = columnsOf(table);
  if (pictures) {
    const { heading } = pictures;
    columns.push({ about: "beside", heading, contentOf: (_, at) => pictures.rows[at] });
  }
  const has = (kind: string, count = 0) =>
    columns.filter(({ about }) => about === kind).length > count;
  const kind = has("host") ? `hops ${has("number", FEW_NUMBERS) ? "wide" : "slim"}` : "";
  const isSilent = ({ cells }: Row) => cells.some((cell) => isHost(cell) && cell.ip === null);
  return (
    <table class={`rows ${kind}`}>
      <thead>
        <tr>
          {columns.map(({ about, heading }) => (
            <th scope="col" class={about}>
              {heading}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {[...rows.entries()].slice(-maxRows).map(([at, row]) => (
          <tr key={at} class={isSilent(row) ? "hop silent" : "hop"}>
            {columns.map(({ about, heading, isToned, contentOf }) => (
              <td class={`${about} ${(isToned && row.tone) || ""}`} data-label={heading}>
                {contentOf(row, at)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The columns of a table without the notes, and without one that has neither a name nor a value. */
function columnsOf({ columns, rows }: Table): ShownColumn[] {
  const notesAt = columns.findIndex(({ kind }) => kind === "notes");
  const hasValues = (at: number) => rows.some(({ cells }) => cells[at] !== null);
  return [...columns.entries()]
    .filter(([at, { name, kind }]) => kind !== "notes" && (name !== "" || hasValues(at)))
    .sort(([, a], [, b]) => placeOf(a.kind) - placeOf(b.kind))
    .map(([at, { name, kind, isToned }]) => ({
      about: NUMBER_FORMATS[kind] ? "number" : kind,
      heading: name === "" ? TEXTS.note : `${name.charAt(0).toUpperCase()}${name.slice(1)}`,
      isToned,
      contentOf: ({ cells }) => contentOf(kind, cells[at] ?? null, cells[notesAt] ?? null),
    }));
}

/** The position comes first, then the host, then all other columns. */
const placeOf = (kind: Kind) => (kind === "position" ? 0 : kind === "host" ? 1 : 2);

function contentOf(kind: Kind, cell: Cell, notes: Cell): Child {
  if (isHost(cell)) return <Who host={cell} notes={Array.isArray(notes) ? notes : []} />;
  const format = NUMBER_FORMATS[kind];
  if (format) return typeof cell === "number" ? format(cell) : TEXTS.nothing;
  if (cell === null) return "";
  return kind === "value" ? <Value text={`${cell}`} /> : <Breakable text={`${cell}`} />;
}
