/** The Model Context Protocol, as a client of the official SDK and as a raw pipe sees it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { Glob } from "bun";
import { servedEndpoint } from "../../src/server/endpoints.ts";
import CHECK from "../../src/tools/check/example.json" with { type: "json" };
import PING from "../../src/tools/ping/example.json" with { type: "json" };
import type { Endpoint } from "../../src/tools/services.ts";
import { summaryRow } from "../../src/tools/summary.ts";
import { TOOLS } from "../../src/tools/table.ts";
import { startKnot } from "../lab/dns-server.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { labMissing, programMissing, testWith, usersMissing } from "../lab/lab.ts";
import { type Mcp, startMcp } from "../lab/mcp.ts";
import { until, value } from "../lab/metrics.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { startService } from "../lab/service.ts";

const SRC = join(import.meta.dir, "../../src");

const labTest = testWith(labMissing);
const dnsTest = testWith(labMissing, programMissing("knotd"));

/** A run of 100 s, so that it ends early only if something ends it. */
const LONG = ["mtr", { target: "::1", rounds: 100, intervalMs: 1000, names: "no" }] as const;

let mcp: Mcp;

beforeAll(async () => {
  mcp = await startMcp();
});

afterAll(() => mcp[Symbol.asyncDispose]());

/** A service that answers each request with these events. */
function fakeService(...events: readonly (readonly [name: string, data: unknown])[]) {
  const texts = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  const headers = { "Content-Type": "text/event-stream" };
  return Bun.serve({
    hostname: "::1",
    port: 0,
    fetch: () => new Response(texts.join(""), { headers }),
  });
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly progress: number };
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number };
}

const request = (id: number, method: string, params: object = {}) =>
  JSON.stringify({ jsonrpc: "2.0", id, method, params });
const call = (name: string, given: object, progressToken?: string) =>
  request(2, "tools/call", {
    name,
    arguments: given,
    ...(progressToken && { _meta: { progressToken } }),
  });
const INITIALIZE = request(1, "initialize", {
  protocolVersion: "2024-11-05",
  capabilities: {},
  clientInfo: { name: "raw", version: "1" },
});

/** Runs `sixscope mcp` with these lines as its input, which ends as soon as a message is the last one. */
async function inPipe(
  lines: readonly string[],
  isLast: (message: Message) => boolean,
  args: readonly string[] = [],
) {
  const options = { env: {}, stdin: "pipe", stdout: "pipe", stderr: "pipe" } as const;
  const child = Bun.spawn([...(await sixscopeProgram()), "mcp", ...args], options);
  child.stdin.write([INITIALIZE, ...lines].map((line) => `${line}\n`).join(""));
  await child.stdin.flush();
  const messages: Message[] = [];
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of child.stdout) {
    text += decoder.decode(chunk, { stream: true });
    const whole = text.split("\n");
    text = whole.pop() ?? "";
    const more: Message[] = whole.map((line) => JSON.parse(line));
    messages.push(...more);
    if (more.some(isLast)) child.stdin.end();
  }
  expect(text).toBe("");
  const stderr = await new Response(child.stderr).text();
  return { messages, stderr, status: await child.exited };
}

/** How far a call says that it has come, before its result. */
async function progressOf({ origin }: URL, given: object, token?: string) {
  const args = ["--server", origin];
  const { messages } = await inPipe([call("ping", given, token)], ({ id }) => id === 2, args);
  expect([messages[0]?.id, messages.at(-1)?.id]).toEqual([1, 2]);
  return messages.slice(1, -1).map(({ method, params }) => {
    expect([method, params]).toEqual([
      "notifications/progress",
      expect.objectContaining({ progressToken: token }),
    ]);
    return params?.progress;
  });
}

describe.each<[string, string[], (tool: (typeof TOOLS)[number]) => Endpoint]>([
  ["here", [], ({ endpoint }) => endpoint],
  ["through a service", ["--server", "http://[::1]:1"], servedEndpoint],
])("the tools %s", (_, args, endpointOf) => {
  test("are those of the table, with parameters as JSON Schema", async () => {
    await using one = await startMcp(args);
    const { tools } = await one.client.listTools();
    const offered = TOOLS.filter(({ needsServer }) => args.length > 0 || !needsServer);
    expect(tools.map(({ name, title }) => [name, title])).toEqual(
      offered.map(({ name, label }) => [name, label]),
    );
    const ajv = addFormats(new Ajv2020({ strict: true, strictTypes: false }));
    for (const [at, { inputSchema, outputSchema, annotations, description }] of tools.entries()) {
      const endpoint = endpointOf(offered[at] as (typeof TOOLS)[number]);
      const { parameters, description: about } = endpoint;
      const isDocument = ajv.compile(outputSchema as object);
      expect(isDocument(endpoint.example)).toBe(true);
      expect(isDocument({ ...endpoint.example, more: 1 })).toBe(false);
      const isValid = ajv.compile(inputSchema);
      const entries = Object.entries(parameters);
      const example = Object.fromEntries(entries.map(([name, { example }]) => [name, example]));
      const required = entries
        .filter(([, { schema }]) => !schema().safeParse(undefined).success)
        .map(([name]) => name);
      expect(isValid(example)).toBe(true);
      expect(isValid({ ...example, packets: 1 })).toBe(false);
      expect(inputSchema.required).toEqual(required);
      for (const [name, { bounds }] of entries) {
        const beyond = bounds && ("allowed" in bounds ? "?" : bounds.maximum + 1);
        if (bounds) expect([name, isValid({ ...example, [name]: beyond })]).toEqual([name, false]);
      }
      expect(annotations).toEqual({ readOnlyHint: true, openWorldHint: true });
      expect(description).toContain(about);
    }
  });
});

describe("the tools that cannot work are not offered", () => {
  const namesOf = async ({ client }: Mcp) =>
    (await client.listTools()).tools.map(({ name }) => name);
  const withoutRightsProgram = async () => [
    "setpriv",
    "--bounding-set=-all",
    "--inh-caps=-all",
    ...(await sixscopeProgram()),
  ];
  const withoutRights = testWith(labMissing, programMissing("setpriv"));
  const groupTest = testWith(usersMissing, programMissing("setpriv"));

  withoutRights("without a socket, those that probe", async () => {
    await using one = await startMcp([], {}, await withoutRightsProgram());
    expect(await namesOf(one)).toEqual(["check", "dns", "validate", "here"]);
  });

  groupTest("where only pings work, all others that probe", async () => {
    const range = "/proc/sys/net/ipv4/ping_group_range";
    const before = readFileSync(range, "utf8");
    writeFileSync(range, "0 65535");
    await using one = await startMcp([], {}, await withoutRightsProgram());
    const offered = await namesOf(one);
    const { isError } = await one.call("ping", { target: "::1", count: 1 });
    writeFileSync(range, before);
    expect([offered, isError]).toEqual([["check", "dns", "ping", "validate", "here"], false]);
  });

  labTest("at a service, those that its interface document lacks", async () => {
    const documents = [
      { openapi: "3.1.1", paths: { "/myip": {}, "/ping/{target}": {} } },
      { error: { code: "RATE_LIMITED", message: "The limit is used up.", details: {} } },
      "no document",
    ];
    const { promise: asked, resolve } = Promise.withResolvers<string>();
    using server = Bun.serve({
      hostname: "::1",
      port: 0,
      fetch({ url }) {
        resolve(new URL(url).pathname);
        const document = documents.shift() ?? {};
        return Response.json(document, { status: "error" in Object(document) ? 429 : 200 });
      },
    });
    await using one = await startMcp(["--server", server.url.origin]);
    expect(await namesOf(one)).toEqual(["my-ip", "ping"]);
    expect(await asked).toBe("/api/v1/openapi.json");
    // One that does not say what it has is believed to have all.
    const all = TOOLS.map(({ name }) => name);
    expect([await namesOf(one), await namesOf(one)]).toEqual([all, all]);
  });
});

test("it says what it is, and where it measures", async () => {
  const { version } = await Bun.file(join(SRC, "../package.json")).json();
  expect(mcp.client.getServerVersion()).toEqual({ name: "sixscope", version });
  expect(mcp.client.getInstructions()).toStartWith("This machine measures.");
  await using other = await startMcp([], { SIXSCOPE_SERVER: "http://[::1]:1/x" });
  expect(other.client.getInstructions()).toStartWith("The service at http://[::1]:1 measures.");
});

test("validate answers as the command does", async () => {
  const address = "2001:0db8::0001";
  const { text, document, isError } = await mcp.call("validate", { address });
  const { stdout } = await sixscopeHere(["validate", address, "--json"]);
  expect([document, isError]).toEqual([JSON.parse(stdout), false]);
  expect(text).toMatch(/^2001:db8::1\nType +Documentation\n/);
});

labTest("ping answers with its verdict, and notifies of each reply", async () => {
  const given = { target: "::1", count: 3 };
  const { text, document, isError } = await mcp.call("ping", given);
  expect(text).toBe("The target replied to all 3 requests.");
  expect(document).toMatchObject({ target: "::1", stats: { received: 3 } });
  expect(isError).toBe(false);
  const { messages } = await inPipe([call("ping", given, "a")], ({ id }) => id === 2);
  expect(messages.slice(1, -1).map(({ params }) => params as unknown)).toEqual(
    [1, 2, 3].map((at) => ({
      progressToken: "a",
      progress: at,
      total: 3,
      message: `request ${at}`,
    })),
  );
});

labTest("here judges this machine, and notifies of each step", async () => {
  const { messages } = await inPipe([call("here", {}, "a")], ({ id }) => id === 2);
  const { content, structuredContent, isError } = messages.at(-1)?.result ?? {};
  // Nothing but loopback is in the namespace of the test.
  const text = "This machine has no interface but loopback: connect it to a network.";
  expect(content).toContainEqual({ type: "text", text });
  expect(structuredContent).toMatchObject({ details: { verdict: { code: "link-down", text } } });
  expect(isError).toBe(false);
  const notified = messages.map(
    ({ params }) => (params as { message?: string } | undefined)?.message,
  );
  for (const step of ["kernel", "link", "resolvers", "beyond"])
    expect(notified).toEqual(expect.arrayContaining([`begin ${step}`, `step ${step}`]));
  const wrong = await mcp.call("here", { interface: "../x" });
  const details = { parameter: "interface", value: "../x", allowed: [] };
  const message = "interface: there is none but the loopback.";
  expect([wrong.isError, wrong.document]).toMatchObject([
    true,
    { error: { code: "INVALID_PARAMETER", details, message } },
  ]);
});

dnsTest("dns answers with records, and with errors as results", async () => {
  await using knot = await startKnot({
    zones: { "example.test.": "@ SOA ns host 1 60 60 60 60\n@ NS ns\nns AAAA ::1\n" },
  });
  const environment = { SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}` };
  await using one = await startMcp([], environment);
  const found = await one.call("dns", { hostname: "ns.example.test", type: "aaaa" });
  expect(found.text).toBe("resolver_a has 1 AAAA record for ns.example.test.");
  expect(found.document).toMatchObject({ records: [{ type: "AAAA", value: "::1" }] });
  const missing = await one.call("dns", { hostname: "no.example.test" });
  expect(missing).toMatchObject({
    isError: true,
    document: { error: { code: "HOSTNAME_NOT_FOUND", message: missing.text } },
  });
});

test.each<[string, Record<string, unknown>, string, string]>([
  ["validate", { address: "1::2::3" }, "INVALID_ADDRESS", '"1::2::3" is not a valid IPv6 address'],
  ["validate", {}, "INVALID_PARAMETER", "address: missing; an IPv6 address."],
  ["ping", {}, "INVALID_PARAMETER", "target: missing; an example is www.example"],
  ["ping", { target: "" }, "INVALID_HOSTNAME", '"" is not a valid hostname: '],
  ["ping", { target: ["::1"] }, "INVALID_PARAMETER", "target: give a text or a number."],
  ["ping", { target: "::1", count: 11 }, "INVALID_PARAMETER", "count: a number from 1 to 10."],
  ["ping", { target: "::1", count: 1.5 }, "INVALID_PARAMETER", "count: a number from 1 to 10."],
  ["ping", { target: "::1", count: null }, "INVALID_PARAMETER", "count: a number from 1 to 10."],
  [
    "ping",
    { target: "::1", packets: 2 },
    "INVALID_PARAMETER",
    "packets: ping has target, count, protocol, port.",
  ],
  ["dns", { hostname: null }, "INVALID_PARAMETER", "hostname: give a text or a number."],
  ["ping", { target: "::1", constructor: 1 }, "INVALID_PARAMETER", "constructor: ping has"],
  ["ping", { target: "::1", from: "ams" }, "INVALID_PARAMETER", "from: ping has"],
  ["dns", { hostname: "a..b" }, "INVALID_HOSTNAME", '"a..b" is not a valid hostname'],
])("%s %j is an error for the model: %s", async (tool, args, code, message) => {
  const { text, document, isError } = await mcp.call(tool, args);
  expect([text, isError]).toEqual([expect.stringContaining(message), true]);
  expect(document).toMatchObject({ error: { code, message: text, details: {} } });
});

test("what only a service knows is an error that says so", async () => {
  expect(await mcp.call("my-ip")).toEqual({
    text: expect.stringContaining("only a service sees your address"),
    document: undefined,
    isError: true,
  });
});

test("an unknown tool is an error of the protocol", async () => {
  await expect(mcp.call("nmap", {})).rejects.toThrow("no tool is nmap");
});

test("a model has the ports of a service, and the targets that the settings allow", async () => {
  const tcp = { target: "::1", protocol: "tcp" };
  expect(await mcp.call("ping", { ...tcp, port: 22 })).toMatchObject({
    text: expect.stringContaining("port: 22 is not one that this service probes: 53, 80, 443"),
    document: { error: { code: "INVALID_PARAMETER" } },
  });
  // A command of a user may talk to its own machine.
  expect(await mcp.call("check", { name: "::1" })).toMatchObject({
    document: { details: { verdict: { code: "not-public" } } },
  });
  const environment = { SIXSCOPE_PROBE_PORTS: "22", SIXSCOPE_TARGETS: "global" };
  await using one = await startMcp([], environment);
  expect(await one.call("ping", { ...tcp, port: 22 })).toMatchObject({
    document: { error: { code: "TARGET_NOT_ALLOWED" } },
  });
});

labTest("a cancelled run closes its sockets, and no more than 16 run at once", async () => {
  const idle = mcp.sockets();
  const gone = new AbortController();
  const started = Array.from({ length: 16 }, () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const options = { signal: gone.signal, onprogress: resolve };
    return { first: promise, end: mcp.call(...LONG, options).catch((error: Error) => error) };
  });
  await Promise.all(started.map(({ first }) => first));
  expect(mcp.sockets()).toBeGreaterThanOrEqual(idle + 16);
  const refused = await mcp.call("ping", { target: "::1" });
  expect(refused.document).toMatchObject({
    error: { code: "TOO_MANY_PROBES", details: { limit: 16 } },
  });
  gone.abort();
  await until(async () => mcp.sockets() <= idle);
  for (const { end } of started) expect(await end).toBeInstanceOf(Error);
  expect((await mcp.call("ping", { target: "::1", count: 1 })).isError).toBe(false);
});

labTest(
  "through a service, calls have its key, its locations and its view of the caller",
  async () => {
    const environment = { SIXSCOPE_LOCATION: "ams", SIXSCOPE_METRICS_LISTEN: "[::1]:0" };
    await using service = await startService(environment);
    const { origin } = new URL(service.urls[1] as string);
    await using one = await startMcp([], { SIXSCOPE_SERVER: origin, SIXSCOPE_KEY: service.key });
    expect(await one.call("my-ip")).toMatchObject({ text: "::1", document: { isIPv6: true } });
    const { text, document } = await one.call("ping", { target: "::1", count: 2, from: "ams" });
    expect(text).toBe("The target replied to all 2 requests.");
    expect(document).toMatchObject({ details: { location: "ams" } });
    const wrong = await one.call("ping", { target: "::1", from: "nowhere" });
    expect(wrong).toMatchObject({
      isError: true,
      document: { error: { code: "LOCATION_NOT_FOUND" } },
    });
    const gone = new AbortController();
    const isUsed = async () => (await value(service, "sixscope_probe_slots_used")) > 0;
    const cancelled = one.call(...LONG, { signal: gone.signal }).catch((error: Error) => error);
    await until(isUsed);
    gone.abort();
    await until(async () => !(await isUsed()));
    expect(await cancelled).toBeInstanceOf(Error);
    await using keyless = await startMcp(["--server", origin]);
    const { document: refused } = await keyless.call("ping", { target: "::1" });
    expect(refused).toMatchObject({ error: { code: "UNAUTHORIZED" } });
  },
);

test("without a service at its URL, a call is an error", async () => {
  await using one = await startMcp(["--server", "http://[::1]:1"]);
  const { text, isError } = await one.call("validate", { address: "::1" });
  expect([text, isError]).toEqual([expect.stringContaining("cannot get an answer from"), true]);
});

describe("progress", () => {
  const sample = (seq: number) => ["sample", { ...PING.results[0], seq }] as const;
  const target = PING.target;

  test("never goes back, if replies come in another order", async () => {
    using fake = fakeService(sample(2), sample(1), sample(3), ["result", PING]);
    expect(await progressOf(fake.url, { target }, "a")).toEqual([2, 3]);
  });

  test("of a check names its steps", async () => {
    const [step] = CHECK.steps;
    using fake = fakeService(
      ["begin", { name: step?.name }],
      ["step", step ?? {}],
      ["result", CHECK],
    );
    const args = ["--server", fake.url.origin];
    const asked = [call("check", { name: CHECK.name }, "a")];
    const { messages } = await inPipe(asked, ({ id }) => id === 2, args);
    expect(messages.slice(1, -1).map(({ params }) => params as unknown)).toEqual([
      { progressToken: "a", progress: 1, message: "begin names" },
      { progressToken: "a", progress: 2, message: "step names" },
    ]);
  });

  test("is told to those who ask for it", async () => {
    using fake = fakeService(sample(1), ["result", PING]);
    expect(await progressOf(fake.url, { target })).toEqual([]);
  });

  test("of several locations is that of their runs, and the verdict is theirs", async () => {
    const summary = [summaryRow("ams", PING), summaryRow("fra")];
    const details = { summary, matching: 2 };
    const result = { ...PING, details: { ...PING.details, location: "ams" } };
    const [message, code] = ["no agent answered", "LOCATION_TIMEOUT"];
    const error = { code, message, details: { location: "fra" } };
    const locations = [
      { location: "ams", result },
      { location: "fra", error },
    ];
    using fake = fakeService(
      ["summary", details],
      ["sample", { ...PING.results[0], location: "ams" }],
      ["location", locations[0]],
      ["result", { target, details, locations }],
    );
    await using one = await startMcp(["--server", fake.url.origin]);
    const { text, isError } = await one.call("ping", { target, from: "all" });
    expect(text).toBe(`ams: ${PING.details.verdict.text}\nfra: ${message}`);
    expect(isError).toBe(false);
    expect(await progressOf(fake.url, { target, from: "all" }, "a")).toEqual([1]);
  });
});

describe("the pipe", () => {
  test("carries the protocol alone, and lines that are not of it do no harm", async () => {
    const strange = ["{broken", '{"foo":1}', "", "null", "[]", '"\u0000"'];
    const lines = [...strange, request(3, "no/method"), request(2, "ping")];
    const { messages, stderr, status } = await inPipe(lines, ({ id }) => id === 2);
    const byId = Object.fromEntries(messages.map((message) => [message.id, message]));
    expect(Object.keys(byId)).toEqual(["1", "2", "3"]);
    expect(byId[1]?.result?.["protocolVersion"]).toBe("2024-11-05");
    expect(byId[2]?.result).toEqual({});
    expect(byId[3]?.error?.code).toBe(-32601);
    expect(stderr.trim().split("\n")).toEqual(
      strange.map(() => expect.stringContaining("a line of standard input that is not a message")),
    );
    expect(status).toBe(0);
  });

  test("gets whole answers also at its end, if its reader is slow", async () => {
    const lines = Array.from({ length: 8 }, (_, at) => request(at + 2, "tools/list"));
    const command = [...(await sixscopeProgram()), "mcp"];
    const child = Bun.spawn(["sh", "-c", '"$@" | (sleep 0.5; cat)', "sh", ...command], {
      env: { PATH: process.env["PATH"] },
      stdin: new Blob([INITIALIZE, ...lines].map((line) => `${line}\n`)),
      stdout: "pipe",
      stderr: "pipe",
    });
    const said = await new Response(child.stdout).text();
    const answers = said.trimEnd().split("\n");
    expect(answers.map((line) => JSON.parse(line).id)).toEqual([
      1,
      ...lines.keys().map((at) => at + 2),
    ]);
    expect(await new Response(child.stderr).text()).toBe("");
  });

  labTest("ends a run with its end", async () => {
    const isBegun = ({ method }: Message) => method === "notifications/progress";
    const { messages, status } = await inPipe([call(...LONG, "a")], isBegun);
    expect(messages.map(({ id }) => id)).not.toContain(2);
    expect([messages.some(isBegun), status]).toEqual([true, 0]);
  });
});

test("settings that are not valid end it at once", async () => {
  const { status, stderr } = await sixscopeHere(["mcp"], { SIXSCOPE_RESOLVER_A: "nowhere" });
  expect([status, stderr]).toEqual([2, expect.stringContaining("SIXSCOPE_RESOLVER_A")]);
});

test("a key does not go over plain HTTP", async () => {
  const args = ["mcp", "--server", "http://six.example.com", "--key-from", "KEY"];
  const { status, stderr } = await sixscopeHere(args, { KEY: "sx_1" });
  expect([status, stderr]).toEqual([2, expect.stringContaining("others could read the API key")]);
});

test("no other command loads the SDK", () => {
  const importers = [...new Glob("**/*.{ts,tsx}").scanSync(SRC)].filter((path) =>
    /^(?!.*await import).*"(@modelcontextprotocol\/|\.\/mcp\.ts)/m.test(
      readFileSync(join(SRC, path), "utf8"),
    ),
  );
  expect(importers).toEqual(["cli/mcp.ts"]);
});
