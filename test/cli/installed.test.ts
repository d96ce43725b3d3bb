import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnvironmentFile } from "../../src/cli/installed.ts";
import { parseConfig } from "../../src/config.ts";

const ROOT = join(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

const rows: [string, string, Record<string, string>][] = [
  ["a value", "A=1", { A: "1" }],
  ["an empty value", "A=", { A: "" }],
  ["spaces around it", "  A= 1 2 \t", { A: "1 2" }],
  ["double quotes", 'A="1 2"', { A: "1 2" }],
  ["single quotes", "A='1'", { A: "1" }],
  ["a quote alone", "A='1", { A: "'1" }],
  ["comments", "#A=1\n;B=2\nC=3#4", { C: "3#4" }],
  ["the last of two", "A=1\nA=2", { A: "2" }],
  ["no assignment", "A\nexport B=1", {}],
];
test.each(rows)("an environment file with %s", (_, text, expected) => {
  expect(parseEnvironmentFile(text)).toEqual(expected);
});

test("the sample has every setting once, each with a value that is right", () => {
  const sample = read("systemd/sixscope.env").replaceAll(/^#(?=SIXSCOPE_)/gm, "");
  const names = [...sample.matchAll(/^(SIXSCOPE_\w+)=/gm)].map(([, name]) => name);
  const known = [...read("src/config.ts").matchAll(/^ {4}(SIXSCOPE_\w+):/gm)].map(
    ([, name]) => name,
  );
  expect(names.toSorted()).toEqual(known.toSorted());
  expect(() => parseConfig(parseEnvironmentFile(sample))).not.toThrow();
});

test("the sample shows the defaults, and examples where there is none", () => {
  const sample = read("systemd/sixscope.env").replaceAll(/^#(?=SIXSCOPE_)/gm, "");
  const shown = parseConfig(parseEnvironmentFile(sample));
  const { tls, targets, listenIsDefault } = parseConfig({});
  const defaults = parseConfig({ STATE_DIRECTORY: "/var/lib/sixscope" });
  expect({ ...shown, tls, targets, listenIsDefault }).toEqual(defaults);
});
