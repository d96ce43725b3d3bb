/** A command without a service may run longer than one with it; its documents have the same published schema. */
import { expect, test } from "bun:test";
import { interfaceDocument, mismatches } from "../lab/conformance.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { sixscope } from "../lab/service.ts";

const labTest = testWith(labMissing);

labTest.each([
  ["PingResult", ["ping", "-c", "20", "-i", "0.01", "::1"]],
  ["MtrResult", ["mtr", "-c", "110", "-i", "0.1", "-n", "::1"]],
])("a %s of more requests than a service sends", async (name, command) => {
  const { stdout, status } = await sixscope([...command, "--json"]);
  expect(status).toBe(0);
  const { schemas } = interfaceDocument.components as unknown as {
    readonly schemas: Readonly<Record<string, object>>;
  };
  expect(mismatches(schemas[name] ?? {}, JSON.parse(stdout))).toEqual([]);
});

test("a service's own bounds stay in its parameters", () => {
  const bounds = (path: string, name: string) =>
    interfaceDocument.paths[path]?.get.parameters.find((each) => each.name === name)?.schema;
  expect(bounds("/ping/{target}", "count")).toMatchObject({ maximum: 10 });
  expect(bounds("/mtr/{target}", "rounds")).toMatchObject({ maximum: 100 });
});
