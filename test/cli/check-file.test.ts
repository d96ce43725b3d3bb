/** Many names in one command: a line for each, limits that are waited out, and the exit status. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readNames } from "../../src/cli/check-file.ts";
import CHECK from "../../src/tools/check/example.json" with { type: "json" };
import { sixscopeHere } from "../lab/in-process.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { sixscope } from "../lab/service.ts";

const { verdict } = CHECK.details;

/** What the service answers about a name: its document and status. */
const ANSWERS: Readonly<Record<string, readonly [status: number, document: object]>> = {
  "broken.example": [
    200,
    {
      ...{ ...CHECK, name: "broken.example" },
      details: {
        ...CHECK.details,
        verdict: { ...verdict, code: "port-closed", answer: "no", text: "It is closed." },
      },
    },
  ],
  "bad name": [
    400,
    {
      error: {
        code: "INVALID_HOSTNAME",
        message: '"bad name" is not a valid hostname.',
        details: { hostname: "bad name", reason: "it has a space" },
      },
    },
  ],
  "strange.example": [200, { nothing: "that sixscope says" }],
};

const limited = (code: string, details: object) =>
  Response.json({ error: { code, message: "Later.", details } }, { status: 429 });

let server: Bun.Server<undefined>;
let folder: string;
/** The names that were asked for, in order. */
let asked: string[] = [];
/** How many requests are refused before one is answered, by code. */
let refusals: Response[] = [];
/** Requests wait for each other until so many run. */
let wanted = 1;
let running = 0;
/** Gets SIGINT when it asks about the endless name. */
let child: Bun.Subprocess | undefined;
let mostRunning = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-names-"));
  server = Bun.serve({
    hostname: "::1",
    port: 0,
    async fetch(request) {
      const name = decodeURIComponent(new URL(request.url).pathname.split("/").at(-1) ?? "");
      asked.push(name);
      const refusal = refusals.shift();
      if (refusal) return refusal;
      mostRunning = Math.max(mostRunning, ++running);
      while (mostRunning < wanted) await Bun.sleep(1);
      running--;
      if (name === "endless.example") {
        child?.kill("SIGINT");
        await new Promise(() => {});
      }
      const [status, document] = ANSWERS[name] ?? [200, { ...CHECK, name }];
      return Response.json(document, { status });
    },
  });
});

beforeEach(() => {
  asked = [];
  refusals = [];
  mostRunning = 0;
  wanted = 1;
});

afterAll(() => {
  void server.stop(true);
  rmSync(folder, { recursive: true });
});

async function check(text: string, ...args: readonly string[]) {
  return await checkBy(sixscopeHere, text, ...args);
}

async function checkBy(run: typeof sixscope, text: string, ...args: readonly string[]) {
  const file = join(folder, "names");
  writeFileSync(file, text);
  const { status, stdout, stderr } = await run([
    ...["check", "--file", file, "--server", `http://[::1]:${server.port}`],
    ...args,
  ]);
  return { status, lines: stdout.split("\n").filter(Boolean), stderr };
}

test.each<[about: string, text: string, names: readonly string[]]>([
  ["one a line", "a.example\nb.example\n", ["a.example", "b.example"]],
  ["no line end at the end", "a.example", ["a.example"]],
  ["comments, spaces and line ends of others", "# all\r\n\n  a.example  # main\r\n", ["a.example"]],
  ["each once", "a.example\na.example", ["a.example"]],
  ["nothing", "#\n\n", []],
])("names of a file: %s", (_, text, names) => expect(readNames(text)).toEqual(names));

test("each name has a line with its verdict, and all work", async () => {
  const { status, lines, stderr } = await check("a.example\nb.example\n");
  expect(lines.toSorted()).toEqual(
    ["a.example", "b.example"].map((name) => `${name}  ${verdict.text}`),
  );
  expect([status, stderr]).toEqual([0, ""]);
});

test.each<[name: string, line: string]>([
  ["broken.example", "broken.example  It is closed."],
  ["bad name", 'bad name  "bad name" is not a valid hostname.'],
])("%s is told, the others go on, and the status is 1", async (name, line) => {
  const { status, lines } = await check(`${name}\na.example\n`);
  expect(lines).toContain(line);
  expect(lines).toContain(`a.example  ${verdict.text}`);
  expect(status).toBe(1);
});

test("an answer that cannot be understood is told on standard error, and the others go on", async () => {
  const { status, lines, stderr } = await checkBy(
    sixscope,
    "strange.example\na.example\n",
    "--json",
  );
  expect(lines.map((line) => JSON.parse(line).name)).toEqual(["a.example"]);
  expect(stderr).toStartWith("sixscope: strange.example: http://[::1]:");
  expect(status).toBe(1);
});

test("with --json, each name has one document, that of an error with the name", async () => {
  const { status, lines } = await check("a.example\nbad name\n", "--json");
  const documents = lines.map((line) => JSON.parse(line));
  expect(documents.toSorted((a, b) => a.name.localeCompare(b.name))).toEqual([
    { ...CHECK, name: "a.example" },
    { name: "bad name", ...ANSWERS["bad name"]?.[1] },
  ]);
  expect(status).toBe(1);
});

test.each<[code: string, details: object]>([
  ["RATE_LIMITED", { limit: 1000, windowSeconds: 60, retryAfterSeconds: 1 }],
  ["TOO_MANY_PROBES", { limit: 64, retryAfterSeconds: 1 }],
])("%s is waited out, and the name is asked for again", async (code, details) => {
  refusals = [limited(code, details), limited(code, details)];
  const { status, lines } = await check("a.example\nb.example\n", "--jobs", "1");
  expect(lines).toEqual(["a.example", "b.example"].map((name) => `${name}  ${verdict.text}`));
  expect(asked).toEqual(["a.example", "a.example", "a.example", "b.example"]);
  expect(status).toBe(0);
});

test.each([1, 3])("--jobs %d: no more run at once", async (jobs) => {
  const names = Array.from({ length: 12 }, (_, index) => `n${index}.example`);
  wanted = jobs;
  const { lines } = await check(names.join("\n"), "--jobs", `${jobs}`);
  expect(lines.length).toBe(names.length);
  expect(asked.toSorted()).toEqual(names.toSorted());
  expect(mostRunning).toBe(jobs);
});

test("SIGINT is told on standard error, with how much there is", async () => {
  const file = join(folder, "endless");
  writeFileSync(file, "a.example\nendless.example\nc.example\n");
  const [program = "", ...args] = await sixscopeProgram();
  const ours = ["check", "--file", file, "--jobs", "1", "--json", "--server", server.url.origin];
  const spawned = Bun.spawn([program, ...args, ...ours], {
    env: {},
    stdout: "pipe",
    stderr: "pipe",
  });
  child = spawned;
  const [stdout, stderr] = [new Response(spawned.stdout), new Response(spawned.stderr)];
  expect(await stdout.json()).toEqual({ ...CHECK, name: "a.example" });
  expect(await stderr.text()).toBe("sixscope: interrupted after 1 of 3 names\n");
  expect(await spawned.exited).toBe(1);
});

test("parameters go along with each name", async () => {
  const file = join(folder, "port");
  writeFileSync(file, "a.example\n");
  const server = `http://[::1]:1`;
  const refused = await sixscopeHere(["check", "--file", file, "--port", "0", "--server", server]);
  expect(refused.status).toBe(2);
});

test.each<[about: string, file: () => string, why: string]>([
  [
    "a file that is not there",
    () => "nowhere",
    "ENOENT: no such file or directory, open 'nowhere'",
  ],
  ["a folder", () => folder, "it is a directory"],
  ["no names", () => join(folder, "empty"), "it has none"],
])("%s is told as what it is", async (_, file, why) => {
  writeFileSync(join(folder, "empty"), "# nothing\n");
  const { status, stderr } = await sixscopeHere(["check", "--file", file()]);
  const [line] = stderr.split("\n");
  expect(line).toBe(`sixscope: --file: a file with a name on each line; ${why}.`);
  expect(status).toBe(2);
});

test.each<[about: string, args: readonly string[], line: string]>([
  ["both", ["check", "a.example", "--file", "-"], "sixscope: a name and --file exclude each other"],
  [
    "events of many names",
    ["check", "--file", "-", "--json", "--stream"],
    "sixscope: --stream shows one name; leave out --file",
  ],
])("wrong usage: %s", async (_, args, line) => {
  const { status, stderr } = await sixscopeHere(args);
  expect(stderr.split("\n")[0]).toBe(line);
  expect(status).toBe(2);
});
