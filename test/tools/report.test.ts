/** Documents as reports: nothing that a document says is missing, and drafts say what is known so far. */
import { describe, expect, test } from "bun:test";
import type { z } from "zod";
import type { MtrResult } from "../../src/tools/mtr/result.ts";
import { reportText } from "../../src/tools/report-text.ts";
import { reporterOf, type ToolName } from "../../src/tools/reports.ts";
import { TOOLS } from "../../src/tools/table.ts";
import type { TraceResult } from "../../src/tools/trace/result.ts";
import { inWords } from "../../src/util/text.ts";
import {
  CHECK,
  COMPARISON,
  DNS,
  HERE,
  LOOPING_TRACE,
  MTR,
  MTU,
  PATHS,
  PING,
  STOPPED_TRACE,
  TRACE,
  VALIDATIONS,
  ZONE,
} from "./documents.ts";

const MY_IP = { ip: "2001:db8::1", version: 6, isIPv6: true };

const DOCUMENTS: Readonly<Record<ToolName, readonly object[]>> = {
  "my-ip": [MY_IP],
  check: [CHECK],
  here: [HERE],
  validate: VALIDATIONS,
  dns: [DNS, COMPARISON, ZONE],
  ping: [PING],
  trace: [TRACE, STOPPED_TRACE, LOOPING_TRACE, PATHS],
  mtr: [MTR],
  mtu: [MTU],
};

const rows = Object.entries(DOCUMENTS).flatMap(([tool, documents]) =>
  documents.map((document, at) => [tool as ToolName, at, document] as const),
);

const textOf = (tool: ToolName, document: object) =>
  reportText(reporterOf(tool).report(document as never));

/** The values that a report does not print, each with what says it instead. */
const UNPRINTED: Readonly<Record<string, string>> = {
  "*.details.startedAt": "--json, and the stamp of the page",
  "*.details.version": "as startedAt",
  "*.verdict.code": "its text and its tone",
  "*.cutShort.code": "its text",
  "*.details.waitedMs": "--json, and the event while it waits",
  "my-ip.version": "the form of the address",
  "my-ip.details.network.asn": "--json, because scripts read the address alone",
  "my-ip.details.network.name": "as asn",
  "my-ip.details.network.prefix": "as asn",
  "my-ip.details.network.source": "as asn",
  "*.details.network.prefix": "only validate, which is about one address",
  "*.details.network.source": "as prefix",
  "check.details.verdict.fault": "its text",
  "check.details.verdict.answer": "its text",
  "check.details.verdict.at": "its text, and the step",
  "check.details.attempts[].*": "--json; the steps have the counts in words",
  "check.steps[].at": "the same in words",
  "check.steps[].certificate.*": "--json; the step has what is wrong with it",
  "check.steps[].finding": "the same in words",
  "check.steps[].ms": "--json, and the wait itself",
  "check.steps[].rtt": "the verdict compares it",
  "check.steps[].rttMost": "the same",
  "check.steps[].httpStatus": "the same in words",
  "check.details.path.*": "the step of the trace says where the way ends; the page draws it",
  "check.details.here[].*": "the step has the verdict; the page compares places",
  "here.interfaces[].*": "--json; the steps name what matters of it",
  "here.routes[].*": "as interfaces",
  "here.steps[].interface": "its text",
  "here.steps[].finding": "the same in words",
  "here.steps[].ms": "--json, and the wait itself",
  "validate.type": "the same in words",
  "validate.details.interfaceId.kind": "the same in words",
  "validate.details.embeddedIPv4[].mechanism": "the same in words",
  "validate.details.network.source": "the same in words",
  "dns.details.differences[]": "the verdict, in words",
  "dns.details.unanswered[]": "the verdict",
  "dns.details.findings[].*": "the verdict has their texts",
  "dns.details.servers[].outcome": "the same in words, and the tone",
  "dns.*transport": "the same in capitals",
  "dns.details.resolvers[].outcome": "the same in words",
  "dns.details.resolvers[].question.*": "the question of all",
  "dns.details.*dnssec.resolver.name": "the resolver whose answer it is",
  "ping.results[].details.reason": "the address that replied",
  "ping.details.lost[].reason": "the same in words",
  "trace.details.reason": "the verdict",
  "trace.*interfaces[].role": "the same in words",
  "trace.*.unanswered": "the same in words",
  "*.details.addresses[].use": "the same in words",
  "trace.details.graph.edges[].*": "the order of the paths",
  "mtr.details.verdict.lossAtMost": "its text, without decimals",
  "mtr.details.verdict.lossAtLeast": "as lossAtMost",
  "mtr.hops[].cause": "the same in words, and the tone",
  "mtr.hops[].addresses[].share": "the answers of each address",
  "mtr.hops[].addresses[].received": "the rest, for the address that answered most",
  "mtu.details.doubtful[].doubt": "the same in words",
  "mtu.details.cause": "the same in words",
  "dns.*dnssec.notes[].code": "the same in words",
};

const isUnprinted = (path: string) =>
  Object.keys(UNPRINTED).some((pattern) =>
    new RegExp(`^${pattern.replaceAll(/[.[\]]/g, "\\$&").replaceAll("*", ".*")}$`).test(path),
  );

/** The texts and numbers in a document with the names that lead to them; a report has words for yes and no. */
function* leaves(value: unknown, path: string): Generator<[path: string, value: string | number]> {
  if (typeof value === "string" || typeof value === "number") yield [path, value];
  else if (Array.isArray(value)) for (const each of value) yield* leaves(each, `${path}[]`);
  else if (typeof value === "object" && value !== null) {
    for (const [key, each] of Object.entries(value)) yield* leaves(each, `${path}.${key}`);
  }
}

/** True if a text contains a value, also with more zeros after its decimal point, and not as part of a longer one. */
function has(text: string, value: string | number): boolean {
  const escaped = String(value).replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const [before, after] = typeof value === "number" ? ["[\\d.]", "\\d"] : ["\\w", "\\w"];
  return new RegExp(
    `(?<!${before})${escaped}${String(value).includes(".") ? "0*" : ""}(?!${after})`,
  ).test(text);
}

test.each(rows)(
  "the report of %s (document %d) has all that the document has",
  (tool, _, document) => {
    const text = textOf(tool, document);
    const missing = [...leaves(document, tool)].filter(
      ([path, value]) => !isUnprinted(path) && !has(text, value) && !has(text, inWords(`${value}`)),
    );
    expect(missing).toEqual([]);
  },
);

test("every exception is a value of some document", () => {
  const paths = rows.flatMap(([tool, , document]) =>
    [...leaves(document, tool)].map(([path]) => path),
  );
  const known = [...paths, ...[...schemaPaths("my-ip")]];
  const unused = Object.keys(UNPRINTED).filter((pattern) => {
    const form = new RegExp(`^${pattern.replaceAll(/[.[\]]/g, "\\$&").replaceAll("*", ".*")}$`);
    return !known.some((path) => form.test(path));
  });
  expect(unused).toEqual([]);
});

/** The names that lead to the values of a schema. */
function* pathsIn(schema: z.ZodType, path: string): Generator<string> {
  const { def } = schema as unknown as {
    def: {
      type: string;
      shape?: Record<string, z.ZodType>;
      element?: z.ZodType;
      options?: z.ZodType[];
      innerType?: z.ZodType;
    };
  };
  if (def.shape) {
    for (const [key, each] of Object.entries(def.shape)) yield* pathsIn(each, `${path}.${key}`);
  } else if (def.element) yield* pathsIn(def.element, `${path}[]`);
  else if (def.options?.some(({ type }) => type === "object")) {
    for (const option of def.options) yield* pathsIn(option, path);
  } else if (def.innerType) yield* pathsIn(def.innerType, path);
  else yield path;
}

function schemaPaths(name: ToolName): Set<string> {
  const tool = TOOLS.find((each) => each.name === name);
  return new Set(pathsIn(tool?.endpoint.response() as z.ZodType, name));
}

test.each(TOOLS.map(({ name }) => name).filter((name) => name !== "my-ip"))(
  "the documents of %s have every field that the API describes",
  (tool) => {
    const found = new Set<string>();
    const walk = (value: unknown, path: string): void => {
      found.add(path);
      if (Array.isArray(value)) for (const each of value) walk(each, `${path}[]`);
      else if (typeof value === "object" && value !== null)
        for (const [key, each] of Object.entries(value)) walk(each, `${path}.${key}`);
    };
    for (const document of DOCUMENTS[tool]) walk(document, tool);
    expect([...schemaPaths(tool)].filter((path) => !found.has(path))).toEqual([]);
  },
);

describe("what is not a text or a number", () => {
  const pathsWith = (details: Partial<TraceResult["details"]>) =>
    textOf("trace", { ...PATHS, details: { ...PATHS.details, ...details } });
  const mtrWith = (hop: Partial<MtrResult["hops"][number]>, end: object = {}) => {
    const hops = MTR.hops.map((each) => ({ ...each, ...hop }));
    return textOf("mtr", { ...MTR, hops, details: { ...MTR.details, ...end } });
  };
  const dnsWith = (details: object) =>
    textOf("dns", { ...DNS, details: { ...DNS.details, ...details } });
  const withoutDnssec = { dnssec: undefined };

  // biome-ignore format: a table
  test.each<[string, string, string, boolean]>([
    ["a path that reaches the target", pathsWith({}), "9 of 17 flow labels, 4 hops", true],
    ["a path that does not", pathsWith({}), "8 of 17 flow labels, not reached: gap limit", true],
    ["a hop that limits its answers", mtrWith({ cause: "replies" }), "does not answer every probe", true],
    ["a hop that does not", mtrWith({ cause: "path" }), "address\n  1  20%   11    8  0.45  0.42  0.31  0.53  0.07   0.11  0.43  0.52  2001:db8:1::1  router.example.net  3 too late", true],
    ["a path of mtr that does not reach the target", mtrWith({}), "7 rounds (target not reached) and 3 rounds", true],
    ["an incomplete chain", dnsWith({}), "Incomplete", true],
    ["a complete one", dnsWith({ incomplete: undefined }), "Incomplete", false],
    ["an authenticated answer", dnsWith({ ...withoutDnssec, authenticated: true }), "DNSSEC          validated, as the resolver says", true],
    ["another answer", dnsWith({ ...withoutDnssec, authenticated: false }), "\nDNSSEC", false],
    ["a cone NAT", textOf("validate", VALIDATIONS[2] as object), "cone NAT", true],
    ["flags of a registry", textOf("validate", VALIDATIONS[2] as object), "may be a source: yes, may be a destination: yes, routers may forward it: yes, globally reachable: not applicable, reserved by the protocol: no", true],
    ["a source-specific group", textOf("validate", VALIDATIONS[9] as object), "source-specific", true],
    ["a temporary group", textOf("validate", VALIDATIONS[9] as object), "not permanently assigned", true],
    ["a well-known group", textOf("validate", VALIDATIONS[8] as object), "group All Nodes (RFC 4291), permanently assigned", true],
  ])("%s", (_, text, said, isSaid) => {
    if (isSaid) expect(text).toContain(said);
    else expect(text).not.toContain(said);
  });
});

describe("a draft", () => {
  const drafted = (tool: ToolName, parts: readonly object[]) => {
    const { draft, report } = reporterOf(tool);
    return report(draft?.("www.example.com", parts) as never);
  };
  const cells = (tool: ToolName, parts: readonly object[]) =>
    drafted(tool, parts).tables[0]?.rows.map((row) => row.cells.slice(0, 2));

  test("of a ping has the samples in order, and what they add up to", () => {
    const [first, third] = PING.results as [object, object];
    const [second, , fifth] = PING.details.lost as unknown as [object, object, object];
    const report = drafted("ping", [third, first, second, fifth]);
    expect(report).toMatchObject({ title: "www.example.com", isAnswered: true });
    expect(report.verdict?.text).toStartWith("The target did not reply to 1 of 4 requests.");
    expect(drafted("ping", [])).toMatchObject({ verdict: null, isAnswered: false });
    expect(report.tables[0]?.rows.map(({ cells: [seq] }) => seq)).toEqual([1, 2, 3, 5]);
    expect(report.facts).toEqual([
      { name: "Replies", value: "2 of 4, 33.3 % lost", tone: "warn" },
      { name: "Times", value: "min 11.125, mean 11.750, max 12.375 ms" },
    ]);
    expect(drafted("ping", [second])).toMatchObject({
      facts: [{ name: "Replies", value: "0 of 1, 100 % lost", tone: "bad" }],
      isAnswered: false,
    });
    expect(drafted("ping", [second]).tables[0]?.rows[0]?.cells.at(-1)).toBe("no reply in time");
  });

  test("of a trace has each hop once, in order, as it was told last", () => {
    const [first, second] = TRACE.hops as [TraceResult["hops"][number], object];
    const nameless = { ...first, hostname: null };
    expect(cells("trace", [second, nameless, first])).toEqual([
      [1, 0.412],
      [2, null],
    ]);
    const [row] = drafted("trace", [second, nameless, first]).tables[0]?.rows ?? [];
    expect(row?.cells[3]).toEqual({ ip: "fe80::9", hostname: "router.example.net" });
    expect(drafted("trace", [first])).toMatchObject({ verdict: null, isAnswered: false });
  });

  test("of a trace of several paths counts them, and shows them in the end", () => {
    const paths = PATHS.details.paths ?? [];
    const report = drafted("trace", [...PATHS.hops, ...paths]);
    expect(report.facts).toEqual([{ name: "Paths", value: "2 so far" }]);
    expect(report.tables).toHaveLength(1);
    // The search is not over, though a path reaches the target.
    expect(report.isAnswered).toBe(false);
  });

  test("of mtr is what its rounds add up to", () => {
    const rounds = [
      { round: 0, length: 9, hops: MTR.hops.map((hop) => ({ ...hop, hop: hop.hop + 3 })) },
      { round: 1, length: 3, hops: MTR.hops.slice(1) },
      { round: 2, length: 3, hops: MTR.hops.slice(0, 1) },
    ];
    const report = drafted("mtr", rounds);
    expect(report.facts).toEqual([{ name: "Rounds", value: "2, times in ms" }]);
    expect(report.tables[0]?.rows.map(({ cells: [hop] }) => hop)).toEqual([1, 2, 3]);
    expect(report).toMatchObject({ verdict: null, isAnswered: false });
    expect(drafted("mtr", []).tables[0]?.rows).toEqual([]);
    expect(drafted("mtr", rounds.slice(0, 1)).facts).toEqual([]);
    // So the rounds before it need not be kept.
    const { merge } = reporterOf("mtr");
    expect(
      drafted("mtr", [rounds.reduce<object | undefined>((a, b) => merge?.(a, b), undefined) ?? {}]),
    ).toEqual(report);
  });

  test("of the path MTU has the hops in order", () => {
    expect(cells("mtu", [...MTU.hops].reverse())).toEqual([
      [1, 9000],
      [2, 8000],
      [3, null],
      [4, 1420],
    ]);
    expect(drafted("mtu", [])).toMatchObject({ verdict: null, facts: [], isAnswered: false });
  });

  test("is of no other tool", () => {
    for (const tool of ["my-ip", "validate"] as const) {
      expect(reporterOf(tool).draft).toBeUndefined();
    }
  });
});

describe("a question is answered by", () => {
  const dnsRecords = (...types: string[]) => ({
    ...DNS,
    records: types.map((type) => ({ type, value: "x", ttl: 1 })),
  });
  const traceEnd = (reached: boolean, details: object = {}) => ({
    ...TRACE,
    details: { ...TRACE.details, reached, ...details },
  });
  const [one, other] = PATHS.details.paths as unknown as [object, object];
  const mtuCode = (code: string) => ({
    ...MTU,
    details: { ...MTU.details, verdict: { code, text: "" } },
  });
  const checkCode = (code: string) => ({
    ...CHECK,
    details: { ...CHECK.details, verdict: { code, text: "" } },
  });
  const pingOf = (received: number) => ({ ...PING, stats: { ...PING.stats, received } });
  // biome-ignore format: a table
  test.each<[string, ToolName, object, boolean]>([
    ["any address", "my-ip", MY_IP, true],
    ["any address", "validate", VALIDATIONS[0] as object, true],
    ["a record of the type", "dns", dnsRecords("CNAME", "AAAA"), true],
    ["a chain without one", "dns", dnsRecords("CNAME"), false],
    ["no record", "dns", dnsRecords(), false],
    ["one reply", "ping", pingOf(1), true],
    ["no reply", "ping", pingOf(0), false],
    ["a trace that reaches the target", "trace", traceEnd(true), true],
    ["a trace that does not", "trace", traceEnd(false), false],
    ["any of several paths", "trace", traceEnd(false, { paths: [other, one] }), true],
    ["none of several paths", "trace", traceEnd(false, { paths: [other] }), false],
    ["rounds that reach the target", "mtr", { ...MTR, details: { ...MTR.details, reached: true } }, true],
    ["rounds that do not", "mtr", { ...MTR, details: { ...MTR.details, reached: false } }, false],
    ["a size", "mtu", mtuCode("clear"), true],
    ["a black hole", "mtu", mtuCode("black-hole"), true],
    ["a least size", "mtu", mtuCode("at-least"), false],
    ["silence", "mtu", { ...mtuCode("narrowed"), mtu: null }, false],
    ["a name that works", "check", checkCode("works"), true],
    ["one that works worse than it could", "check", checkCode("slower"), true],
    ["one that works at some addresses", "check", checkCode("partly"), true],
    ["one that does not", "check", checkCode("port-closed"), false],
    ["one that nothing is known about", "check", checkCode("unknown"), false],
  ])("%s: %s", (_, tool, document, isAnswered) => {
    expect(reporterOf(tool).report(document).isAnswered).toBe(isAnswered);
  });
});

describe("the tone of", () => {
  // biome-ignore format: a table
  test.each<[ToolName, Record<string, string>]>([
    ["ping", { "no-loss": "good", loss: "bad", "no-reply": "bad", unreachable: "bad", "not-sent": "bad" }],
    ["trace", { reached: "good", unreachable: "bad", prohibited: "bad", "not-sent": "bad", loop: "bad", "gap-limit": "warn", "max-hops": "warn", "packet-too-big": "warn", "parameter-problem": "warn" }],
    ["mtr", { "no-loss": "good", loss: "bad", unclear: "warn", "no-reply": "bad", unreachable: "bad", "not-sent": "bad" }],
    ["mtu", { clear: "good", narrowed: "good", "black-hole": "bad", "below-1280": "bad", "at-least": "warn", inconclusive: "warn" }],
    ["dns", { answer: "good", "no-data": "warn", incomplete: "warn" }],
  ])("every verdict of %s", (tool, tones) => {
    const [document] = DOCUMENTS[tool] as [{ details: object }];
    const toneOf = (code: string) => {
      const details = { ...document.details, verdict: { code, text: "" } };
      return reporterOf(tool).report({ ...document, details }).verdict?.tone;
    };
    const codes = TOOLS.find(({ name }) => name === tool)?.endpoint.response() as z.ZodObject;
    const { verdict } = (codes.shape["details"] as z.ZodObject).shape as { verdict: z.ZodObject };
    expect(Object.keys(tones).toSorted()).toEqual(
      [...(verdict.shape["code"] as z.ZodEnum).options].map(String).toSorted(),
    );
    for (const [code, tone] of Object.entries(tones)) expect(`${toneOf(code)}`).toBe(tone);
  });

  test("a trace with a path that loses everything is bad, though others reach the target", () => {
    expect(reporterOf("trace").report(PATHS).verdict?.tone).toBe("bad");
  });

  test("a row is bad where something is lost on the path", () => {
    const tonesOf = (tool: ToolName, document: object) =>
      reporterOf(tool)
        .report(document)
        .tables[0]?.rows.map(({ tone = "none" }) => tone)
        .join(" ");
    expect(tonesOf("ping", PING)).toBe("none bad none bad bad bad bad");
    // The first limits its answers, and the second is silent.
    expect(tonesOf("mtr", MTR)).toBe("none none bad");
  });

  test("a record that others do not have is a warning; a resolver without an answer says nothing", () => {
    const [a, b, c] = COMPARISON.details.resolvers as unknown as [object, object, object];
    const marks = (...resolvers: object[]) => {
      const details = { ...COMPARISON.details, resolvers };
      const { tables } = reporterOf("dns").report({ ...COMPARISON, details });
      return tables[0]?.rows.map(({ tone }) => tone);
    };
    expect(marks(a, b, c)).toEqual([undefined, undefined]);
    const empty = { ...a, outcome: "no-data", records: [] };
    expect(marks(a, empty, c)).toEqual(["warn", "warn"]);
  });
});

test("the details of a DNS error are a report, those of another error are none", () => {
  const { explain, report } = reporterOf("dns");
  const { verdict: _, ...said } = COMPARISON.details;
  const details = { hostname: "no.example", resolver: "resolver_a", ...said, rcode: "SERVFAIL" };
  const shown = report(explain?.(details) as object);
  expect(shown).toMatchObject({ title: "no.example", verdict: null, isAnswered: false });
  expect(shown.tables.map(({ heading }) => heading)).toEqual([
    "resolver_a",
    "Chain of trust, as resolver_a answers",
    "resolver_b",
    "Chain of trust, as resolver_b answers",
    "resolver_c",
  ]);
  expect(explain?.({ hostname: "a..b", reason: "an empty label" })).toBeUndefined();
});

test("a link of a small MTU is said of the hop that says it, and of others by their address", () => {
  const { tables, facts } = reporterOf("mtu").report(MTU);
  expect(tables[0]?.rows[1]?.cells.at(-1)).toEqual([
    "perhaps up to 8500 bytes",
    "says Packet Too Big: 1420 bytes, not 1500",
    "says Packet Too Big: 68 bytes, not 1501, not believed: every link of IPv6 carries 1280 bytes",
  ]);
  expect(facts).toContainEqual({
    name: "2001:db8:6::6",
    value:
      "says Packet Too Big: 1502 bytes, not 1492, not believed: that is not less than was sent",
    tone: "warn",
  });
});

test("the columns of a check do not move when a step with a longer name comes", () => {
  const headOf = (name: string) => {
    const steps = [{ name, status: "ok", text: "It is open.", ms: 1 }];
    return reportText(reporterOf("check").report({ ...CHECK, steps })).split("result")[0];
  };
  expect(headOf("tcp")).toBe(headOf("compare"));
});
