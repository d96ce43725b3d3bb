import { z } from "zod";
import { VERSION } from "../util/version.ts";
import { BASE_PATH, type Endpoint } from "./endpoint.ts";
import { ApiError, ERRORS, type ErrorCode, type ErrorDetails, type ErrorKind } from "./errors.ts";
import type { Parameter } from "./parameters.ts";
import { COMMON_HEADERS, FURTHER_HEADERS } from "./respond.ts";
import { once } from "./schemas.ts";

const DESCRIPTION = `IPv6 diagnostics: your address, address validation, DNS, ping, traceroute, loss by hop and path MTU.

Every endpoint supports GET and HEAD, returns JSON over IPv4 and IPv6, and can be called from any web page: a CORS preflight returns 204 and does not count against the rate limit. Requests must use HTTPS, except on the service's own machine. Unknown query parameters are ignored; duplicates of known parameters are rejected. Any other path or method returns \`NOT_FOUND\`. Headers or bodies that are too large are rejected with 431 or 413, without JSON.

With \`Accept: text/event-stream\`, endpoints that take their time return server-sent events: each part of the result as soon as it is known, then \`result\` with the whole or \`error\`. A part replaces the one before it with the same \`seq\`, \`hop\` or \`flowLabel\`; a \`round\` replaces every earlier one.

Times are in milliseconds, \`loss\` is a percentage, and the \`ttl\` of a DNS record is in seconds. \`null\` means that no answer came.`;

const KEY_SCHEME = "apiKey";
const BEARER_SCHEME = "bearer";

/** Errors of every endpoint. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  "INVALID_PARAMETER",
  "HTTPS_REQUIRED",
  "RATE_LIMITED",
  "NOT_FOUND",
  "INTERNAL_ERROR",
];

const TAGS = [
  { name: "Look-ups", description: "What needs no key." },
  { name: "Probes", description: "What sends packets to a target, and needs a key." },
];

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** A piece of JSON Schema 2020-12. */
type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Describes the API in OpenAPI 3.1, from the definitions that handle the requests. */
export function describeInterface(endpoints: readonly Endpoint[]) {
  return {
    openapi: "3.1.1",
    info: {
      title: "sixscope",
      version: VERSION,
      description: DESCRIPTION,
      contact: { name: "The operator of this service" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: BASE_PATH }],
    tags: TAGS,
    paths: Object.fromEntries(
      endpoints.map((endpoint) => [endpoint.path, { get: describeOperation(endpoint) }]),
    ),
    components: {
      examples: Object.fromEntries(CODES.map((code) => [code, { value: exampleOf(code) }])),
      headers: { ...COMMON_HEADERS, ...FURTHER_HEADERS },
      securitySchemes: {
        [KEY_SCHEME]: {
          type: "apiKey",
          in: "header",
          name: "X-API-Key",
          description: "Ask the operator for a key. Each key has its own, higher rate limit.",
        },
        [BEARER_SCHEME]: { type: "http", scheme: "bearer", description: "The same key." },
      },
      // Last, because zod registers a schema when it is made.
      schemas: describeNamedSchemas(),
    },
  };
}

function describeOperation(endpoint: Endpoint) {
  const { operationId, summary, description, needsKey, parameters } = endpoint;
  const codes: readonly ErrorCode[] = [
    ...COMMON_ERRORS,
    ...(needsKey ? (["UNAUTHORIZED", "KEYS_UNAVAILABLE"] as const) : []),
    ...endpoint.errors,
  ];
  const result = referenceTo(endpoint.response());
  const told = Object.entries(endpoint.events?.() ?? {});
  const events = told.map(([name, schema]) => [name, referenceTo(schema)] as const);
  const success = describeResponse(
    summary,
    events.length > 0 ? ["X-Accel-Buffering"] : [],
    result,
    { [operationId]: { value: endpoint.example } },
    events.length > 0
      ? [
          ...events,
          ["result", result],
          ["error", anyOf(codes.filter((code) => code !== "NOT_FOUND"))],
        ]
      : [],
  );
  const failures = [...Map.groupBy(codes, (code) => ERRORS[code].status)].map(
    ([status, together]) => [status, describeErrors(together)] as const,
  );
  return {
    operationId,
    tags: [needsKey ? "Probes" : "Look-ups"],
    summary,
    description,
    security: [...(needsKey ? [] : [{}]), { [KEY_SCHEME]: [] }, { [BEARER_SCHEME]: [] }],
    parameters: Object.entries(parameters).map(describeParameter),
    responses: Object.fromEntries([[200, success], ...failures]),
  };
}

/** The response of errors that have the same status. */
function describeErrors(codes: readonly ErrorCode[]) {
  return describeResponse(
    codes.map((code) => `\`${code}\`: ${ERRORS[code].meaning}.`).join("\n\n"),
    codes.flatMap((code) => ERRORS[code].headers ?? []),
    anyOf(codes),
    Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
  );
}

/** The schema of errors with one of these codes. */
function anyOf(codes: readonly ErrorCode[]) {
  const schemas = codes.map((code) => referenceTo(errorSchemas()[code]));
  const [only, ...more] = schemas;
  return only !== undefined && more.length === 0 ? only : { anyOf: schemas };
}

/** The schema of a stream, as OpenAPI 3.2 has it for sequential media types: the list of its events, whose data are JSON. */
function describeEvents(events: readonly (readonly [name: string, data: object])[]) {
  const items = events.map(([name, data]) => ({
    type: "object",
    properties: { event: { const: name }, data },
    required: ["event", "data"],
    additionalProperties: false,
  }));
  return { schema: { type: "array", items: { oneOf: items } } };
}

function describeResponse(
  description: string,
  extraHeaders: readonly string[],
  schema: object,
  examples: Readonly<Record<string, { readonly value: unknown } | { readonly $ref: string }>>,
  events: readonly (readonly [name: string, data: object])[] = [],
) {
  const headers = [...Object.keys(COMMON_HEADERS), ...extraHeaders].map(
    (name) => [name, { $ref: `#/components/headers/${name}` }] as const,
  );
  return {
    description,
    headers: Object.fromEntries(headers),
    content: {
      "application/json": { schema, examples },
      ...(events.length > 0 && { "text/event-stream": describeEvents(events) }),
    },
  };
}

/** The schemas of the bodies of errors. */
const errorSchemas = once(
  () =>
    Object.fromEntries(CODES.map((code) => [code, errorSchema(code)])) as Readonly<
      Record<ErrorCode, z.ZodType>
    >,
);

function errorSchema(code: ErrorCode): z.ZodType {
  const { meaning, details } = ERRORS[code];
  const message = z.string().describe("One sentence: what is wrong, and what to do.");
  return z
    .strictObject({
      error: z.strictObject({ code: z.literal(code), message, details: details() }),
    })
    .meta({ id: pascalCase(code), description: meaning });
}

function exampleOf(code: ErrorCode) {
  const { details, note }: ErrorKind["example"] = ERRORS[code].example;
  return new ApiError(code, details as ErrorDetails<ErrorCode>, note).body;
}

function describeParameter([name, parameter]: [string, Parameter]) {
  const { in: place, description, example } = parameter;
  const schema = parameter.schema();
  // The schema itself tells whether the parameter may be missing, and its default.
  const missing = schema.safeParse(undefined);
  return {
    name,
    in: place,
    description,
    required: !missing.success,
    schema: { ...describeSchema(schema), ...(missing.success && { default: missing.data }) },
    example,
  };
}

/** @throws Error for a schema without an id */
function referenceTo(schema: z.ZodType) {
  const id = z.globalRegistry.get(schema)?.id;
  if (id === undefined) throw new Error("the schema of a response needs an id");
  return { $ref: schemaUri(id) };
}

function schemaUri(id: string): string {
  return `#/components/schemas/${id}`;
}

/** `InvalidAddress` for INVALID_ADDRESS. */
function pascalCase(code: string): string {
  return code.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** Every schema with an id. */
function describeNamedSchemas() {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { uri: schemaUri, override: simplify });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => [id, withoutIdentity(schema)]),
  );
}

function describeSchema(schema: z.ZodType): JsonSchema {
  return withoutIdentity(z.toJSONSchema(schema, { override: simplify }));
}

/** The OpenAPI document itself gives the dialect, and the place of a schema is its identity. */
function withoutIdentity({ $schema, $id, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

/** Says the same as zod in fewer words. */
function simplify({ jsonSchema }: { readonly jsonSchema: JsonSchema }): void {
  // The bounds of safe integers say nothing about the API.
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  // Client generators handle a list of types best.
  const [value, nothing, ...more] = jsonSchema.anyOf ?? [];
  if (typeof value?.type === "string" && nothing?.type === "null" && more.length === 0) {
    delete jsonSchema.anyOf;
    Object.assign(jsonSchema, value, { type: [value.type, "null"] });
  }
}
