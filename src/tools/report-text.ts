import type { Cell, Column, Fact, Host, Kind, Report, Row, Table, Tone } from "./report.ts";

/** The style of a part of a line. */
export type Style = "bold" | "dim" | "red" | "green" | "yellow";

/** A part of a line and its style. */
export type Part = string | readonly [style: Style, text: string];

/** A line of parts. */
export type Line = readonly Part[];

/** The style of a tone. */
export const STYLES: Readonly<Record<Tone, Style>> = { good: "green", warn: "yellow", bad: "red" };

type Notation = readonly [width: number, format: (value: number) => string];

/** The width and the notation of numbers by kind; texts are as wide as their widest. */
const NUMBERS: Readonly<Partial<Record<Kind, Notation>>> = {
  position: [3, String],
  time: [12, (ms) => `${ms.toFixed(3)} ms`],
  // At most five characters, up to 99,999 ms.
  ms: [5, (ms) => ms.toFixed(ms < 99.995 ? 2 : ms < 999.95 ? 1 : 0)],
  percent: [4, (percent) => `${wholePercent(percent)}%`],
  count: [4, String],
  bytes: [11, (bytes) => `${bytes} bytes`],
};

/** The parts that a table leaves out where it is wider than the screen, step by step. */
const STEPS = [
  ["extra"],
  ["extra", "addresses"],
  ["extra", "details"],
  ["extra", "details", "addresses"],
] as const;
type Dropped = (typeof STEPS)[number][number];

/** Characters to which cells are padded at most: the longest name has 1,004, and padding to longer texts fills the memory. */
export const MAX_WIDTH = 1_004;

const NO_REPLY = "no reply";

/** The indent of the notes below a row; one character where an address would not fit behind it. */
const INDENT = "      ";
const LONGEST_ADDRESS = 39;

/**
 * The lines of a table: its columns, then its rows. Where they are wider than `columns` characters, extra
 * columns are left out, then addresses that have a name, then details; notes on a row go below it. If they are
 * still wider, names go below their rows too, or all hosts.
 */
export function tableLines(table: Table, columns = Number.POSITIVE_INFINITY): Line[] {
  let { lines, width, hosts } = layoutOf(table, []);
  for (const dropped of STEPS) {
    if (width < columns) break;
    ({ lines, width, hosts } = layoutOf(table, dropped));
  }
  if (width >= columns && hosts > 0) {
    return tableLines(hostsBelow(table, columns - 1 - (width - hosts), columns - 2), columns);
  }
  const last = table.columns.at(-1) as Column;
  return lines.flatMap((line, at) => {
    const row = table.rows[at - 1];
    const notes = last.name === "" ? notesOf(row?.cells.at(-1)) : [];
    if (notes.length === 0) return [line];
    const beside = `  ${notes.join("  ")}`;
    const style = styleOf(row, last);
    const shown = line.slice(0, line.findLastIndex((part) => textOf([part]).trim() !== "") + 1);
    const { length } = textOf(shown);
    const end = [width, length].find((each) => each + beside.length < columns);
    if (end !== undefined) return [[...shown, "".padEnd(end - length), styled(style, beside)]];
    const indent = columns < INDENT.length + LONGEST_ADDRESS + 1 ? " " : INDENT;
    const below = notes.flatMap((note) => wrapped(note, columns, indent.length));
    return [line, ...below.map((text) => [indent, styled(style, text)])];
  });
}

/**
 * The table with each name longer than `room` below its row. If an address is longer too, all hosts go below their
 * rows: the name, and the address where the name is longer than `width` or missing.
 */
function hostsBelow({ columns, rows, ...others }: Table, room: number, width: number): Table {
  const at = columns.findIndex(({ kind }) => kind === "host");
  const hasRoom = Math.max(NO_REPLY.length, hostWidth(rows, at)) <= room;
  const below = rows.map((row): Row => {
    const { ip, hostname } = row.cells[at] as Host;
    const isLong = hostname !== null && hostname.length > room;
    const cells: readonly Cell[] = hasRoom
      ? row.cells.with(at, isLong ? { ip, hostname: null } : { ip, hostname })
      : row.cells.toSpliced(at, 1);
    const isWhole = hostname !== null && hostname.length <= width;
    const hosts = hasRoom ? [isLong && hostname] : [!isWhole && (ip ?? NO_REPLY), hostname];
    const notes = [...hosts.filter((host) => typeof host === "string"), ...notesOf(cells.at(-1))];
    return { ...row, cells: [...cells.slice(0, -1), notes] };
  });
  return { ...others, columns: hasRoom ? columns : columns.toSpliced(at, 1), rows: below };
}

/** The end of a report: its title, its verdict, and its facts. */
export function endLines({ title, verdict, facts }: Report, columns?: number): Line[] {
  return [
    ...textLines("bold", title, columns),
    ...(verdict === null ? [] : textLines(STYLES[verdict.tone], verdict.text, columns)),
    ...factLines(facts, columns),
  ];
}

/** Tables below each other, each with its heading and its facts, and an empty line behind it. */
export function tablesLines(tables: readonly Table[], columns?: number): Line[] {
  return tables.flatMap((table): Line[] => {
    const lines = [
      ...(table.heading === undefined ? [] : textLines("bold", table.heading, columns)),
      ...(table.rows.length > 0 ? tableLines(table, columns) : []),
      ...factLines(table.facts ?? [], columns),
    ];
    return lines.length > 0 ? [...lines, []] : [];
  });
}

/** All lines of a report, tables first. */
export function reportLines(report: Report, columns?: number): Line[] {
  return [...tablesLines(report.tables, columns), ...endLines(report, columns)];
}

/** A report as text without styles, to paste elsewhere. */
export const reportText = (report: Report): string => plainText(reportLines(report));

/** Lines without their styles. */
export function plainText(lines: readonly Line[]): string {
  return lines.map((line) => `${textOf(line).trimEnd()}\n`).join("");
}

/** The lines of a table without the dropped parts, their width, and that of the hosts. */
function layoutOf({ columns, rows }: Table, dropped: readonly Dropped[]) {
  const isShown = ({ name, isExtra, isDetail }: Column) =>
    name !== "" &&
    !(isExtra && dropped.includes("extra")) &&
    !(isDetail && dropped.includes("details"));
  const shown = [...columns.entries()].filter(([, column]) => isShown(column));
  const textIn = ({ cells }: Row, [at, { kind }]: (typeof shown)[number]) =>
    cellText(kind, cells[at] ?? null, dropped.includes("addresses") ? null : hostWidth(rows, at));
  const texts = [
    shown.map(([, { name }]) => name),
    ...rows.map((row) => shown.map((column) => textIn(row, column))),
  ];
  const widths = shown.map(([, { kind }], at) =>
    Math.max(NUMBERS[kind]?.[0] ?? 0, ...texts.map((row) => row[at]?.length ?? 0)),
  );
  const gaps = shown.map(([, { kind }], at) => (at === 0 ? "" : NUMBERS[kind] ? " " : "  "));
  const lines = texts.map((row, index) =>
    shown.map(([, column], at): Part => {
      const text = row[at] ?? "";
      const width = widths[at] ?? 0;
      const padded = NUMBERS[column.kind]
        ? text.padStart(width)
        : text.padEnd(at === shown.length - 1 ? 0 : Math.min(width, MAX_WIDTH));
      return styled(styleOf(rows[index - 1], column), `${gaps[at]}${padded}`);
    }),
  );
  const hosts = widths[shown.findIndex(([, { kind }]) => kind === "host")] ?? 0;
  return { lines, width: widths.reduce((sum, width) => sum + width, gaps.join("").length), hosts };
}

const styled = (style: Style | null, text: string): Part => (style === null ? text : [style, text]);

/** The style of a column in a row; without a row, of its title. */
function styleOf(row: Row | undefined, { kind, isToned }: Column): Style | null {
  if (row === undefined) return "dim";
  const { tone } = row;
  if (isToned) return tone === undefined ? null : STYLES[tone];
  return kind === "position" || kind === "notes" ? "dim" : null;
}

/** True if a cell has a host. */
export function isHost(cell: Cell | undefined): cell is Host {
  return typeof cell === "object" && cell !== null && "ip" in cell;
}

/** The characters of the widest address in a column. */
function hostWidth(rows: readonly Row[], at: number): number {
  const hosts = rows.map(({ cells }) => cells[at]).filter(isHost);
  return Math.max(0, ...hosts.map(({ ip }) => ip?.length ?? 0));
}

/** The texts in a cell. */
function notesOf(cell: Cell = null): readonly string[] {
  if (typeof cell === "string") return [cell];
  return typeof cell !== "object" || cell === null || isHost(cell) ? [] : cell;
}

/** @param addressWidth the characters of an address; null if a name replaces its address */
function cellText(kind: Kind, cell: Cell, addressWidth: number | null): string {
  if (cell === null) return kind === "bytes" ? "unknown" : "";
  if (isHost(cell)) {
    const { ip, hostname } = cell;
    if (ip === null) return NO_REPLY;
    if (hostname === null) return ip;
    if (addressWidth === null) return hostname;
    return `${ip.padEnd(Math.min(addressWidth, MAX_WIDTH))}  ${hostname}`;
  }
  if (typeof cell !== "number") return notesOf(cell).join("  ");
  return (NUMBERS[kind]?.[1] ?? String)(cell);
}

/** A percentage without decimals, never 0 or 100 if that is not exact. */
const wholePercent = (percent: number) =>
  percent === 0 || percent === 100 ? percent : Math.min(99, Math.max(1, Math.round(percent)));

const textLines = (style: Style, text: string, columns?: number) =>
  wrapped(text, columns).map((row): Line => [[style, row]]);

function factLines(facts: readonly Fact[], columns?: number): Line[] {
  const width = Math.max(0, ...facts.map(({ name }) => name.length)) + 2;
  return facts.flatMap(({ name, value, tone }) =>
    wrapped(value, columns, width).map((text, at) => [
      styled("dim", (at === 0 ? name : "").padEnd(width)),
      styled(tone === undefined ? null : STYLES[tone], text),
    ]),
  );
}

/** The words of a text in lines of `columns` characters, less an indent; a longer word has a line of its own. */
export function wrapped(text: string, columns = Number.POSITIVE_INFINITY, indent = 0): string[] {
  if (columns === Number.POSITIVE_INFINITY) return [text];
  const width = Math.max(1, columns - 1 - indent);
  const rows = text.match(new RegExp(`.{1,${width}}(?: |$)|\\S+`, "g")) ?? [];
  return rows.map((row) => row.trim());
}

const textOf = (line: Line) =>
  line.map((part) => (typeof part === "string" ? part : part[1])).join("");
