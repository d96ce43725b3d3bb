import type { z } from "zod";
import { attempt } from "../util/errors.ts";

/** Brackets and commas of a document: each value takes more memory than its text. */
const MAX_VALUES = 200_000;

/**
 * The value of a JSON text from an agent, a service, a link or a file; undefined if it is none, or beyond a bound.
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
  if (text.split(/[,{[]/, MAX_VALUES + 2).length > MAX_VALUES + 1) return undefined;
  return attempt(() => JSON.parse(text, revive));
}

/**
 * Where a value from outside is not as a schema describes it; undefined if it is. The fields that only a newer
 * version has are removed from it.
 */
export function mismatchOf(schema: z.ZodType, value: unknown): string | undefined {
  const { success, error } = schema.safeParse(value);
  if (success) return undefined;
  removeUnknown(value, error.issues);
  const [issue] = schema.safeParse(value).error?.issues ?? [];
  return issue && (issue.path.join(".") || "its top");
}

/** Removes the fields that a schema does not have; in a union, those that the nearest member does not have. */
function removeUnknown(value: unknown, issues: readonly z.core.$ZodIssue[]): void {
  for (const issue of issues) {
    const inner = issue.path.reduce((outer, name) => Reflect.get(Object(outer), name), value);
    if (issue.code === "invalid_union") {
      const [nearest = []] = issue.errors.toSorted((a, b) => distance(a) - distance(b));
      removeUnknown(inner, nearest);
    }
    if (issue.code !== "unrecognized_keys") continue;
    for (const key of issue.keys) Reflect.deleteProperty(Object(inner), key);
  }
}

/** How many fields a schema does not have; far more if anything else is wrong. */
function distance(issues: readonly z.core.$ZodIssue[]): number {
  return issues.reduce((sum, issue) => sum + ("keys" in issue ? issue.keys.length : 1e9), 0);
}
