import { z } from "zod";
import { VERSION } from "../util/version.ts";
import { BASE_PATH, type Endpoint } from "./endpoint.ts";
import {
  COMMON_ERRORS,
  ERRORS,
  type ErrorCode,
  type ErrorKind,
  errorSchemas,
} from "./error-table.ts";
import type { Parameter } from "./parameters.ts";
import { COMMON_HEADERS, ERROR_HEADERS, type ResponseHeader } from "./response-headers.ts";

const DESCRIPTION = `IPv6 diagnostics: your address, address validation, DNS, ping and traceroute.

Every endpoint takes GET and HEAD, answers in JSON over IPv4 and IPv6, and may be called from any web page: a CORS preflight is answered with 204 and costs nothing of the rate limit. Requests must use HTTPS, except on the service's own machine. Query parameters that an endpoint does not know are ignored; one that it knows and that stands twice is refused. A path or method that is not described here is answered as \`components.responses.NotFound\` says. Headers or a body that are too large are refused with 431 or 413, without JSON.

Times are milliseconds, \`loss\` is percent, and the \`ttl\` of a DNS record is seconds. \`null\` says that no answer came.`;

const KEY_SCHEME = "apiKey";

/** A piece of JSON Schema 2020-12. */
type JsonSchema = z.core.JSONSchema.BaseSchema;

interface Reference {
  readonly $ref: string;
}

/** What is answered with one status. */
interface ResponseObject {
  readonly description: string;
  readonly headers: Readonly<Record<string, Reference>>;
  readonly content: {
    readonly "application/json": {
      readonly schema: Reference | { readonly oneOf: readonly Reference[] };
      readonly examples: Readonly<Record<string, { readonly value: unknown } | Reference>>;
    };
  };
}

/** Describes the interface in OpenAPI 3.1, by the definitions that requests are answered by. */
export function describeInterface(endpoints: readonly Endpoint<never>[]) {
  return {
    openapi: "3.1.1",
    info: {
      title: "sixscope",
      version: VERSION,
      description: DESCRIPTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: BASE_PATH }],
    paths: Object.fromEntries(
      endpoints.map((endpoint) => [endpoint.path, { get: describeOperation(endpoint) }]),
    ),
    components: {
      responses: { NotFound: describeErrors(["NOT_FOUND"]) },
      examples: Object.fromEntries(
        Object.entries<ErrorKind>(ERRORS).map(([code, { example }]) => [
          code,
          { value: { error: { code, ...example } } },
        ]),
      ),
      headers: mapValues({ ...COMMON_HEADERS, ...ERROR_HEADERS }, describeHeader),
      securitySchemes: {
        [KEY_SCHEME]: {
          type: "apiKey",
          in: "header",
          name: "X-API-Key",
          description: "The operator gives keys. A key has a higher rate limit of its own.",
        },
      },
      // Last: zod knows a schema once it is made, and all of them are by now.
      schemas: describeNamedSchemas(),
    },
  };
}

function describeOperation(endpoint: Endpoint<never>) {
  const { operationId, summary, description, needsKey, parameters } = endpoint;
  const codes: readonly ErrorCode[] = [
    ...COMMON_ERRORS,
    ...(needsKey ? (["UNAUTHORIZED"] as const) : []),
    ...endpoint.errors,
  ];
  const success: ResponseObject = {
    description: summary,
    headers: headerReferences(Object.keys(COMMON_HEADERS)),
    content: {
      "application/json": {
        schema: referenceTo(endpoint.response()),
        examples: { [operationId]: { value: endpoint.example } },
      },
    },
  };
  const failures = [...Map.groupBy(codes, (code) => ERRORS[code].status)].map(
    ([status, together]) => [status, describeErrors(together)] as const,
  );
  return {
    operationId,
    summary,
    description,
    security: needsKey ? [{ [KEY_SCHEME]: [] }] : [{}, { [KEY_SCHEME]: [] }],
    parameters: Object.entries(parameters).map(describeParameter),
    responses: Object.fromEntries<ResponseObject>([[200, success], ...failures]),
  };
}

/** The response of errors that have the same status. */
function describeErrors(codes: readonly ErrorCode[]): ResponseObject {
  const schemas = codes.map((code) => referenceTo(errorSchemas()[code]));
  const [only, ...more] = schemas;
  const headers = codes.flatMap((code) => ERRORS[code].headers ?? []);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].meaning}.`).join("\n\n"),
    headers: headerReferences([...Object.keys(COMMON_HEADERS), ...headers]),
    content: {
      "application/json": {
        schema: only !== undefined && more.length === 0 ? only : { oneOf: schemas },
        examples: Object.fromEntries(
          codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
        ),
      },
    },
  };
}

function describeParameter([name, { in: place, schema, description, example }]: [
  string,
  Parameter,
]) {
  // What the schema makes of a missing value tells whether it may be missing.
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

function describeHeader({ description, required, schema, example }: ResponseHeader) {
  return { description, required, schema: describeSchema(schema()), example };
}

function headerReferences(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** @throws Error for a schema without a name, which a programmer forgot */
function referenceTo(schema: z.ZodType): Reference {
  const id = z.globalRegistry.get(schema)?.id;
  if (id === undefined) throw new Error("the schema of a response needs an id");
  return { $ref: schemaUri(id) };
}

function schemaUri(id: string): string {
  return `#/components/schemas/${id}`;
}

/** Every schema that has been made with an id. */
function describeNamedSchemas() {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { uri: schemaUri, override: simplify });
  return mapValues(schemas, withoutIdentity);
}

function describeSchema(schema: z.ZodType): JsonSchema {
  return withoutIdentity(z.toJSONSchema(schema, { override: simplify }));
}

/** In an OpenAPI document the dialect is that of the document, and the place is the identity. */
function withoutIdentity({ $schema, $id, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

/** Says in fewer words what zod says. */
function simplify({ jsonSchema }: { readonly jsonSchema: JsonSchema }): void {
  // The bounds of what JavaScript counts exactly say nothing about the interface.
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  // What may be null has a list of types, which generators of clients read best.
  const [value, nothing, ...more] = jsonSchema.anyOf ?? [];
  if (typeof value?.type === "string" && nothing?.type === "null" && more.length === 0) {
    delete jsonSchema.anyOf;
    Object.assign(jsonSchema, value, { type: [value.type, "null"] });
  }
}

function mapValues<From, To>(
  record: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]));
}
