/** One language of errors: each option of each tool refuses a wrong value in the same words as the API. */
import { describe, expect, spyOn, test } from "bun:test";
import { describeCommands, runCommandLine } from "../../src/cli/command-line.ts";
import { ENDPOINTS } from "../../src/server/endpoints.ts";
import { TOOLS } from "../../src/tools/table.ts";

/** Runs a command that is refused before it begins, and returns its status and the lines that it says. */
async function refused(args: readonly string[]) {
  let said = "";
  using _stderr = spyOn(process.stderr, "write").mockImplementation((text) => {
    said += text;
    return true;
  });
  using _stdout = spyOn(process.stdout, "write").mockImplementation((text) => {
    throw new Error(`said ${text}`);
  });
  const status = await runCommandLine(args, {});
  return { status, lines: said.split("\n") };
}

const SERVER = ["--server", "http://[::1]:1"];
const SUBJECTS: Readonly<Record<string, string>> = {
  validate: "::1",
  dns: "a.test",
  "my-ip": "",
  here: "eth0",
};
const WHOLE = (minimum: number, maximum: number) => `a number from ${minimum} to ${maximum}`;
const SECONDS = (minimum: number, maximum: number) =>
  `a number of seconds from ${minimum} to ${maximum}`;
const LOCATIONS = "the name or a tag of locations, up to 32 of them separated by commas, or all";
const FORMATS = "one of mtr-report, mtr-json";
const URLS = "a URL such as https://six.example.com";

/** The requirement for the value of each option, and values that do not meet it. */
const OPTIONS: Readonly<Record<string, readonly [must: string, ...wrong: string[]]>> = {
  "ping --count": [WHOLE(1, 100_000), "0", "100001", "-1", "1e3", "four", ""],
  "ping --interval": [SECONDS(0.01, 10), "0.001", "11", "-1", "1e-1", "fast", ""],
  "ping --timeout": [SECONDS(0.1, 10), "0", "10.1", "x", ""],
  "trace --max-hops": [WHOLE(1, 64), "0", "65", "1.5", ""],
  "trace --paths": [WHOLE(1, 16), "0", "17", "all", ""],
  "trace --flow-label": [WHOLE(0, 1_048_575), "1048576", "0x7", ""],
  "trace --wait": [SECONDS(0.1, 10), "0", "10.1", "x", ""],
  "mtr --rounds": [WHOLE(1, 100_000), "0", "100001", ""],
  "mtr --interval": [SECONDS(0.1, 1), "0.05", "2", "x", ""],
  "mtr --max-hops": [WHOLE(1, 64), "0", "65", ""],
  "mtr --flow-label": [WHOLE(0, 1_048_575), "1048576", ""],
  "check --port": [WHOLE(1, 65_535), "0", "65536", "https", ""],
  "check --jobs": [WHOLE(1, 64), "0", "65", "many", ""],
  "check --file": ["a file with a name on each line; it is not a regular file", "/dev/null"],
  "mtu --flow-label": [WHOLE(0, 1_048_575), "1048576", ""],
  "dns --reverse": ["an IPv4 or IPv6 address", "example.com", "1.2.3", ""],
  ...Object.fromEntries(
    ["ping", "trace", "mtr", "mtu", "dns", "check", "here"].map((tool) => [
      `${tool} --from`,
      [LOCATIONS, "Amsterdam!", "a,,b", "a b", ""] as const,
    ]),
  ),
  ...Object.fromEntries(
    ["ping", "trace", "mtr", "mtu", "dns", "check", "here"].map((tool) => [
      `${tool} --limit`,
      [WHOLE(1, 32), "0", "33", "many", ""] as const,
    ]),
  ),
  ...Object.fromEntries(
    TOOLS.map(({ name }) => [
      `${name} --server`,
      [URLS, "six.example.com", "ftp://six.example.com", "x"] as const,
    ]),
  ),
  ...Object.fromEntries(
    TOOLS.map(({ name }) => [
      `${name} --key-from`,
      [
        "an environment variable or a file with an API key",
        "/nowhere",
        "/dev/zero",
        "/",
        "",
      ] as const,
    ]),
  ),
  "mtr --format": [FORMATS, "xml", ""],
};

const program = describeCommands({});
const commandOf = (tool: string) => program.commands.find((command) => command.name() === tool);

test("every option of a tool that takes a value is tried", () => {
  const options = TOOLS.flatMap(({ name }) =>
    (commandOf(name)?.options ?? [])
      .filter(({ required }) => required)
      .map(({ long }) => `${name} ${long}`),
  );
  expect(options.toSorted()).toEqual(Object.keys(OPTIONS).toSorted());
});

test.each([40, 60, 80])("help fits %d columns, in all commands", (helpWidth) => {
  const all = [program, ...program.commands.flatMap((each) => [each, ...each.commands])];
  const lines = all.flatMap((command) => {
    const help = command.createHelp();
    help.prepareContext({ helpWidth });
    return help.formatHelp(command, help).split("\n");
  });
  // One word, or one term, may be too long.
  const long = lines.filter((line) => line.length > helpWidth && /^ {6}\S+ \S/.test(line));
  expect(long).toEqual([]);
});

const rows = Object.entries(OPTIONS).flatMap(([option, [must, ...wrong]]) =>
  wrong.map((value) => [option, value, must] as const),
);

test.each(rows)("%s %j must be %s", async (option, value, must) => {
  const [tool = "", flag = ""] = option.split(" ");
  const needsServer = flag === "--from" || (tool === "my-ip" && flag !== "--server");
  const subject = flag === "--file" ? "" : (SUBJECTS[tool] ?? "::1");
  const file = flag === "--jobs" ? ["--file", import.meta.path] : subject ? [subject] : [];
  const args = [tool, ...file, `${flag}=${value}`];
  expect(await refused([...args, ...(needsServer ? SERVER : [])])).toEqual({
    status: 2,
    lines: [
      `sixscope: ${flag}: ${must}.`,
      `usage: sixscope ${tool} ${commandOf(tool)?.usage()}; see sixscope ${tool} --help`,
      "",
    ],
  });
});

describe("alike", () => {
  test.each([
    [["mtr", "::1", "-i", "2"], "--interval", SECONDS(0.1, 1)],
    [["trace", "::1", "--paths", "17"], "--paths", WHOLE(1, 16)],
    [["ping", "::1", "-c", "0"], "--count", WHOLE(1, 100_000)],
    // A service sends no more than its API allows.
    [["ping", "::1", "-c", "11", ...SERVER], "--count", WHOLE(1, 10)],
    [["mtr", "::1", "-c", "101", ...SERVER], "--rounds", WHOLE(1, 100)],
  ])("%j", async (args, flag, must) => {
    const { status, lines } = await refused(args);
    expect([status, lines.length]).toEqual([2, 3]);
    expect(lines[0]).toBe(`sixscope: ${flag}: ${must}.`);
  });

  test("a record type, and a server in a variable", async () => {
    const type = await refused(["dns", "a.test", "NOPE"]);
    expect(type.status).toBe(2);
    expect(type.lines[0]).toStartWith("sixscope: Record type: one of AAAA, A, MX,");
    expect(type.lines.length).toBe(3);
    process.env["SIXSCOPE_SERVER"] = "x";
    const server = await refused(["ping", "::1"]);
    delete process.env["SIXSCOPE_SERVER"];
    expect(server.lines[0]).toBe(`sixscope: SIXSCOPE_SERVER: ${URLS}.`);
  });

  // biome-ignore format: a table
  test.each([
    [["dns", "192.0.2.1"], '"192.0.2.1" is not a valid hostname: it is an IP address; ask for its name with -x; write it like www.example.com.'],
    [["dns", "a.test", "@zone", "--dnssec"], "resolver: the servers of the zone are asked without validation, and not for class CH."],
    [["dns", "a.test", "@zone", "--chaos"], "resolver: the servers of the zone are asked without validation, and not for class CH."],
  ])("what the tool itself refuses, in the words of commands: %j", async (args, text) => {
    let said = "";
    using _write = spyOn(Bun, "write").mockImplementation((async (_: unknown, line: string) => {
      said += line;
    }) as never);
    expect(await runCommandLine(args, {})).toBe(2);
    expect(said).toBe(`sixscope: ${text}\n`);
  });

  test("a value with characters that rearrange a terminal", async () => {
    const choice = await refused(["mtr", "::1", "--format=\u001b[2J\n"]);
    expect(choice.lines[0]).toBe(`sixscope: --format: ${FORMATS}.`);
  });
});

test.each(
  TOOLS.filter(({ needsServer, name }) => !needsServer && name !== "here" && name !== "check").map(
    ({ name }) => name,
  ),
)("a bare sixscope %s says what is missing, and one line of usage", async (tool) => {
  const { status, lines } = await refused([tool]);
  expect([status, lines.length]).toEqual([2, 3]);
  expect(lines[0]).toMatch(/^sixscope: missing /);
  expect(lines[1]).toStartWith(`usage: sixscope ${tool} [options] `);
});

test("the help of an option has its bounds and its default as the API has them", () => {
  for (const { name, endpoint } of TOOLS) {
    const { parameters } = ENDPOINTS.find(({ path }) => path === endpoint.path) ?? endpoint;
    const options = commandOf(name)?.options ?? [];
    for (const { option, bounds, default: fallback, isInSeconds } of Object.values(parameters)) {
      if (option === undefined || bounds === undefined || "allowed" in bounds) continue;
      const flag = option.flags.split(", ").at(-1);
      const said = options.find(({ long }) => long === flag)?.description;
      const inUnit = (value: number) => (isInSeconds ? value / 1000 : value);
      expect(said).toContain(`, ${inUnit(bounds.minimum)} to ${inUnit(bounds.maximum)}`);
      if (fallback !== undefined) {
        expect(said).toContain(`(default: ${inUnit(fallback as number)})`);
      }
    }
  }
});

test("an option that a tool lacks is named as it was written", async () => {
  const { lines } = await refused(["mtu", "--tcp", "::1"]);
  expect(lines[0]).toBe("sixscope: unknown option '--tcp'");
});

test("help says how the port of an option is written, and nothing of the page", () => {
  expect(commandOf("ping")?.helpInformation()).toContain("--tcp=PORT");
  expect(commandOf("validate")?.helpInformation()).not.toContain("as you type");
  expect(commandOf("check")?.helpInformation()).not.toContain("`");
});
