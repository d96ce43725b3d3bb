/** Documents from links and files, checked with the schemas of the interface document. */
import { describe, expect, test } from "bun:test";
import { SEVERAL } from "../../src/api/endpoint.ts";
import type { JsonSchema } from "../../src/api/openapi.ts";
import { matches } from "../../src/page/browser/schema-check.ts";
import { reportText } from "../../src/tools/report-text.ts";
import { reporterOf, type ToolName } from "../../src/tools/reports.ts";
import { summaryRow } from "../../src/tools/summary.ts";
import { toolNamed } from "../../src/tools/table.ts";
import { interfaceDocument, mismatches } from "../lab/conformance.ts";
import { randomFrom } from "../lab/simulation.ts";
import * as D from "../tools/documents.ts";

const { components, paths } = interfaceDocument;
const { schemas } = components;

/** Of the document, or of that of several locations. */
const schemaOf = (tool: ToolName): JsonSchema => {
  const content = paths[toolNamed(tool).endpoint.path]?.get.responses[200]?.content;
  const documents = [content?.["application/json"], content?.[SEVERAL]];
  return { anyOf: documents.flatMap((each) => (each ? [each.schema] : [])) };
};

const check = (tool: ToolName, document: unknown) => matches(schemaOf(tool), document, schemas);

const WHOLE = [
  ["validate", D.VALIDATIONS[0]],
  ["dns", D.DNS],
  ["dns", D.COMPARISON],
  ["ping", { ...D.PING, stats: { ...D.PING.stats, transmitted: 7 } }],
  ["trace", D.TRACE],
  ["trace", D.PATHS],
  ["mtr", D.MTR],
  ["mtu", D.MTU],
] as const satisfies readonly (readonly [ToolName, unknown])[];

/** The document of a run that was stopped, as the page makes it from its events. */
const draft = (tool: ToolName, subject: string, details = {}) => {
  const document = reporterOf(tool).draft?.(subject, []) as { details: object };
  return { ...document, details: { ...document.details, ...D.DATED, ...details } };
};

const HOP = { hop: 1, ip: "2001:db8::1", hostname: null, rtt: 1 };

test("the schemas have no keyword that the check does not know", () => {
  const known =
    "$ref type anyOf properties required additionalProperties items maxItems enum const minimum maximum pattern format description".split(
      " ",
    );
  const found = new Set<string>();
  const walk = (schema: object) => {
    for (const [key, value] of Object.entries(schema)) {
      found.add(key);
      const inner = key === "properties" ? Object.values(value) : [value].flat();
      if (key === "enum" || key === "const" || key === "required") continue;
      for (const each of inner) if (typeof each === "object" && each !== null) walk(each);
    }
  };
  for (const schema of Object.values(schemas)) walk(schema);
  expect([...found].filter((key) => !known.includes(key))).toEqual([]);
});

test.each(WHOLE.map((row) => [...row] as const))("a document of %s passes", (tool, document) => {
  expect(check(tool, document)).toBe(true);
  const at = [
    { location: "ams", result: document },
    {
      location: "fra",
      error: { code: "LOCATION_TIMEOUT", message: "no", details: { location: "fra" } },
    },
  ];
  const isEverywhere = toolNamed(tool).endpoint.runsElsewhere ?? false;
  const summary = [summaryRow("ams", document), summaryRow("fra", {}, "LOCATION_TIMEOUT")];
  const several = { target: "a", details: { summary, matching: 2 }, locations: at };
  expect(check(tool, several)).toBe(isEverywhere);
});

test.each<[what: string, tool: ToolName, document: unknown, passes: boolean]>([
  ["a stopped mtr", "mtr", draft("mtr", "a", { state: "stopped" }), false],
  ["a whole document without its address", "trace", { ...D.TRACE, ip: undefined }, false],
  [
    "a hop that says it is a draft",
    "trace",
    { ...D.TRACE, hops: [{ hop: 1, details: { state: "done" } }] },
    false,
  ],
  [
    "a number that is not finite",
    "trace",
    { ...D.TRACE, hops: [{ ...HOP, rtt: Infinity }] },
    false,
  ],
  [
    "a date that is none",
    "trace",
    { ...D.TRACE, details: { ...D.TRACE.details, startedAt: "2026-13-01T00:00:00Z" } },
    false,
  ],
  ["an address that is a URL", "trace", { ...D.TRACE, ip: "javascript:alert(1)" }, false],
  [
    "the name of what every object has",
    "trace",
    JSON.parse(JSON.stringify(D.TRACE).replace('{"', '{"__proto__":{},"')),
    false,
  ],
  ["a constructor", "trace", { ...D.TRACE, constructor: 1 }, false],
  ["a list that never ends", "trace", { ...D.TRACE, hops: Array(5000).fill(HOP) }, false],
  ["a list of lists", "trace", [D.TRACE], false],
  ["nothing", "trace", null, false],
  ["another tool's", "mtu", D.TRACE, false],
])("%s", (_, tool, document, passes) => {
  expect(check(tool, document)).toBe(passes);
});

/** Values that documents do not expect. */
const ODD: readonly unknown[] = [
  ...[null, undefined, -1, 1.5, 9e15, "", "x", "2001:db8::1", true, [], {}, [null], [{}]],
];

/** A copy with one odd value, one key less or one more, somewhere. */
function mutated(value: unknown, random: () => number): unknown {
  if (typeof value !== "object" || value === null || random() < 0.1) {
    return ODD[Math.floor(random() * ODD.length)];
  }
  const keys = Object.keys(value);
  const key = keys[Math.floor(random() * keys.length)] ?? "0";
  const copy = structuredClone(value) as Record<string, unknown>;
  const kind = random();
  if (kind < 0.1 && !Array.isArray(copy)) delete copy[key];
  else if (kind < 0.15) copy["odd"] = 1;
  else copy[key] = mutated(copy[key], random);
  return copy;
}

describe.each(WHOLE.map((row) => [...row] as const))(
  "500 odd documents of %s",
  (tool, document) => {
    test("are refused as another validator refuses them, or make a report", () => {
      const random = randomFrom(7);
      const schema = schemaOf(tool);
      for (let round = 0; round < 500; round++) {
        const odd = JSON.parse(JSON.stringify(mutated(document, random) ?? null));
        const own = check(tool, odd);
        // Formats are checked less.
        if (!own) expect([odd, mismatches(schema, odd)]).not.toEqual([odd, []]);
        if (own) expect(reportText(reporterOf(tool).report(odd as never))).toBeString();
      }
    });
  },
);
