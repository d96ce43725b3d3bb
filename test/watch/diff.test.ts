import { expect, test } from "bun:test";
import check from "../../src/tools/check/example.json" with { type: "json" };
import dns from "../../src/tools/dns/example.json" with { type: "json" };
import here from "../../src/tools/here/example.json" with { type: "json" };
import mtr from "../../src/tools/mtr/example.json" with { type: "json" };
import mtu from "../../src/tools/mtu/example.json" with { type: "json" };
import ping from "../../src/tools/ping/example.json" with { type: "json" };
import trace from "../../src/tools/trace/example.json" with { type: "json" };
import { diff, toolOf } from "../../src/watch/diff.ts";
import { randomFrom } from "../lab/simulation.ts";
import { mtrOf, type Network, pathsOf, traceOf, wayOf } from "./simulated.ts";

const EXAMPLES = { check, dns, here, mtr, mtu, ping, trace };

test.each(Object.entries(EXAMPLES))("%s is told apart, and equals itself", (tool, document) => {
  expect(toolOf(document)).toBe(tool as keyof typeof EXAMPLES);
  expect(diff(document, structuredClone(document))).toEqual([]);
});

/** A copy of a document with the values at some paths, such as `details.verdict.code`, replaced. */
function withValues<Document extends object>(document: Document, values: Record<string, unknown>) {
  const copy = structuredClone(document);
  for (const [path, value] of Object.entries(values)) {
    const keys = path.split(".");
    const last = keys.pop() as string;
    const place = keys.reduce(
      (at, key) => (at as Record<string, object>)[key] as object,
      copy as object,
    );
    (place as Record<string, unknown>)[last] = value;
  }
  return copy;
}

const verdict = (code: string) => ({ "details.verdict": { code, text: `It is ${code}.` } });
const certificate = (sha256: string) => ({
  "steps.3.certificate": { sha256, notAfter: "2027-05-01T00:00:00Z", issuer: "Example CA" },
});
const hop = (ip: string | null) => ({ hop: 1, ip, hostname: null, rtt: 1 });

test.each<[reason: string, before: object, after: object, kinds: string[]]>([
  ["a name that works no more", check, withValues(check, verdict("port-silent")), ["verdict"]],
  ["loss is a level", mtr, withValues(mtr, verdict("loss")), []],
  ["loss of a ping too", ping, withValues(ping, verdict("loss")), []],
  ["silence is none", ping, withValues(ping, verdict("no-reply")), ["verdict"]],
  [
    "an error about the target",
    ping,
    { error: { code: "HOSTNAME_NOT_FOUND", message: "It does not exist.", details: {} } },
    ["verdict"],
  ],
  ["another address", ping, withValues(ping, { ip: "2001:db8::99" }), ["addresses"]],
  [
    "another one of the same addresses",
    withValues(ping, { "details.addresses": [{ ip: "2001:db8::1" }, { ip: "2001:db8::2" }] }),
    withValues(ping, {
      ip: "2001:db8::2",
      "details.addresses": [{ ip: "2001:db8::2" }, { ip: "2001:db8::1" }],
    }),
    [],
  ],
  ["a record", dns, withValues(dns, { "records.1.value": "2001:db8::81" }), ["addresses"]],
  ["a TTL", dns, withValues(dns, { "records.1.ttl": 7 }), []],
  [
    "one of all resolvers",
    withValues(dns, { "details.resolvers": [{ resolver: "resolver_b", outcome: "answer" }] }),
    withValues(dns, { "details.resolvers": [{ resolver: "resolver_b", outcome: "timeout" }] }),
    ["resolvers"],
  ],
  [
    "DNSSEC",
    withValues(dns, { "details.dnssec": { verdict: "secure", text: "It is secure." } }),
    withValues(dns, { "details.dnssec": { verdict: "bogus", text: "It is bogus." } }),
    ["verdict"],
  ],
  [
    "a certificate",
    withValues(check, certificate("aa")),
    withValues(check, certificate("bb")),
    ["certificate"],
  ],
  ["a certificate that was not seen", withValues(check, certificate("aa")), check, []],
  ["a finding", check, withValues(check, { "steps.4.finding": "http-error" }), ["finding"]],
  ["a smaller MTU", mtu, withValues(mtu, { mtu: 1280, atMost: 1280 }), ["mtu"]],
  ["an MTU that is not sure", mtu, withValues(mtu, { mtu: 1280 }), []],
  ["lifetimes", here, withValues(here, { "routes.0.expiresSeconds": 1 }), []],
  ["a gateway", here, withValues(here, { "routes.0.via": "fe80::99" }), ["path"]],
  ["a router", trace, withValues(trace, { "hops.0.ip": "2001:db8:1::99" }), ["path"]],
  ["a silent hop", trace, withValues(trace, { "hops.0": hop(null) }), []],
  [
    "a hop that others saw",
    trace,
    withValues(trace, {
      "hops.0": { ...hop("2001:db8:1::99"), details: { unanswered: "seen-by-others" } },
    }),
    [],
  ],
  [
    "another flow label",
    trace,
    withValues(trace, { "hops.0.ip": "2001:db8:1::99", "details.flowLabel": 7 }),
    [],
  ],
  [
    "the kinds in their order",
    withValues(check, certificate("aa")),
    withValues(check, {
      ...certificate("bb"),
      ...verdict("port-silent"),
      "steps.4.finding": "http-error",
    }),
    ["verdict", "certificate", "finding"],
  ],
  ["two tools", ping, trace, ["verdict"]],
])("%s", (_reason, before, after, kinds) => {
  expect(diff(before, after).map(({ kind }) => kind as string)).toEqual(kinds);
});

test("several locations are compared each with itself", () => {
  const several = (code: string) => ({
    target: "www.example.com",
    locations: [
      { location: "ams", result: ping },
      { location: "fra", result: withValues(ping, verdict(code)) },
    ],
  });
  const [difference, ...others] = diff(several("no-loss"), several("no-reply"));
  expect(difference?.text).toStartWith("fra: ");
  expect(others).toEqual([]);
});

const DOCUMENTS = { trace: traceOf, mtr: mtrOf, paths: pathsOf };

test.each<[tool: keyof typeof DOCUMENTS, network: Network]>([
  ["trace", { choice: "flow", silence: 0.1 }],
  ["mtr", { choice: "flow", silence: 0.1 }],
  ["mtr", { choice: "packet", silence: 0.1 }],
  ["paths", { choice: "flow", silence: 0 }],
])("of 1,000 pairs of %s through eight equal ways, at most 5 differ: %j", (tool, network) => {
  const make = DOCUMENTS[tool];
  const random = randomFrom(1);
  const pairs = Array.from({ length: 1_000 }, () => {
    // A search for all paths may begin with another label; see `Network`.
    const labels = [1, 2].map(() => 1 + Math.floor(random() * 0xfffff));
    const [first = 1, second = 1] = tool === "paths" ? labels : [labels[0], labels[0]];
    return diff(make(network, first, random), make(network, second, random));
  });
  expect(pairs.filter(({ length }) => length > 0).length).toBeLessThanOrEqual(5);
});

test.each(["trace", "mtr", "paths"] as const)(
  "in at least 99 of 100 pairs of %s, a router in another's place is named with its hop",
  (tool) => {
    const make = DOCUMENTS[tool];
    const random = randomFrom(2);
    const named = Array.from({ length: 300 }, () => {
      const label = 1 + Math.floor(random() * 0xfffff);
      const place = 1 + Math.floor(random() * 5);
      const way = place === 3 || place === 4 ? wayOf(label) : 0;
      const network = { choice: "flow", silence: 0 } as const;
      const replaced = { hop: place, way };
      const found = diff(
        make(network, label, random),
        make({ ...network, replaced }, label, random),
      );
      return found.length === 1 && found[0]?.kind === "path" && found[0].hop === place;
    });
    expect(named.filter(Boolean).length).toBeGreaterThanOrEqual(297);
  },
);

test.each<[about: string, counts: readonly number[]]>([
  ["two addresses answered 10,000,000,000 times", [1e10, 1e10]],
  ["40 addresses have sums that all differ", Array.from({ length: 40 }, (_, at) => 2 ** at)],
])(
  "paths are compared at once, also where %s",
  (_, counts) => {
    const [before, after] = ["a", "b"].map((letter) => {
      const addresses = counts.map((received, at) => ({
        ip: `2001:db8::${letter}:${at}`,
        received,
      }));
      return { ...mtr, hops: [{ ...mtr.hops[0], hop: 1, addresses }] };
    });
    expect(diff(before as object, after as object)).toMatchObject([{ kind: "path", hop: 1 }]);
  },
  5_000,
);

test("a finding is told in words", () => {
  const [difference] = diff(check, withValues(check, { "steps.4.finding": "http-error" }));
  const { name } = check.steps[4] as { name: string };
  expect(difference).toMatchObject({
    text: `The step ${name} finds: http error.`,
    after: "http-error",
  });
});

test("a longer way is told once, where it begins", () => {
  const [before, after] = [
    ["a", "b", "f"],
    ["a", "c", "b", "f"],
  ].map((letters) => ({
    ...trace,
    hops: letters.map((letter, at) => ({ hop: at + 1, ip: `2001:db8::${letter}`, hostname: null })),
  }));
  const [difference, ...others] = diff(before as object, after as object);
  expect(difference).toMatchObject({
    kind: "path",
    hop: 2,
    before: ["2001:db8::b"],
    after: ["2001:db8::c"],
  });
  expect(others).toEqual([]);
});
