/** The OpenAPI document: valid, and true to the contract and to the responses of the service. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { SEVERAL } from "../../src/api/endpoint.ts";
import {
  interfaceDocument,
  mismatches,
  requireDocumented,
  watchAnswers,
} from "../lab/conformance.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";

const [PROGRAM] = await sixscopeProgram();

const { paths, components } = interfaceDocument;

function operationAt(path: string) {
  const operation = paths[path]?.get;
  if (operation === undefined) throw new Error(`the document has no ${path}`);
  return operation;
}

function schemaNamed(name: string) {
  const schema = components.schemas[name];
  if (schema === undefined) throw new Error(`the document has no schema ${name}`);
  return schema;
}

describe("the document", () => {
  test("is valid OpenAPI 3.1", async () => {
    const validator = new Validator();
    expect(await validator.validate(structuredClone(interfaceDocument))).toEqual({ valid: true });
    expect(validator.version).toBe("3.1");
  });

  test("gives generators and linters nothing to warn about", () => {
    const { info, tags } = interfaceDocument;
    expect(info.contact.name).toBeString();
    const names: string[] = tags.map(({ name }) => name);
    for (const { get } of Object.values(paths)) {
      expect(names).toEqual(expect.arrayContaining(get.tags));
      expect(get.tags).not.toBeEmpty();
    }
    // Errors overlap in all but their code, which only `anyOf` allows.
    expect(JSON.stringify(interfaceDocument)).not.toMatch(/"oneOf":\[{"\$ref"/);
  });

  test("has exactly the components that it refers to", () => {
    const text = JSON.stringify(interfaceDocument);
    const references = [...text.matchAll(/"#\/components\/(\w+\/[^"]+)"/g)];
    const present = (["schemas", "headers", "examples"] as const).flatMap((kind) =>
      Object.keys(components[kind]).map((name) => `${kind}/${name}`),
    );
    expect(new Set(references.map(([, name = ""]) => name))).toEqual(new Set(present));
  });

  test("has examples that match its own schemas", () => {
    const wrong: string[] = [];
    const check = (what: string, schema: object, value: unknown) =>
      wrong.push(...mismatches(schema, value).map((problem) => `${what} ${problem}`));
    for (const [path, { get }] of Object.entries(paths)) {
      for (const { name, schema, example } of get.parameters) check(name, schema, example);
      for (const [status, { content }] of Object.entries(get.responses)) {
        const { schema, examples } = content["application/json"];
        expect(Object.keys(examples).length).toBeGreaterThan(0);
        for (const [name, example] of Object.entries(examples)) {
          const { value } = "$ref" in example ? exampleOf(name) : example;
          check(`${path} ${status} ${name}`, schema, value);
        }
      }
    }
    for (const [name, { schema, example }] of Object.entries(components.headers)) {
      check(name, schema, example);
    }
    expect(wrong).toEqual([]);
  });
});

function exampleOf(code: string) {
  const examples: Readonly<Record<string, { readonly value: unknown }>> = components.examples;
  return examples[code] ?? { value: undefined };
}

/** The contract, written independently of the code. */
describe("the contract in the document", () => {
  const TYPES = ["AAAA", "A", "MX", "TXT", "NS", "CNAME", "SOA", "PTR"];
  const MORE_TYPES = [
    "SRV",
    "CAA",
    "HTTPS",
    "SVCB",
    "DS",
    "DNSKEY",
    "TLSA",
    "SSHFP",
    "NAPTR",
    "RRSIG",
  ];
  const type = {
    name: "type",
    in: "query",
    required: false,
    schema: {
      anyOf: [
        { type: "string", enum: expect.arrayContaining([...TYPES, ...MORE_TYPES]) },
        { type: "string", pattern: expect.stringContaining("TYPE") },
      ],
      default: "AAAA",
    },
  };
  const RESOLVERS = ["resolver_a", "resolver_b", "resolver_c", "all", "zone"];
  const target = { name: "target", in: "path", required: true, schema: { type: "string" } };
  const integer = (name: string, maximum: number, fallback: number, minimum = 1) => ({
    name,
    in: "query",
    required: false,
    schema: { type: "integer", minimum, maximum, default: fallback },
  });
  const flowLabel = {
    name: "flowLabel",
    in: "query",
    required: false,
    schema: { type: "integer", minimum: 0, maximum: 0xfffff },
  };
  const port = {
    ...flowLabel,
    name: "port",
    schema: { type: "integer", minimum: 1, maximum: 65_535 },
  };
  const choice = (name: string, words: string[], fallback: string) => ({
    name,
    in: "query",
    required: false,
    schema: { type: "string", enum: words, default: fallback },
  });
  const NAME = "[a-z0-9-]{1,32}";
  const from = {
    name: "from",
    in: "query",
    required: false,
    schema: { type: "string", pattern: `^(?!all,|.*,all(,|$))${NAME}(,${NAME}){0,31}$` },
  };
  const LOCATION_ERRORS = ["LOCATION_NOT_FOUND", "LOCATION_TIMEOUT", "LOCATION_UNAVAILABLE"];
  const PROBE_ERRORS = [
    ...LOCATION_ERRORS,
    "INVALID_ADDRESS",
    "INVALID_HOSTNAME",
    "TARGET_NOT_ALLOWED",
    "UNAUTHORIZED",
    "KEYS_UNAVAILABLE",
    "HOSTNAME_NOT_FOUND",
    "NO_IPV6_ADDRESS",
    "TOO_MANY_PROBES",
    "RESOLVER_TIMEOUT",
    "RESOLVER_FAILURE",
    "ICMP_UNAVAILABLE",
    "NETWORK_UNREACHABLE",
  ];
  const DNS_ERRORS = [
    ...LOCATION_ERRORS,
    "INVALID_ADDRESS",
    "INVALID_HOSTNAME",
    "HOSTNAME_NOT_FOUND",
    "TOO_MANY_PROBES",
    "RESOLVER_TIMEOUT",
    "RESOLVER_FAILURE",
  ];

  const KEYED = ["UNAUTHORIZED", "KEYS_UNAVAILABLE"];
  const watchName = { ...target, name: "name" };
  const points = (maximum: number, fallback?: number) => {
    const { default: _, ...schema } = integer("points", maximum, 0).schema;
    const preset = fallback === undefined ? {} : { default: fallback };
    return { ...integer("points", maximum, 0), schema: { ...schema, ...preset } };
  };
  const moment = (name: string, fallback: string) => ({
    ...{ name, in: "query", required: false },
    schema: expect.objectContaining({ default: fallback }),
  });

  // biome-ignore format: a table
  const protocol = [choice("protocol", ["icmp", "tcp", "udp"], "icmp"), port];
  const endpoints: [path: string, parameters: object[], errors: string[]][] = [
    ["/myip", [], []],
    [
      "/check/{name}",
      [{ ...target, name: "name" }, integer("port", 65_535, 443), from, integer("limit", 32, 32)],
      [
        ...LOCATION_ERRORS,
        ...["INVALID_ADDRESS", "INVALID_HOSTNAME", "TOO_MANY_PROBES"],
        ...["UNAUTHORIZED", "KEYS_UNAVAILABLE"],
      ],
    ],
    [
      "/here",
      [
        { name: "interface", in: "query", required: false, schema: { type: "string" } },
        ...[from, integer("limit", 32, 32)],
      ],
      [
        ...LOCATION_ERRORS,
        ...["TOO_MANY_PROBES", "ICMP_UNAVAILABLE", "UNAUTHORIZED", "KEYS_UNAVAILABLE"],
      ],
    ],
    [
      "/validate",
      [{ name: "address", in: "query", required: true, schema: { type: "string" } }],
      ["INVALID_ADDRESS"],
    ],
    [
      "/dns/{hostname}",
      [
        { ...target, name: "hostname" },
        type,
        choice("resolver", RESOLVERS, "resolver_a"),
        choice("dnssec", ["no", "yes"], "no"),
        choice("class", ["IN", "CH"], "IN"),
        choice("nsid", ["no", "yes"], "no"),
        choice("transport", ["any", "tcp"], "any"),
        choice("recursion", ["yes", "no"], "yes"),
        from,
        integer("limit", 32, 32),
      ],
      DNS_ERRORS,
    ],
    [
      "/ping/{target}",
      [target, integer("count", 10, 4), ...protocol, from, integer("limit", 32, 32)],
      PROBE_ERRORS,
    ],
    [
      "/traceroute/{target}",
      [
        target,
        integer("maxHops", 64, 30),
        integer("paths", 16, 1),
        flowLabel,
        choice("names", ["yes", "no"], "yes"),
        ...protocol,
        from,
        integer("limit", 32, 32),
      ],
      PROBE_ERRORS,
    ],
    [
      "/mtr/{target}",
      [
        target,
        integer("rounds", 100, 10),
        integer("intervalMs", 1000, 200, 100),
        integer("maxHops", 64, 30),
        flowLabel,
        choice("names", ["yes", "no"], "yes"),
        ...protocol,
        from,
        integer("limit", 32, 32),
      ],
      PROBE_ERRORS,
    ],
    [
      "/mtu/{target}",
      [target, flowLabel, choice("names", ["yes", "no"], "yes"), from, integer("limit", 32, 32)],
      PROBE_ERRORS,
    ],
    ["/watch", [points(144)], KEYED],
    [
      "/watch/{name}",
      [watchName, moment("since", "24h"), moment("until", "0s"), points(2000, 288)],
      KEYED,
    ],
    ["/watch/{name}/changes/{id}", [watchName, { ...target, name: "id" }], KEYED],
    ["/locations", [], []],
    ["/openapi.json", [], []],
  ];

  test("has exactly these endpoints", () => {
    expect(Object.keys(paths).toSorted()).toEqual(endpoints.map(([path]) => path).toSorted());
  });

  test.each(endpoints)("%s: parameters, errors, key", (path, parameters, errors) => {
    const operation = operationAt(path);
    expect(operation.parameters).toEqual(
      parameters.map((parameter) => ({
        ...(parameter as (typeof operation.parameters)[number]),
        description: expect.stringMatching(/\.$/),
        example: expect.anything(),
      })),
    );
    const { 200: success, ...failures } = operation.responses;
    const codes = Object.values(failures).flatMap(({ content }) =>
      Object.keys(content["application/json"].examples),
    );
    const common = [
      "INVALID_PARAMETER",
      "HTTPS_REQUIRED",
      "NOT_FOUND",
      "RATE_LIMITED",
      "INTERNAL_ERROR",
    ];
    expect(success).toBeDefined();
    expect(codes.toSorted()).toEqual([...common, ...errors].toSorted());
    const keys = [{ apiKey: [] }, { bearer: [] }];
    expect(operation.security).toEqual(errors.includes("UNAUTHORIZED") ? keys : [{}, ...keys]);
  });

  interface Stream {
    readonly items: {
      readonly anyOf: {
        readonly properties: { readonly event: { readonly const: string }; readonly data: object };
      }[];
    };
  }

  const LAST = ["summary", "location", "result", "error"];
  test.each([
    ["/ping/{target}", ["waiting", "sample", ...LAST]],
    ["/traceroute/{target}", ["waiting", "hop", "path", ...LAST]],
  ])("%s also has a stream, with a schema for each event", (path, names) => {
    const { content, headers } = operationAt(path).responses["200"] ?? {};
    const { $ref = "" } = content?.["text/event-stream"]?.schema ?? {};
    const { items } = schemaNamed($ref.split("/").at(-1) ?? "") as unknown as Stream;
    expect(items.anyOf.map(({ properties: { event } }) => event.const)).toEqual(names);
    const schemaOf = (name: string) =>
      items.anyOf.find(({ properties: { event } }) => event.const === name)?.properties.data;
    const documents = [content?.["application/json"].schema, content?.[SEVERAL]?.schema];
    expect(schemaOf("result")).toEqual({ anyOf: documents });
    expect(
      mismatches(schemaOf("error") ?? {}, components.examples["NETWORK_UNREACHABLE"]?.value),
    ).toEqual([]);
    expect(
      mismatches(schemaOf("error") ?? {}, components.examples["NOT_FOUND"]?.value),
    ).not.toEqual([]);
    expect(headers).toHaveProperty("X-Accel-Buffering");
  });

  // biome-ignore format: a table
  test.each<[name: string, fields: Record<string, unknown>]>([
    ["MyIp", { ip: "string", version: "integer", isIPv6: "boolean", details: "object" }],
    ["Validation", { valid: "boolean", type: undefined, compressed: "string", expanded: "string", details: undefined }],
    ["CheckResult", { name: "string", port: "integer", steps: "array", details: "object" }],
    ["CheckStep", { name: "string", ip: "string", status: "string", finding: "string", text: "string", ms: "integer", rtt: "number", rttMost: "number", httpStatus: "integer", at: "string", certificate: "object" }],
    ["DnsResult", { hostname: "string", records: "array", resolver: undefined, queryTime: "integer", details: "object" }],
    ["DnsRecord", { type: "string", value: "string", ttl: "integer" }],
    ["PingResult", { target: "string", ip: "string", results: "array", stats: undefined, details: "object" }],
    ["PingSample", { seq: "integer", ttl: "integer", rtt: "number", details: "object" }],
    ["PingStats", { transmitted: "integer", received: "integer", loss: "number", min: ["number", "null"], avg: ["number", "null"], max: ["number", "null"] }],
    ["TraceResult", { target: "string", ip: "string", hops: "array", details: "object" }],
    ["Hop", { hop: "integer", ip: ["string", "null"], hostname: ["string", "null"], rtt: ["number", "null"], details: "object" }],
    ["MtrResult", { target: "string", ip: "string", rounds: "integer", hops: "array", details: "object" }],
    ["MtrHop", { hop: "integer", ip: ["string", "null"], hostname: ["string", "null"], ...Object.fromEntries(["sent", "received", "late", "errors", "unknown"].map((name) => [name, "integer"])), loss: ["number", "null"], cause: undefined, ...Object.fromEntries(["last", "min", "avg", "max", "stdDev", "jitter", "p50", "p95"].map((name) => [name, ["number", "null"]])), addresses: "array", others: "integer", details: "object" }],
    ["HopAddress", { ip: "string", hostname: ["string", "null"], received: "integer", share: "number" }],
    ["MtuResult", { target: "string", ip: "string", mtu: ["integer", "null"], atMost: ["integer", "null"], packetTooBig: undefined, lastLarge: ["integer", "null"], firstSmall: ["integer", "null"], hops: "array", details: "object" }],
    ["MtuHop", { hop: "integer", ip: ["string", "null"], hostname: ["string", "null"], mtu: ["integer", "null"], atMost: ["integer", "null"], details: "object" }],
  ])("%s has exactly these fields, of these types", (name, fields) => {
    const { properties, additionalProperties } = schemaNamed(name);
    const types = Object.entries(properties ?? {}).map(([field, schema]) => [
      field,
      typeof schema === "object" ? schema.type : schema,
    ]);
    expect(Object.fromEntries(types)).toEqual(fields);
    expect(additionalProperties).toBe(false);
  });

  test.each([
    ["DnsResult", "queryTime", /[Mm]illiseconds/],
    ["DnsRecord", "ttl", /[Ss]econds/],
    ["PingSample", "rtt", /milliseconds/],
    ["PingStats", "loss", /percent/],
    ["PingStats", "min", /milliseconds/],
    ["PingStats", "avg", /milliseconds/],
    ["PingStats", "max", /milliseconds/],
    ["Hop", "rtt", /milliseconds/],
    ["MtrHop", "loss", /percent/],
    ["MtrHop", "p95", /milliseconds/],
    ["HopAddress", "share", /percent/],
    ["MtuResult", "mtu", /bytes/],
    ["MtuHop", "mtu", /bytes/],
  ])("%s.%s names its unit", (name, field, unit) => {
    expect(schemaNamed(name).properties?.[field]).toMatchObject({
      description: expect.stringMatching(unit),
    });
  });
});

describe("a response is checked against the document", () => {
  const headers = {
    "Content-Type": "application/json",
    "X-RateLimit-Limit": "100",
    "X-RateLimit-Remaining": "99",
    "X-RateLimit-Reset": "1767225600",
    "X-Request-Id": "1",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "X-Request-Id",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  };
  const body = { ip: "::1", version: 6, isIPv6: true };
  const notFound = (code: string, details: object) => ({ error: { code, message: ".", details } });
  const here = { method: "GET", path: "/" };
  const several = { details: { summary: [], matching: 1 }, locations: [] };

  interface Answer {
    method?: string;
    path?: string;
    status?: number;
    headers?: Record<string, string>;
    body?: unknown;
  }

  async function check(answer: Answer): Promise<string> {
    const { method = "GET", path = "/myip", status = 200 } = answer;
    const response = Response.json(answer.body ?? body, {
      status,
      headers: { ...headers, ...answer.headers },
    });
    for (const [name, value] of Object.entries(answer.headers ?? {})) {
      if (value === "") response.headers.delete(name);
    }
    const url = new URL(`http://localhost/api/v1${path}`);
    return await requireDocumented(method, url, response).then(
      () => "accepted",
      (error: Error) => error.message,
    );
  }

  test.each<[what: string, answer: Answer, verdict: string | RegExp]>([
    ["that matches", {}, "accepted"],
    ["with an undocumented field", { body: { ...body, more: 1 } }, /"more"/],
    ["without a field", { body: { ip: "::1", version: 6 } }, /isIPv6/],
    ["with a value of another type", { body: { ...body, isIPv6: "yes" } }, /isIPv6 must be bool/],
    ["with a value of another form", { body: { ...body, ip: "1.2.3" } }, /\/ip must match format/],
    [
      "with null in a field that is never null",
      { body: { ...body, ip: null } },
      /\/ip must be string/,
    ],
    ["with an undocumented status", { status: 418 }, /status 418/],
    ["without a header", { headers: { "X-Request-Id": "" } }, /X-Request-Id is missing/],
    [
      "with a header of another type",
      { headers: { "X-RateLimit-Limit": "many" } },
      /X-RateLimit-Limit/,
    ],
    ["with an undocumented header", { headers: { "X-Powered-By": "Bun" } }, /x-powered-by/],
    [
      "that is not JSON",
      { headers: { "Content-Type": "text/html" } },
      /content type is text\/html/,
    ],
    [
      "of several places as the document of one",
      { path: "/here", body: several },
      /must have required property 'interfaces'/,
    ],
    [
      "of several places",
      { path: "/here", body: several, headers: { "Content-Type": SEVERAL } },
      "accepted",
    ],
    [
      "with a media type of another endpoint",
      { headers: { "Content-Type": SEVERAL } },
      /content type is/,
    ],
    ["to HEAD with a body", { method: "HEAD" }, /there is a body/],
    [
      "of an undocumented path",
      { path: "/", status: 404, body: notFound("NOT_FOUND", here) },
      "accepted",
    ],
    ["of success at such a path", { path: "/", body: {} }, /status 200/],
    ["of success of another method", { method: "POST" }, /status 200/],
    [
      "with an error of another endpoint",
      { status: 401, body: notFound("UNAUTHORIZED", {}) },
      /status 401/,
    ],
    [
      "with an unknown code",
      { path: "/", status: 404, body: notFound("GONE", here) },
      /code must be equal/,
    ],
    ["with wrong details", { path: "/", status: 404, body: notFound("NOT_FOUND", {}) }, /'method'/],
  ])("%s", async (_, answer, verdict) => {
    expect(await check(answer)).toMatch(verdict);
  });
});

test("fetch throws for an undocumented response of a watched service", async () => {
  await using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const url = `http://127.0.0.1:${server.port}/api/v1/myip`;
  const unwatch = watchAnswers([url]);
  const refusal = await fetch(url).catch((error: Error) => error.message);
  unwatch();

  expect(refusal).toContain("X-Request-Id is missing");
  expect((await fetch(url)).status).toBe(200);
});

describe("the document is available", () => {
  const labTest = testWith(labMissing);
  let service: Service;

  beforeAll(async () => {
    if (labMissing === null) service = await startService();
  });

  afterAll(async () => {
    if (labMissing === null) await service[Symbol.asyncDispose]();
  });

  const printed = `${JSON.stringify(interfaceDocument, null, 2)}\n`;

  test("from sixscope openapi, whatever the settings are", async () => {
    const result = await sixscope(["openapi"], { SIXSCOPE_MAX_PROBES: "none" });
    expect(result).toEqual({ status: 0, stdout: printed, stderr: "" });
  });

  // A pipe holds 64 KiB, and a process that exits early writes no more than that.
  test.each([
    ["takes its time", "{ sleep 0.3; cat; }", printed],
    ["stops after the first line", "head -n 1", "{\n"],
  ])("sixscope openapi ends well with a reader that %s", async (_, reader, read) => {
    const script = `{ "$0" openapi; echo "status $?" >&2; } | ${reader}`;
    const child = Bun.spawn(["sh", "-c", script, PROGRAM], { stderr: "pipe" });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect({ stdout, stderr }).toEqual({ stdout: read, stderr: "status 0\n" });
  });

  test("sixscope openapi takes no arguments", async () => {
    const { status, stdout, stderr } = await sixscope(["openapi", "--yaml"]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toBe(
      "sixscope: unknown option '--yaml'\nusage: sixscope openapi [options]; see sixscope openapi --help\n",
    );
  });

  labTest("from the service, at the cost of one request", async () => {
    const responses = [1, 2].map(async () => await fetch(`${service.url}/openapi.json`));
    const [first, second] = await Promise.all(responses);
    expect(await first?.json()).toEqual(JSON.parse(printed));
    expect(first?.headers.get("content-type")).toBe("application/json");
    const remaining = [first, second].map((answer) => answer?.headers.get("x-ratelimit-remaining"));
    expect(remaining.toSorted()).toEqual(["98", "99"]);
  });

  labTest.each([
    ["gzip, deflate, br", "gzip"],
    ["br;q=1.0, GZIP;q=0.5", "gzip"],
    ["identity", null],
    ["gzip;q=0", null],
    ["br, gzip;q=0, *", null],
  ])("Accept-Encoding: %s gets it compressed by %p", async (accepted, encoding) => {
    const headers = { "Accept-Encoding": accepted };
    const response = await fetch(`${service.url}/openapi.json`, { headers });
    expect(response.headers.get("content-encoding")).toBe(encoding);
    expect(response.headers.get("vary")).toBe("Accept-Encoding");
    const text = await response.text();
    expect(JSON.parse(text)).toEqual(JSON.parse(printed));
    const head = await fetch(`${service.url}/openapi.json`, { method: "HEAD", headers });
    const bytes = Number(head.headers.get("content-length"));
    expect(bytes < text.length / 4).toBe(encoding !== null);
  });

  labTest("and its example of /validate is what the service returns", async () => {
    const { parameters, responses } = operationAt("/validate");
    const response = await fetch(`${service.url}/validate?address=${parameters[0]?.example}`);
    expect(responses["200"]?.content["application/json"].examples).toEqual({
      validateAddress: { value: await response.json() },
    });
  });

  labTest("but not over plain HTTP from another machine", async () => {
    const response = await fetch(`${service.url}/openapi.json`, {
      headers: { "X-Forwarded-For": "192.0.2.1" },
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: "HTTPS_REQUIRED" } });
  });
});
