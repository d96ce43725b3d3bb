/** Reports as text for terminals of any width, and for the clipboard. */
import { describe, expect, test } from "bun:test";
import type { Report, Table } from "../../src/tools/report.ts";
import { type Line, reportLines, reportText, tableLines } from "../../src/tools/report-text.ts";
import { reporterOf, type ToolName } from "../../src/tools/reports.ts";
import { COMPARISON, DNS, MTR, MTU, PATHS, PING, STOPPED_TRACE, TRACE } from "./documents.ts";

const plain = (line: Line) =>
  line
    .map((part) => (typeof part === "string" ? part : part[1]))
    .join("")
    .trimEnd();
const texts = (lines: readonly Line[]) => lines.map(plain);
const stylesOf = (line: Line | undefined) =>
  (line ?? []).flatMap((part) => (typeof part === "string" ? [] : [part[0]]));

const REPORTS = (
  [
    ["ping", PING],
    ["trace", TRACE],
    ["trace", STOPPED_TRACE],
    ["trace", PATHS],
    ["mtr", MTR],
    ["mtu", MTU],
    ["dns", DNS],
    ["dns", COMPARISON],
  ] satisfies [ToolName, object][]
).map(
  ([tool, document]) => [tool, reporterOf(tool as ToolName).report(document as object)] as const,
);

describe.each([200, 80, 40])("in %d columns", (columns) => {
  test.each(REPORTS)("no line of %s is wider", (_, report) => {
    const lines = texts(reportLines(report, columns));
    expect(lines.filter((line) => line.length >= columns)).toEqual([]);
  });

  test.each(REPORTS)("nothing that is said of a row of %s is lost", (_, report) => {
    const words = (lines: readonly string[]) => lines.join(" ").split(/\s+/);
    const shown = words(texts(reportLines(report, columns)));
    const notes = report.tables.flatMap(({ columns: all, rows }) =>
      all.at(-1)?.name === "" ? rows.flatMap(({ cells }) => cells.at(-1) ?? []) : [],
    );
    for (const word of words([...notes.map(String), report.verdict?.text ?? ""])) {
      expect(shown).toContain(word);
    }
  });
});

test("an unbroken value has a line of its own where it is longer than a line", () => {
  const facts = [
    { name: "Bits", value: `${"0".repeat(50)} more` },
    { name: "As a number", value: "one 22 333" },
  ];
  const report: Report = { title: "t", verdict: null, facts, tables: [], isAnswered: true };
  expect(texts(reportLines(report, 22))).toEqual([
    "t",
    `Bits         ${"0".repeat(50)}`,
    "             more",
    "As a number  one 22",
    "             333",
  ]);
});

test("a title, a verdict and a heading are broken between words", () => {
  const report: Report = {
    title: "www.example.com (2001:db8::80)",
    verdict: { tone: "good", text: "The target replied to all 4 requests." },
    facts: [],
    tables: [{ heading: "one of two resolvers", columns: [], rows: [] }],
    isAnswered: true,
  };
  const lines = reportLines(report, 18);
  expect(texts(lines)).toEqual([
    ...["one of two", "resolvers", ""],
    ...["www.example.com", "(2001:db8::80)"],
    ...["The target", "replied to all 4", "requests."],
  ]);
  expect(lines.map((line) => stylesOf(line).join())).toEqual([
    ...["bold", "bold", ""],
    ...["bold", "bold"],
    ...["green", "green", "green"],
  ]);
  expect(reportText(report)).toBe(
    "one of two resolvers\n\nwww.example.com (2001:db8::80)\nThe target replied to all 4 requests.\n",
  );
});

describe("a table", () => {
  const name = "a-rather-long-name.example.net";
  const table = (notes: readonly string[] = []): Table => ({
    columns: [
      { name: "hop", kind: "position" },
      { name: "loss", kind: "percent", isToned: true },
      { name: "last", kind: "ms", isDetail: true },
      { name: "avg", kind: "ms" },
      { name: "p95", kind: "ms", isExtra: true },
      { name: "address", kind: "host" },
      { name: "", kind: "notes" },
    ],
    rows: [
      { cells: [1, 0, 1.234, 99.9951, 1234.56, { ip: "2001:db8:1::1", hostname: name }, notes] },
      { cells: [2, 0.1, null, null, null, { ip: null, hostname: null }, []] },
      { cells: [3, 99.9, 0, 0.5, 1, { ip: "2001:db8:3::33", hostname: null }, []], tone: "bad" },
    ],
  });
  const at = (columns?: number, notes?: readonly string[]) =>
    texts(tableLines(table(notes), columns));

  test("has times in five characters, and loss in whole percent that does not lie", () => {
    expect(at()).toEqual([
      "hop loss  last   avg   p95  address",
      `  1   0%  1.23 100.0  1235  2001:db8:1::1   ${name}`,
      "  2   1%                    no reply",
      "  3  99%  0.00  0.50  1.00  2001:db8:3::33",
    ]);
  });

  test("loses extra columns first, then addresses that have a name, then details", () => {
    const all = at()[1] as string;
    expect(at(all.length + 1)[1]).toBe(all);
    const fewer = `  1   0%  1.23 100.0  2001:db8:1::1   ${name}`;
    expect(at(all.length)[1]).toBe(fewer);
    expect(at(fewer.length)[1]).toBe(`  1   0%  1.23 100.0  ${name}`);
    expect(at(fewer.length)[3]).toBe("  3  99%  0.00  0.50  2001:db8:3::33");
    expect(at(`  1   0%  1.23 100.0  ${name}`.length)[1]).toBe(`  1   0% 100.0  ${name}`);
  });

  test("puts a name below its row where only its address fits, and all hosts where one does not", () => {
    expect(at(40)).toEqual([
      "hop loss  last   avg  address",
      "  1   0%  1.23 100.0  2001:db8:1::1",
      ` ${name}`,
      "  2   1%              no reply",
      "  3  99%  0.00  0.50  2001:db8:3::33",
    ]);
    expect(at(24)).toEqual([
      "hop loss  last   avg",
      "  1   0%  1.23 100.0",
      " 2001:db8:1::1",
      ` ${name}`,
      "  2   1%  no reply",
      "  3  99%  0.00  0.50",
      " 2001:db8:3::33",
    ]);
  });

  test("says more of a row behind it where there is room, below it otherwise", () => {
    const notes = ["on eth0", "also 2001:db8:1::2"];
    const said = "on eth0  also 2001:db8:1::2";
    const whole = `${at()[1]}  ${said}`;
    expect(at(undefined, notes)[1]).toBe(whole);
    expect(at(whole.length + 1, notes)[1]).toBe(whole);
    expect(at(whole.length, notes).slice(1, 4)).toEqual([
      at()[1] as string,
      "      on eth0",
      "      also 2001:db8:1::2",
    ]);
  });

  test("shows what is said of rows of different widths below each other", () => {
    const rows = [
      { cells: [1, 0, 0, 0, 0, { ip: "2001:db8::1", hostname: null }, ["on eth0"]] },
      { cells: [2, 0, 0, 0, 0, { ip: "2001:db8:1111::2", hostname: null }, ["on eth1"]] },
    ];
    const lines = texts(tableLines({ ...table(), rows }));
    expect(lines[1]?.indexOf("on eth0")).toBe(lines[2]?.indexOf("on eth1"));
  });

  test("has its titles and numbers dim, and the tone of a row where it belongs", () => {
    const lines = tableLines(table(["on eth0"]));
    expect(new Set(stylesOf(lines[0]))).toEqual(new Set(["dim"]));
    expect(stylesOf(lines[1])).toEqual(["dim", "dim"]);
    expect(stylesOf(lines[3])).toEqual(["dim", "red"]);
  });
});

test("a column of sizes says what is not known", () => {
  const [, first, second] = texts(
    tableLines({
      columns: [{ name: "largest", kind: "bytes" }],
      rows: [{ cells: [65_536] }, { cells: [null] }],
    }),
  );
  expect([first, second]).toEqual(["65536 bytes", "    unknown"]);
});

test("one long text among many rows does not fill the memory", () => {
  const columns: Table["columns"] = [
    { name: "a", kind: "text" },
    { name: "address", kind: "host" },
    { name: "b", kind: "text" },
  ];
  const row = (text: string) => ({ cells: [text, { ip: text, hostname: text }, text] });
  const rows = [row("x".repeat(100_000)), ...Array.from({ length: 1_000 }, () => row("short"))];
  const characters = texts(tableLines({ columns, rows })).join("").length;
  expect(characters).toBeLessThan(5_000_000);
});
