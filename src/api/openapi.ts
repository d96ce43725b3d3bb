import { z } from "zod";
import { mapValues } from "../util/objects.ts";
import { capitalized } from "../util/text.ts";
import { VERSION } from "../util/version.ts";
import { BASE_PATH, type Endpoint, SEVERAL } from "./endpoint.ts";
import {
  ApiError,
  ERROR_CATALOGUE,
  ERRORS,
  type ErrorCode,
  type ErrorDetails,
  type ErrorKind,
} from "./errors.ts";
import { EVENT_STREAM_HEADERS } from "./headers.ts";
import frame from "./openapi-frame.json" with { type: "json" };
import type { Parameter } from "./parameters.ts";
import { named, once, text } from "./schemas.ts";

/** Errors of every endpoint. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  "INVALID_PARAMETER",
  "HTTPS_REQUIRED",
  "RATE_LIMITED",
  "NOT_FOUND",
  "INTERNAL_ERROR",
];

/** The media type of a stream. */
const EVENTS = EVENT_STREAM_HEADERS["Content-Type"];

/** A piece of JSON Schema 2020-12. */
export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** Describes the API in OpenAPI 3.1, from the definitions that handle the requests. */
export function describeInterface(endpoints: readonly Endpoint[]) {
  const { openapi, info, tags, headers, securitySchemes } = frame;
  return {
    openapi,
    info: { ...info, version: VERSION, description: info.description.join("\n\n") },
    servers: [{ url: BASE_PATH }],
    tags,
    paths: Object.fromEntries(
      endpoints.map((endpoint) => [endpoint.path, { get: describeOperation(endpoint) }]),
    ),
    components: {
      examples: mapValues(ERROR_CATALOGUE, (_, code) => ({ value: exampleOf(code) })),
      headers: { ...headers.everywhere, ...headers.further },
      securitySchemes,
      // Last, because zod registers a schema when it is made.
      schemas: {
        ...Object.fromEntries(endpoints.flatMap(describeEvents)),
        ...mapValues(
          z.toJSONSchema(z.globalRegistry, { uri: schemaUri, override: simplify }).schemas,
          withoutIdentity,
        ),
      },
    },
  };
}

function describeOperation(endpoint: Endpoint) {
  const { operationId, summary, description, needsKey, parameters, several, events } = endpoint;
  const codes = codesOf(endpoint);
  const examples = { [operationId]: { value: endpoint.example } };
  const headers = events ? ["X-Accel-Buffering"] : [];
  const success = describeResponse(summary, headers, referenceTo(endpoint.response()), examples, {
    ...(several && { [SEVERAL]: { schema: referenceTo(several()) } }),
    ...(events && { [EVENTS]: { schema: { $ref: schemaUri(eventsId(endpoint)) } } }),
  });
  const failures = [...Map.groupBy(codes, (code) => ERROR_CATALOGUE[code].status)].map(
    ([status, together]) => [status, describeErrors(together)] as const,
  );
  return {
    operationId,
    tags: [needsKey ? "Probes" : "Look-ups"],
    summary,
    description,
    security: [...(needsKey ? [] : [{}]), { apiKey: [] }, { bearer: [] }],
    parameters: Object.entries(parameters).map(describeParameter),
    responses: Object.fromEntries([[200, success], ...failures]),
  };
}

function codesOf({ needsKey, errors }: Endpoint): readonly ErrorCode[] {
  return [
    ...COMMON_ERRORS,
    ...(needsKey ? (["UNAUTHORIZED", "KEYS_UNAVAILABLE"] as const) : []),
    ...errors,
  ];
}

/** `PingEvents` for the operation `ping`. */
const eventsId = ({ operationId: id }: Endpoint) => `${capitalized(id)}Events`;

/** The schema of a stream in the form that OpenAPI 3.2 has for sequential media types: a list of events with JSON data. */
function describeEvents(endpoint: Endpoint): [id: string, schema: JsonSchema][] {
  const { response, several = response, events } = endpoint;
  if (!events) return [];
  const data: Record<string, JsonSchema> = {
    ...mapValues(events(), referenceTo),
    result: anyOf([response(), several()]),
    error: errorsOf(codesOf(endpoint).filter((code) => code !== "NOT_FOUND")),
  };
  const items = Object.entries(data).map(([name, data]) => ({
    type: "object" as const,
    properties: { event: { const: name }, data },
    required: ["event", "data"],
    additionalProperties: false,
  }));
  const description = "The events of the stream in order, each with its data.";
  return [[eventsId(endpoint), { type: "array", items: { anyOf: items }, description }]];
}

/** The response of errors that have the same status. */
function describeErrors(codes: readonly ErrorCode[]) {
  return describeResponse(
    codes.map((code) => `\`${code}\`: ${ERROR_CATALOGUE[code].meaning}.`).join("\n\n"),
    codes.flatMap((code) => ERROR_CATALOGUE[code].headers ?? []),
    errorsOf(codes),
    Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
  );
}

/** The schema of errors with one of these codes. */
const errorsOf = (codes: readonly ErrorCode[]) => anyOf(codes.map((code) => errorSchemas()[code]));

/** The schema of a value that one of these schemas describes. */
function anyOf(schemas: readonly z.ZodType[]): JsonSchema {
  const references = [...new Set(schemas)].map(referenceTo);
  return references.length === 1 && references[0] ? references[0] : { anyOf: references };
}

function describeResponse(
  description: string,
  extraHeaders: readonly string[],
  schema: JsonSchema,
  examples: Readonly<Record<string, { readonly value: unknown } | { readonly $ref: string }>>,
  further: Partial<Record<typeof SEVERAL | typeof EVENTS, { readonly schema: JsonSchema }>> = {},
) {
  const headers = [...Object.keys(frame.headers.everywhere), ...extraHeaders].map(
    (name) => [name, { $ref: `#/components/headers/${name}` }] as const,
  );
  return {
    description,
    headers: Object.fromEntries(headers),
    // Generators that support only one media type take the first.
    content: { "application/json": { schema, examples }, ...further },
  };
}

/** The schemas of the bodies of errors. */
const errorSchemas = once(() =>
  mapValues(ERRORS, ({ details }: ErrorKind, code): z.ZodType => {
    const message = text("One sentence: what is wrong, and what to do.");
    const fields = { code: z.literal(code), message, details: z.strictObject(details()) };
    const error = z.strictObject(fields);
    return named(pascalCase(code), ERROR_CATALOGUE[code].meaning, { error });
  }),
);

function exampleOf(code: ErrorCode) {
  const { details, note } = ERROR_CATALOGUE[code].example;
  return new ApiError(code, details as ErrorDetails<ErrorCode>, note).body;
}

/** A parameter in OpenAPI, whose schema is JSON Schema. */
export function describeParameter([name, parameter]: [string, Parameter]) {
  const { in: place, description, example } = parameter;
  const schema = parameter.schema();
  return {
    name,
    in: place,
    description,
    // The schema shows whether the parameter may be missing.
    required: !schema.safeParse(undefined).success,
    schema: withoutIdentity(z.toJSONSchema(schema, { override: simplify })),
    example,
  };
}

/** The schema of an endpoint's answers, of several locations too, as JSON Schema by itself. */
export function describeAnswer({ response, several }: Endpoint): { type: "object" } {
  const schema = several ? z.union([response(), several()]) : response();
  const described = z.toJSONSchema(schema, { override: simplify });
  return { ...withoutIdentity(described), type: "object" };
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

/** Removes the dialect and the id: the OpenAPI document has the dialect, and a schema's place is its id. */
function withoutIdentity({ $schema, $id, ...schema }: JsonSchema): JsonSchema {
  return schema;
}

/** Shortens a schema of zod without changing its meaning. */
function simplify({ jsonSchema }: { readonly jsonSchema: JsonSchema }): void {
  // The bounds of safe integers say nothing about the API.
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  // Client generators handle a list of types best.
  const [value, nothing, ...more] = jsonSchema.anyOf ?? [];
  const isPlain = typeof value?.type === "string" && !value.anyOf;
  if (isPlain && nothing?.type === "null" && more.length === 0) {
    delete jsonSchema.anyOf;
    const words = value.enum && { enum: [...value.enum, null] };
    Object.assign(jsonSchema, value, { type: [value.type, "null"], ...words });
  }
}
