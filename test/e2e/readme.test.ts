/** What the README shows is what a reader gets: every curl with its answer, against a running service. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ERRORS } from "../../src/http/errors.ts";
import { interfaceDocument } from "../lab/conformance.ts";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { type Service, startService } from "../lab/service.ts";

const README = readFileSync(join(import.meta.dir, "../../README.md"), "utf8");

/** The zone that the README's DNS examples are about. */
const ZONE = `
$TTL 300
@    SOA ns hostmaster 1 3600 900 604800 60
@    NS  ns
@    MX  10 mail
ns   AAAA ::1
www  CNAME web
web  AAAA 2001:db8::80
mail AAAA 2001:db8::25
@    TXT "v=spf1 mx -all"
`;

const EXAMPLE = /```sh\n(?:[^`]*\n)?curl -s ([^\n]*)\n```\n\n```json\n([^`]+)```/g;
const examples = [...README.matchAll(EXAMPLE)].map(([, command = "", answer = ""]) => ({
  path: /'http:\/\/\[::1\]:8080(\/[^']*)'/.exec(command)?.[1] ?? "",
  withKey: command.includes("X-API-Key"),
  answer: JSON.parse(answer) as unknown,
}));

/** Rows of the README's table of types: the type, and an example of an address. */
const typeRows = [...README.matchAll(/^\| `([A-Z]\w+)` \| `([0-9a-f.]*:[0-9a-f:.]+)` \|/gm)].map(
  ([, type = "", address = ""]) => [type, address] as const,
);

const missing = labMissing ?? programMissing("knotd");
const labTest = testWith(missing);

let knot: KnotServer;
let service: Service;

beforeAll(async () => {
  if (missing !== null) return;
  knot = await startKnot({ zones: { "example.test.": ZONE } });
  service = await startService({ SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}` });
});

afterAll(async () => {
  if (missing !== null) return;
  await service[Symbol.asyncDispose]();
  await knot.stop();
});

/** Leaves out what differs from run to run. */
function withoutMeasurements(value: unknown): unknown {
  const VOLATILE = ["rtt", "min", "avg", "max", "queryTime", "flowLabel", "server"];
  return JSON.parse(
    JSON.stringify(value, (name, entry) => (VOLATILE.includes(name) ? "measured" : entry)),
  );
}

async function get(path: string, withKey: boolean): Promise<unknown> {
  const headers: Record<string, string> = withKey ? { "X-API-Key": service.key } : {};
  const response = await fetch(service.urls[1] + path.replace("/api/v1", ""), { headers });
  return await response.json();
}

labTest("there are examples of all endpoints and of an error", () => {
  const paths = examples.map(({ path }) => path.split(/[/?]/)[3]);
  expect(new Set(paths)).toEqual(new Set(["myip", "validate", "dns", "ping", "traceroute"]));
  expect(
    examples.some(({ answer }) => typeof answer === "object" && "error" in (answer ?? {})),
  ).toBe(true);
});

labTest.each(examples)("curl $path", async ({ path, withKey, answer }) => {
  const actual = await get(path, withKey);

  expect(withoutMeasurements(actual)).toEqual(withoutMeasurements(answer));
});

labTest("every type has an example in the table, and it is of that type", async () => {
  for (const [type, address] of typeRows) {
    const answer = await get(`/api/v1/validate?address=${address}`, false);
    expect({ address, ...(answer as object) }).toMatchObject({ address, type });
  }
  expect(new Set(typeRows.map(([type]) => type)).size).toBe(29);
});

test("the table of endpoints is that of the interface document", () => {
  const rows = README.matchAll(/^\| `(\/[\w{}./]+)` \|(.*)\|( needed)? \|$/gm);
  const documented = Object.entries(interfaceDocument.paths).map(([path, { get }]) => ({
    path,
    parameters: get.parameters.filter(({ in: place }) => place === "query").map(({ name }) => name),
    needsKey: get.security.length === 1,
  }));

  const told = [...rows].map(([, path, parameters = "", key]) => ({
    path,
    parameters: [...parameters.matchAll(/(?:^ |; )`(\w+)`/g)].map(([, name]) => name),
    needsKey: key === " needed",
  }));
  expect(told).toEqual(documented);
});

test("the table of errors is that of the interface", () => {
  const rows = README.matchAll(/^\| (\d{3}) \| `([A-Z0-9_]+)` \| (.+) \|$/gm);
  const told = [...rows].map(([, status, code = "", meaning]) => [
    code,
    { status: Number(status), meaning },
  ]);
  const kinds = Object.entries(ERRORS).map(([code, { status, meaning }]) => [
    code,
    { status, meaning },
  ]);
  expect(told).toEqual(kinds);
});

labTest("the interface document is where the README says", async () => {
  const [, url = ""] = /curl -s '([^']*)' > sixscope\.json/.exec(README) ?? [];
  expect(await get(new URL(url).pathname, false)).toEqual(interfaceDocument);
});
