/** Each tool is stated once: what is made from its row is there, and what is written beside it agrees. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import type { Parameter } from "../../src/api/parameters.ts";
import { describeCommands } from "../../src/cli/command-line.ts";
import { probeResponse } from "../../src/server/blackbox.ts";
import { ENDPOINTS } from "../../src/server/endpoints.ts";
import { reporterOf } from "../../src/tools/reports.ts";
import { TOOLS, type Tool } from "../../src/tools/table.ts";

const ROOT = join(import.meta.dir, "../..");
const api = readFileSync(join(ROOT, "docs/api.md"), "utf8");
const readme = readFileSync(join(ROOT, "README.md"), "utf8");

/** Parameters that the form of the page lacks. */
const WITHOUT_LABEL: Readonly<Record<string, string>> = {
  resolver: "the page compares all resolvers",
  class: "the page asks as most programs do",
  nsid: "the same",
  transport: "the same",
  recursion: "the same",
  from: "the page offers the locations that answer",
  limit: "the page asks as many as it may",
  interface: "the page asks about the one that leads out",
};

/** Parameters that no option of the command sets. */
const WITHOUT_OPTION: Readonly<Record<string, string>> = {
  port: "the value of --tcp and --udp",
  type: "the second word of `dns`",
  resolver: "the word of `dns` that begins with @",
};

/** Tools that Prometheus cannot ask. */
const WITHOUT_MODULE: Readonly<Record<string, string>> = {
  "my-ip": "it asks nobody",
  validate: "it asks nobody",
};

const program = describeCommands({});
const rows = TOOLS.map((tool) => [tool.name, tool] as const);

function parametersOf({ endpoint }: Tool): readonly (readonly [string, Parameter])[] {
  const served = ENDPOINTS.find(({ path }) => path === endpoint.path) ?? endpoint;
  return Object.entries(served.parameters);
}

/** The words between backticks. */
const quoted = (text: string) => [...text.matchAll(/`([^`]*)`/g)].map(([, word = ""]) => word);

/** A section of docs/api.md. */
function sectionOf(title: string): string {
  const [section = ""] = api.split(`\n## ${title}\n`).slice(1);
  return section.split(/\n## /)[0] ?? "";
}

/** The cells of the rows below a heading row in a section. */
function tableIn(title: string, heading: string): string[][] {
  const lines = sectionOf(title).split("\n");
  const start = lines.findIndex((line) => line.startsWith(heading));
  if (start < 0) return [];
  const length = lines.slice(start).findIndex((line) => !line.startsWith("|"));
  return lines.slice(start + 2, start + length).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

/** The required cells of a parameter: its values, its default and its option. */
function expectedOf(name: string, { bounds, default: fallback, option, ...more }: Parameter) {
  const range = bounds && "minimum" in bounds ? `${bounds.minimum} to ${bounds.maximum}` : null;
  const alone = more.maximumAlone ? `, without a service to ${more.maximumAlone}` : "";
  return {
    name,
    values: range === null ? null : `${range}${alone}`,
    words: bounds && "allowed" in bounds ? [...bounds.allowed] : [],
    fallback: fallback === undefined ? [] : [String(fallback)],
    flags:
      (option ? option.flags.split(", ") : null) ??
      Object.values(more.switches ?? {}).map(({ flags }) => flags),
    isInSeconds: more.isInSeconds ?? false,
  };
}

test.each(rows)("%s has its command, with an option for each parameter", (_, tool) => {
  const command = program.commands.find((one) => one.name() === tool.name);
  expect(command?.aliases()).toEqual(tool.alias ? [tool.alias] : []);
  expect(command?.summary()).toBe(tool.summary);
  expect(command?.description()).toBe(`${tool.help}\n\nExample: ${tool.example}`);
  expect(tool.example).toStartWith(`sixscope ${tool.name} `);
  const flags = command?.options.map((option) => option.flags.replace(/ <.*/, "")) ?? [];
  const [, ...others] = parametersOf(tool);
  for (const [name, { option, switches }] of others) {
    expect({
      name,
      hasOption: (option ?? switches) !== undefined || name in WITHOUT_OPTION,
    }).toEqual({
      name,
      hasOption: true,
    });
    if (option) expect(flags).toContain(option.flags);
  }
  for (const { option } of Object.values(tool.settings ?? {})) {
    expect(flags).toContain(option?.flags as string);
  }
});

test.each(rows)("%s has its form on the page", (_, tool) => {
  const unlabelled = parametersOf(tool).filter(
    ([name, { label }]) => label === undefined && !(name in WITHOUT_LABEL),
  );
  expect(unlabelled.map(([name]) => name)).toEqual([]);
  expect(tool.label).not.toBe("");
});

test("every exception is a parameter or a tool", () => {
  const names = TOOLS.flatMap((tool) => [tool.name, ...parametersOf(tool).map(([name]) => name)]);
  for (const exceptions of [WITHOUT_LABEL, WITHOUT_OPTION, WITHOUT_MODULE]) {
    expect(Object.keys(exceptions).filter((name) => !names.includes(name as never))).toEqual([]);
  }
});

test.each(rows)("%s is served, and has its report", (name, { endpoint }) => {
  expect(ENDPOINTS.map(({ path }) => path)).toContain(endpoint.path);
  const { report, draft } = reporterOf(name);
  expect(report(endpoint.example as object).title).not.toBe("");
  // A tool with events can be drawn while it runs.
  expect(draft !== undefined).toBe(endpoint.events !== undefined);
});

test("every tool has its module of /probe", async () => {
  const request = new Request("http://[::1]/probe?module=none&target=::1");
  const refused = await (await probeResponse(request, () => {}, {} as never)).json();
  const { error } = refused as { error: { details: { allowed: string[] } } };
  expect(error.details.allowed.toSorted()).toEqual(
    TOOLS.filter(({ name }) => !(name in WITHOUT_MODULE))
      .map(({ name }) => `${name}6`)
      .concat("tcp6", "udp6")
      .toSorted(),
  );
});

describe("docs/api.md", () => {
  const HEADING = "| Parameter | Values | Default | Command | Meaning |";

  test.each(rows)(
    "has the parameters of %s, with their values, defaults and options",
    (_, tool) => {
      const parameters = parametersOf(tool);
      const { path } = tool.endpoint;
      const [, named = ""] = /^Also \[shared\][^:]*: (.*)$/m.exec(sectionOf(path)) ?? [];
      const shared = tableIn("Shared parameters", HEADING).filter(([name = ""]) =>
        quoted(named).includes(quoted(name).join()),
      );
      expect(shared.map(([name = ""]) => quoted(name).join())).toEqual(quoted(named));
      const written = [...tableIn(path, HEADING), ...shared].map(
        ([name = "", values = "", fallback = "", flags = "", meaning]) => ({
          name: quoted(name).join(),
          values: /^\d/.test(values) ? values : null,
          // A type can also have a number.
          words: /^`/.test(values) ? quoted(values).filter((word) => word !== "TYPE") : [],
          fallback: quoted(fallback),
          flags: quoted(flags).filter((word) => word.startsWith("-")),
          isInSeconds: flags.endsWith(" in seconds"),
          isSaid: values !== "" && flags !== "" && meaning !== undefined && meaning !== "",
        }),
      );
      const expected = parameters.map(([name, parameter]) => expectedOf(name, parameter));
      expect(new Set(written)).toEqual(new Set(expected.map((row) => ({ ...row, isSaid: true }))));
      expect(written.length).toBe(expected.length);
    },
  );

  test.each(rows)("says what each code of the verdict of %s means, once", (_, tool) => {
    const { details } = (tool.endpoint.response() as z.ZodObject).shape as { details?: z.ZodType };
    const { verdict } = ((details as z.ZodObject | undefined)?.shape ?? {}) as {
      verdict?: z.ZodObject;
    };
    const codes = (verdict?.shape["code"] as z.ZodEnum | undefined)?.options ?? [];
    const written = tableIn(
      `More about ${tool.endpoint.path.split("/{")[0]}`,
      "| `details.verdict.code` | Means |",
    );
    expect(written.flatMap(([names = ""]) => quoted(names)).toSorted()).toEqual(
      codes.map(String).toSorted(),
    );
    expect(written.filter(([, meaning]) => !meaning)).toEqual([]);
  });
});

describe("the README", () => {
  test.each(rows)("has the command %s with all its options", (name, tool) => {
    const row = readme.split("\n").find((line) => line.startsWith(`| \`sixscope ${name}`));
    const all = { ...Object.fromEntries(parametersOf(tool)), ...tool.settings };
    const options = Object.values(all).flatMap(({ option }) => option?.flags.split(", ")[0] ?? []);
    const written = quoted(row?.split(" | ").slice(1).join() ?? "");
    // Those of every tool are said below the table.
    expect(written).toEqual(
      expect.arrayContaining(options.filter((flag) => !/--(from|limit)/.test(flag))),
    );
  });
});
