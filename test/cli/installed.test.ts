import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parsePrefix, prefixContains } from "../../src/addr/prefix.ts";
import {
  ignoredLines,
  parseEnvironmentFile,
  parseShownEnvironment,
} from "../../src/cli/installed.ts";
import { parseConfig, TOOL_SETTINGS } from "../../src/config/settings.ts";

const ROOT = join(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

const rows: [string, string, Record<string, string>][] = [
  ["a value", "A=1", { A: "1" }],
  ["an empty value", "A=", { A: "" }],
  ["spaces around it", "  A= 1 2 \t", { A: "1 2" }],
  ["double quotes", 'A="1 2"', { A: "1 2" }],
  ["single quotes", "A='1'", { A: "1" }],
  ["a quote without an end", "A='1\nB=2", { A: "1\nB=2" }],
  ["a quote inside a value", `A=it's "x"`, { A: `it's "x"` }],
  ["several quotes", `A="1 2" '3' 4 `, { A: "1 234" }],
  ["a line that continues", "A=1, \\\n  2\nB=3", { A: "1,   2", B: "3" }],
  ["a quoted line that continues", 'A="1 \\\n2"', { A: "1 2" }],
  ["a line break in quotes", "A='1\nB=2'\nC=3", { A: "1\nB=2", C: "3" }],
  ["backslashes", "A=1\\n2\\\\\\ ", { A: "1n2\\ " }],
  ["backslashes in double quotes", 'A="\\n \\$ \\" \\\\"', { A: '\\n $ " \\' }],
  ["backslashes in single quotes", "A='\\n'", { A: "\\n" }],
  ["spaces before the equals sign", "A = 1", { A: "1" }],
  ["an assignment inside the value of an invalid name", 'a-b="\nA=1\n"\nB=2', { B: "2" }],
  ["a quote in a comment", "#A='\nB=2", { B: "2" }],
  ["comments", "#A=1\n;B=2\nC=3#4", { C: "3#4" }],
  ["one name twice", "A=1\nA=2", { A: "2" }],
  ["lines that are not assignments", "A\nexport B=1", {}],
];
test.each(rows)("an environment file with %s", (_, text, expected) => {
  expect(parseEnvironmentFile(text)).toEqual(expected);
});

const ignored: [string, string, number[]][] = [
  ["nothing", "# a\n\nA=1\n;b\nB='1\n2'\nC=1 \\\n2\n", []],
  ["a name with export", "A=1\nexport B=1\nC=1", [2]],
  ["a line without =", "A=1\nB\n", [2]],
  ["a line after a value of several lines", "A='1\n2\n3'\nexport B=1", [4]],
  ["a name that is not valid, with its value of several lines", 'a-b="\nA=1\n"\nB=2\nC', [1, 5]],
];
test.each(ignored)("of an environment file, systemd ignores %s", (_, text, lines) => {
  expect(ignoredLines(text)).toEqual(lines);
});

const shown: [string, string, Record<string, string>][] = [
  ["nothing", "", {}],
  ["words", "A=1 B= C=x=y", { A: "1", B: "", C: "x=y" }],
  [
    "quotes",
    String.raw`"A=1 2" B=3 "C=a\"b" "D=x\\y" "E=\$HOME" "F=1\n2"`,
    { A: "1 2", B: "3", C: 'a"b', D: String.raw`x\y`, E: "$HOME", F: "1\n2" },
  ],
];
test.each(shown)("the environment that systemctl shows: %s", (_, text, expected) => {
  expect(parseShownEnvironment(text)).toEqual(expected);
});

const edges: [string, boolean][] = [
  ["::1", true],
  ["7fff::", true],
  ["8000::", true],
  ["dfff::", true],
  ["efff::", true],
  ["f7ff::", true],
  ["fbff::", true],
  ["fd00::1", true],
  ["fe80::1", true],
  ["feff:ffff::", true],
  ["ff02::1", false],
  ["ffff::", false],
  ["0.0.0.1", true],
  ["127.0.0.1", true],
  ["191.255.255.255", true],
  ["223.255.255.255", true],
  ["224.0.0.1", false],
  ["255.255.255.255", false],
];
test.each(edges)("the unit's firewall on %s: %p", (address, isAllowed) => {
  const lines = read("systemd/sixscope.service").matchAll(/^IPAddressAllow=(.+)$/gm);
  const allowed = [...lines].flatMap(([, list = ""]) => list.split(" ").map(parsePrefix));
  expect(allowed.some((prefix) => prefixContains(prefix, parsePrefix(address).network))).toBe(
    isAllowed,
  );
});

test("the unit names a page of the documentation", () => {
  const documentation = /^Documentation=file:\/\/\/usr\/share\/doc\/sixscope\/(.+)$/m;
  const [, page = "missing"] = documentation.exec(read("systemd/sixscope.service")) ?? [];
  expect(existsSync(join(ROOT, page))).toBe(true);
});

/** One of two settings for the same thing; the sample has both. */
const FILE_OF_URL = /^SIXSCOPE_VALKEY_URL_FILE=.*\n/m;

test("the sample contains every setting once, each with a valid value", () => {
  const sample = read("systemd/sixscope.env").replaceAll(/^#(?=SIXSCOPE_)/gm, "");
  const names = [...sample.matchAll(/^(SIXSCOPE_\w+)=/gm)].map(([, name]) => name);
  const written = read("src/config/settings.ts").matchAll(/"(SIXSCOPE_\w+)"/g);
  const known = new Set([...written].map(([, name]) => name));
  for (const name of Object.values(TOOL_SETTINGS)) known.delete(name);
  expect(names.toSorted()).toEqual([...known].toSorted());
  expect(() => parseConfig(parseEnvironmentFile(sample.replace(FILE_OF_URL, "")))).not.toThrow();
});

test("the sample shows the defaults, and examples for settings without one", () => {
  const sample = read("systemd/sixscope.env").replaceAll(/^#(?=SIXSCOPE_)/gm, "");
  const shown = parseConfig(parseEnvironmentFile(sample.replace(FILE_OF_URL, "")));
  const { tls, targets, networkFiles, nats, location, valkey } = parseConfig({});
  const defaults = parseConfig({ STATE_DIRECTORY: "/var/lib/sixscope" });
  expect({ ...shown, tls, targets, networkFiles, nats, location, valkey }).toEqual(defaults);
});
