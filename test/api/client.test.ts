/** A client that others generate from the interface document: its types, as tsc reads them. */
import { expect, mock, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { interfaceDocument } from "../lab/conformance.ts";
import { run } from "../lab/run.ts";

const ROOT = join(import.meta.dir, "../..");

/** For each endpoint its parameters as a caller writes them, and what reads the document, which is called `it`. */
const CALLS: Readonly<Record<string, [parameters: string, type: string, read: string]>> = {
  "/myip": ["", "string", "it.ip"],
  "/check/{name}": ['path: { name: "a.example" }', "string", "it.details.verdict.headline"],
  "/here": ["", "string | undefined", "it.steps[0]?.text"],
  "/validate": [
    'query: { address: "::1" }',
    "boolean | null | undefined",
    "it.details.specialPurpose?.forwardable",
  ],
  "/dns/{hostname}": [
    'path: { hostname: "a.example" }, query: { type: "MX" }',
    "string | undefined",
    "it.records[0]?.value",
  ],
  "/ping/{target}": [
    'path: { target: "::1" }, query: { count: 2, protocol: "tcp", from: "ams" }',
    "number | null",
    "it.stats.avg",
  ],
  "/traceroute/{target}": [
    'path: { target: "::1" }',
    "string | null | undefined",
    "it.hops[0]?.hostname",
  ],
  "/mtr/{target}": ['path: { target: "::1" }', "number | null", "it.hops[0]!.p95"],
  "/mtu/{target}": ['path: { target: "::1" }', "number | null", "it.mtu"],
  "/watch": ["", "string | undefined", "it.watches[0]?.verdict?.code"],
  "/watch/{name}": ['path: { name: "ping ::1" }', "number", "it.series[0]!.runs"],
  "/watch/{name}/changes/{id}": [
    'path: { name: "ping ::1", id: "1" }',
    "string | undefined",
    "it.diff[0]?.kind",
  ],
  "/locations": ["", '"up" | "down" | undefined', "it.locations[0]?.state"],
  "/openapi.json": ["", "string", "it.openapi"],
};

/**
 * Generates the types of the interface document, and checks a program that imports them.
 *
 * @returns nothing but an empty text
 * @throws Error with what tsc says of it
 */
async function checkTypes(program: string) {
  // The generator needs the compiler's JavaScript, which TypeScript has no more since 7.
  await mock.module("typescript", () => import("typescript-5"));
  const { default: generate, astToString } = await import("openapi-typescript");
  const types = astToString(await generate(JSON.stringify(interfaceDocument)));
  const folder = mkdtempSync(join(tmpdir(), "sixscope-client-"));
  try {
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    const compilerOptions = { noEmit: true, strict: true, module: "preserve", types: [] };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
    writeFileSync(join(folder, "interface.ts"), types);
    writeFileSync(join(folder, "client.ts"), program);
    return await run([join(ROOT, "node_modules/.bin/tsc"), "--project", folder]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("a generated client has one type for the document of each endpoint, and others for several places and events", async () => {
  expect(Object.keys(CALLS).toSorted()).toEqual(Object.keys(interfaceDocument.paths).toSorted());
  const calls = Object.entries(CALLS).map(
    ([path, [parameters, type, read]], at) => `
  const { data: it, error } = await client.GET("${path}", { params: { ${parameters} } });
  if (error) return error.error.code;
  const read${at}: ${type} = ${read};`,
  );
  const program = `
import createClient from "openapi-fetch";
import type { components, paths } from "./interface";

const client = createClient<paths, "application/json">();
${calls.map((call, at) => `export async function call${at}() {${call}\n  return read${at};\n}\n`).join("")}
type Content = paths["/ping/{target}"]["get"]["responses"][200]["content"];
export const several = (it: Content["application/json; profile=several"]) =>
  it.locations.map((place) => ("result" in place ? place.result.stats.loss : place.error.code));
export const events = (it: Content["text/event-stream"]) =>
  it.map((item) => (item.event === "error" ? item.data.error.message : item.event));
export const sample: components["schemas"]["PingSample"] = { seq: 1, ttl: 64, rtt: 0.1 };
// @ts-expect-error The document of one place has no places.
export const wrong = (it: Content["application/json"]) => it.locations;
`;
  expect(await checkTypes(program)).toBe("");
});
