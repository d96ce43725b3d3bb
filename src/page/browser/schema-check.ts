import type { JsonSchema } from "../../api/openapi.ts";

/** Items of any list; the longest of a true document is one of 1,024 addresses. */
const MAX_ITEMS = 4096;

/** The formats that are checked, so that no other text passes for an address. */
const FORMATS: Readonly<Record<string, RegExp>> = {
  ipv4: /^[\d.]{7,15}$/,
  ipv6: /^[\da-f:.]{2,45}$/i,
};

/** Schemas by the last part of their references. */
export type Schemas = Readonly<Record<string, JsonSchema>>;

/** True if a value from outside matches a schema. */
export function matches(schema: JsonSchema | boolean, value: unknown, schemas: Schemas): boolean {
  if (typeof schema === "boolean") return schema;
  const { $ref, anyOf, type, pattern = "", format = "" } = schema;
  const within = (part: JsonSchema | boolean, inner: unknown) => matches(part, inner, schemas);
  if ($ref !== undefined) {
    const named = schemas[nameOf($ref)];
    return named !== undefined && within(named, value);
  }
  if (anyOf && !anyOf.some((each) => within(each, value))) return false;
  if (type !== undefined && ![type].flat().some((each) => isOf(each, value))) return false;
  if ("const" in schema && schema.const !== value) return false;
  if (schema.enum?.every((each) => each !== value)) return false;
  if (typeof value === "string") {
    return new RegExp(pattern, "u").test(value) && (FORMATS[format]?.test(value) ?? true);
  }
  if (typeof value === "number") {
    const { minimum = -Infinity, maximum = Infinity } = schema;
    return value >= minimum && value <= maximum;
  }
  if (Array.isArray(value)) {
    const { items = {}, maxItems = MAX_ITEMS } = schema;
    return value.length <= maxItems && value.every((item) => within(items as JsonSchema, item));
  }
  if (typeof value !== "object" || value === null || type !== "object") return true;
  const fields = value as Readonly<Record<string, unknown>>;
  const { properties = {}, required = [], additionalProperties: others = true } = schema;
  return (
    required.every((name) => Object.hasOwn(fields, name)) &&
    Object.entries(fields).every(([name, inner]) =>
      within((Object.hasOwn(properties, name) ? properties[name] : others) ?? true, inner),
    )
  );
}

/** The name of the schema that a reference leads to. */
export const nameOf = (reference: string) => reference.split("/").at(-1) ?? reference;

/** True if a value has a type of JSON Schema; a number that is not finite has none. */
function isOf(type: string, value: unknown): boolean {
  if (type === "integer") return Number.isSafeInteger(value);
  if (type === "number") return Number.isFinite(value);
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  return typeof value === type && value !== null && !Array.isArray(value);
}
