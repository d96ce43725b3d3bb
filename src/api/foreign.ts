import type { z } from "zod";
import { attempt } from "../util/errors.ts";

/** The limit of brackets and commas for each byte that a document may have: a value takes more time than its text. */
const VALUES_PER_BYTE = 1 / 16;

/**
 * The value of a JSON text from an agent, a service, a link or a file; undefined if it is not JSON or exceeds a bound.
 *
 * @param revive as for `JSON.parse`
 */
export function parseForeign(
  source: string | Uint8Array,
  maxBytes: number,
  revive?: (key: string, value: unknown) => unknown,
): unknown {
  if (source.length > maxBytes) return undefined;
  const text = typeof source === "string" ? source : new TextDecoder().decode(source);
  const maxValues = maxBytes * VALUES_PER_BYTE;
  if (text.split(/[,{[]/, maxValues + 2).length > maxValues + 1) return undefined;
  return attempt(() => revived("", JSON.parse(text), revive));
}

/** The same as `JSON.parse` with a reviver, in a fifth of its time, except that items of lists have no key. */
function revived(key: string, value: unknown, revive = (_: string, same: unknown) => same) {
  if (Array.isArray(value)) {
    for (const [at, inner] of value.entries()) value[at] = revived("", inner, revive);
  } else if (typeof value === "object" && value !== null) {
    for (const [name, inner] of Object.entries(value)) {
      const made = revived(name, inner, revive);
      if (made !== inner) Reflect.set(value, name, made);
    }
  }
  return revive(key, value);
}

/** Ends a check at the first wrong field, because a value from outside can have a hundred thousand, and makes no message. */
const FIRST_PROBLEM = { abortEarly: true, error: () => "" };

/**
 * The first place where a value from outside differs from a schema; undefined if there is none. Removes fields that
 * only a newer version has.
 */
export function mismatchOf(schema: z.ZodType, value: unknown): string | undefined {
  removeUnknown(schema, value);
  const [issue] = schema.safeParse(value, FIRST_PROBLEM).error?.issues ?? [];
  return issue && (issue.path.join(".") || "its top");
}

/** Removes the fields that a schema, or the nearest member of a union, does not have. */
function removeUnknown(schema: z.core.$ZodType, value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if ("innerType" in def) removeUnknown(def.innerType, value);
  else if (def.type === "union") removeUnknown(nearestIn(schema, value), value);
  else if (def.type === "array" && Array.isArray(value)) {
    for (const item of value) removeUnknown(def.element, item);
  }
  if (def.type !== "object") return;
  const isClosed = def.catchall?._zod.def.type === "never";
  for (const [key, inner] of Object.entries(value)) {
    const field = Object.hasOwn(def.shape, key) ? def.shape[key] : undefined;
    if (field !== undefined) removeUnknown(field, inner);
    else if (isClosed) Reflect.deleteProperty(value, key);
  }
}

/** The member of a union, and of unions in it, that is nearest to a value; see `distance`. */
function nearestIn(schema: z.core.$ZodType, value: object): z.core.$ZodType {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type !== "union") return schema;
  const members = def.options.map((member) => nearestIn(member, value));
  const [nearest = schema] = members.toSorted((a, b) => distance(a, value) - distance(b, value));
  return nearest;
}

/** The distance of a value from a schema: missing fields weigh a million times as much as unknown ones. */
function distance(schema: z.core.$ZodType, value: object): number {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  if (def.type !== "object") return Infinity;
  const isLacking = (key: string) =>
    !Object.hasOwn(value, key) && def.shape[key]?._zod.optin === undefined;
  const unknown = Object.keys(value).filter((key) => !Object.hasOwn(def.shape, key));
  return Object.keys(def.shape).filter(isLacking).length * 1e6 + unknown.length;
}
