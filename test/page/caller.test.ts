/** The tools are in the page as `TOOLS` has them. */
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { callerOf } from "../../src/page/caller.ts";
import { TOOLS } from "../../src/tools/table.ts";
import type { Watching } from "../../src/watch/endpoint.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { pageTools } from "./page-tools.ts";

test("every tool is sent with the page, with the parameters that have a label", () => {
  expect(pageTools.map(({ name, label, path }) => [name, label, path])).toEqual(
    TOOLS.map(({ name, label, endpoint }) => [name, label, endpoint.path]),
  );
  const fields = pageTools.map(({ subject, options }) =>
    [subject, ...options].flatMap((field) => (field ? [[field.name, field.label]] : [])),
  );
  expect(fields).toEqual(
    TOOLS.map(({ endpoint }) =>
      Object.entries(endpoint.parameters).flatMap(([name, { label }]) =>
        label === undefined ? [] : [[name, label]],
      ),
    ),
  );
});

test("what the page asks by itself is a value of its parameter", () => {
  for (const { onPage = {}, endpoint } of TOOLS) {
    for (const [name, value] of Object.entries(onPage)) {
      const { schema } = endpoint.parameters[name] ?? {};
      expect(schema?.().safeParse(value).success).toBe(true);
    }
  }
});

test("no label, hint or path of a tool is written again in the page", async () => {
  const texts = pageTools.flatMap(({ label, path, subject, options }) => [
    ...[label, path, path.slice(1).split("/")[0] ?? ""],
    ...[subject, ...options].flatMap((field) => (field ? [field.label, field.hint ?? ""] : [])),
  ]);
  const names = pageTools.map(({ name }) => name as string);
  const wanted = new Set(texts.filter((text) => text !== "" && !names.includes(text)));
  const folder = new URL("../../src/page/browser/", import.meta.url).pathname;
  const found: string[] = [];
  for (const file of new Glob("*.{ts,tsx,html}").scanSync(folder)) {
    const source = await Bun.file(`${folder}${file}`).text();
    const written = [...source.matchAll(/"([^"\n]*)"|`([^`\n]*)`|>\s*([^<>{}]+?)\s*</g)];
    for (const [, ...groups] of written) {
      const text = groups.find((group) => group !== undefined) ?? "";
      if (wanted.has(text)) found.push(`${file}: ${text}`);
    }
  }
  expect(found).toEqual([]);
});

test("the page knows how many targets are watched", () => {
  const services = { config: { familyUrls: null }, watching: { count: 2 } as Watching };
  expect(callerOf(parseIpv6("::1"), true, services).watches).toBe(2);
});

test.each([
  ["2001:db8:4a:1c00:8d3e:52ff:fe1b:77a0", "2001:db8:4a:1c00:"],
  ["2001:db8::1", ""],
  ["::ffff:192.0.2.1", ""],
])("of %s, %j is the prefix", (ip, prefix) => {
  const services = { config: { familyUrls: null } };
  expect(callerOf(parseIpv6(ip), true, services)).toMatchObject({ prefix });
});
