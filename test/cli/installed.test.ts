import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parsePrefix, prefixContains } from "../../src/addr/prefix.ts";
import { parseShownEnvironment } from "../../src/cli/installed.ts";
import { parseEnvironmentFile } from "../../src/config/environment-file.ts";
import { parseConfig, TOOL_SETTINGS } from "../../src/config/settings.ts";

const ROOT = join(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

const rows: [string, string, Record<string, string>, number[]][] = [
  ["a value", "A=1", { A: "1" }, []],
  ["an empty value", "A=", { A: "" }, []],
  ["spaces around it", "  A= 1 2 \t", { A: "1 2" }, []],
  ["a line break of Windows", "A=1\r\nB=2\r\n", { A: "1", B: "2" }, []],
  ["double quotes", 'A="1 2"', { A: "1 2" }, []],
  ["single quotes", "A='1'", { A: "1" }, []],
  ["quotes of the other kind inside", `A="it's"`, { A: "it's" }, []],
  ["comments", "#A='\n;B=2\n\nC=3#4", { C: "3#4" }, []],
  ["one name twice", "A=1\nA=2", { A: "2" }, []],
  ["a quote without an end", "A='1\nB=2", { B: "2" }, [1]],
  ["a quote inside a value", `A=it's\nB=2`, { A: "it's", B: "2" }, []],
  ["a comment that continues", "# A=1 \\\nB=2", { B: "2" }, [1]],
  ["a mark of the byte order", "\ufeffA=1", {}, [1]],
  ["a space that is not one", "\u00a0A=1", {}, [1]],
  ["several quotes", `A="1" '2'`, {}, [1]],
  ["a backslash", "A=1\\n2\nB='\\'", {}, [1, 2]],
  ["a line that continues", "A=1, \\\n  2\nB=3", { B: "3" }, [1, 2]],
  ["spaces before the equals sign", "A = 1", {}, [1]],
  ["export", "A=1\nexport B=1\nC=1", { A: "1", C: "1" }, [2]],
  ["another name", "a-b=1", {}, [1]],
  ["a line without an equals sign", "A=1\nB\n", { A: "1" }, [2]],
  ["a colon", "A: 1", {}, [1]],
];
test.each(rows)("an environment file with %s", (_, text, variables, others) => {
  const file = parseEnvironmentFile("/file", text);
  expect(file.variables).toEqual(variables);
  expect(file.unclear).toEqual(others);
});

const shown: [string, string, Record<string, string>][] = [
  ["nothing", "", {}],
  ["words", "A=1 B= C=x=y", { A: "1", B: "", C: "x=y" }],
  [
    "quotes",
    String.raw`"A=1 2" B=3 "C=a\"b" "D=x\\y" "E=\$HOME"`,
    { A: "1 2", B: "3", C: 'a"b', D: String.raw`x\y`, E: "$HOME" },
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
  expect(() =>
    parseConfig(parseEnvironmentFile("", sample.replace(FILE_OF_URL, "")).variables),
  ).not.toThrow();
});

test("the sample shows the defaults, and examples for settings without one", () => {
  const sample = read("systemd/sixscope.env").replaceAll(/^#(?=SIXSCOPE_)/gm, "");
  const shown = parseConfig(parseEnvironmentFile("", sample.replace(FILE_OF_URL, "")).variables);
  const { tls, targets, networkFiles, nats, location, valkey, ...others } = parseConfig({});
  const { locationTags, locationsExpected, familyUrls } = others;
  const defaults = parseConfig({ STATE_DIRECTORY: "/var/lib/sixscope" });
  const examples = { tls, targets, networkFiles, nats, location, familyUrls };
  const without = { ...examples, locationTags, locationsExpected };
  expect({ ...shown, ...without, valkey }).toEqual(defaults);
});
