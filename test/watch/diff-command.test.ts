/** `sixscope diff`: two files, two files of lines, and lines of standard input. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import CHECK from "../../src/tools/check/example.json" with { type: "json" };
import MTU from "../../src/tools/mtu/example.json" with { type: "json" };
import { sixscopeHere } from "../lab/in-process.ts";
import { sixscopeProgram } from "../lab/program.ts";

const BROKEN = {
  ...CHECK,
  details: {
    ...CHECK.details,
    verdict: { code: "port-closed", text: "www.example.com refuses connections." },
  },
};
const OTHER = { ...CHECK, name: "other.example" };
const FAILED = {
  name: "gone.example",
  error: { code: "HOSTNAME_NOT_FOUND", message: "It does not exist.", details: {} },
};

/** The same site an hour later: times, and when it was measured. */
const LATER = {
  ...CHECK,
  steps: CHECK.steps.map((step) => ({ ...step, ms: step.ms + 3 })),
  details: { ...CHECK.details, startedAt: "2027-01-31T13:00:00.000Z" },
};

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-diff-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

const lines = (...documents: readonly object[]) =>
  documents.map((each) => `${JSON.stringify(each)}\n`).join("");

async function diff(before: string, after: string, ...args: readonly string[]) {
  const [one, other] = [join(folder, "before"), join(folder, "after")];
  writeFileSync(one, before);
  writeFileSync(other, after);
  return await sixscopeHere(["diff", one, other, ...args]);
}

test.each<[about: string, before: string, after: string, status: number, printed: RegExp]>([
  ["the same", lines(CHECK), lines(CHECK), 0, /^$/],
  ["the same an hour later", lines(CHECK), lines(LATER), 0, /^$/],
  ["over several lines", JSON.stringify(CHECK, null, 2), JSON.stringify(LATER, null, 2), 0, /^$/],
  ["another verdict", lines(CHECK), lines(BROKEN), 1, /^The verdict .*refuses connections\.\n$/],
  [
    "files of lines, by name",
    lines(CHECK, OTHER),
    lines(OTHER, BROKEN),
    1,
    /^www\.example\.com: The verdict .*\n$/,
  ],
  ["an error that stays", lines(FAILED, OTHER), lines(OTHER, FAILED), 0, /^$/],
  ["a name in one file alone", lines(CHECK, OTHER), lines(OTHER), 1, /^$/],
  ["two documents of one name", lines(CHECK, BROKEN), lines(CHECK, BROKEN), 2, /^$/],
  ["an error that is none", lines(CHECK), '{"name":"www.example.com","error":null}', 2, /^$/],
  ["two tools", lines(CHECK), lines(MTU), 2, /^$/],
  ["no document", lines(CHECK), "{}", 2, /^$/],
  ["a document that only looks like one", lines(CHECK), '{"steps":5}', 2, /^$/],
  ["no JSON", lines(CHECK), "hello", 2, /^$/],
  ["nothing", lines(CHECK), "", 2, /^$/],
])("%s", async (_, before, after, status, printed) => {
  const result = await diff(before, after);
  expect(result.stdout).toMatch(printed);
  expect(result.status).toBe(status);
});

test("one result each of two targets is compared, with a word about that", async () => {
  const files = [CHECK, OTHER].map((document, at) => {
    const path = join(folder, `one-${at}`);
    writeFileSync(path, lines(document));
    return path;
  });
  const child = Bun.spawn([...(await sixscopeProgram()), "diff", "--json", ...files], {
    stdout: "pipe",
    stderr: "pipe",
    env: {},
  });
  expect(await new Response(child.stdout).json()).toEqual({ differences: [] });
  expect(await new Response(child.stderr).text()).toContain(
    'the two are about "www.example.com" and "other.example"',
  );
  expect(await child.exited).toBe(0);
});

test("a file that is not there", async () => {
  const { status } = await sixscopeHere(["diff", join(folder, "none"), join(folder, "nothing")]);
  expect(status).toBe(2);
});

test("--json prints the differences as data", async () => {
  const { stdout, status } = await diff(lines(CHECK), lines(BROKEN), "--json");
  expect(JSON.parse(stdout)).toMatchObject({ differences: [{ kind: "verdict" }] });
  expect(status).toBe(1);
  const same = await diff(lines(CHECK), lines(LATER), "--json");
  expect(JSON.parse(same.stdout)).toEqual({ differences: [] });
});

/** What `sixscope diff -` answers to these lines. */
async function diffLines(text: string) {
  const child = Bun.spawn([...(await sixscopeProgram()), "diff", "-"], {
    stdin: Buffer.from(text),
    stdout: "pipe",
    stderr: "pipe",
    env: {},
  });
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return {
    answers: stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line)),
    stderr,
    status,
  };
}

test("with -, each line has an answer", async () => {
  const pairs = [
    { before: CHECK, after: LATER },
    { before: CHECK, after: BROKEN },
  ];
  const { answers, stderr, status } = await diffLines(lines(...pairs));
  expect(answers.map(({ differences }) => differences.length)).toEqual([0, 1]);
  expect([stderr, status]).toEqual(["", 1]);
});

test("a document whose parts are none is refused in a sentence", async () => {
  const odd = [{ locations: 5 }, { hops: null }, { steps: 5 }, { records: 1 }, { interfaces: [] }];
  const { stderr, status } = await diffLines(
    lines(...odd.map((one) => ({ before: one, after: one }))),
  );
  expect(status).toBe(2);
  expect(stderr.trim().split("\n")).toEqual(
    odd.map(() => expect.stringContaining("is not a result of a tool")),
  );
});

test("with -, a line that is wrong is told, and the others are answered", async () => {
  const { answers, stderr, status } = await diffLines(
    `nonsense\n${lines({ before: CHECK, after: CHECK })}`,
  );
  expect(answers).toEqual([{ differences: [] }]);
  expect(stderr).toContain("is not a result of a tool");
  expect(status).toBe(2);
});

test.each([[["diff", "a"]], [["diff", "-", "a"]], [["diff"]]])("wrong usage: %j", async (args) => {
  expect((await sixscopeHere(args)).status).toBe(2);
});
