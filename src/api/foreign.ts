import type { z } from "zod";
import { attempt } from "../util/errors.ts";
import { quote } from "../util/text.ts";

/** Brackets and commas of a document: each value takes more memory than its text. */
const MAX_VALUES = 200_000;

/** A document from outside that is not taken; the message goes on from "sent". */
export class ForeignError extends Error {
  override readonly name = "ForeignError";
  /** Where it is not as described; undefined if it is beyond a bound. */
  readonly path: string | undefined;

  constructor(message: string, path?: string) {
    super(message);
    this.path = path;
  }
}

/**
 * The value of a JSON text from an agent, a service, a link or a file; undefined if it is none.
 *
 * @param revive as for `JSON.parse`
 * @throws ForeignError if it is beyond a bound
 */
export function parseForeign(
  source: string | Uint8Array,
  maxBytes: number,
  revive?: (key: string, value: unknown) => unknown,
): unknown {
  if (source.length > maxBytes) throw new ForeignError(`more than ${maxBytes} bytes`);
  const text = typeof source === "string" ? source : new TextDecoder().decode(source);
  if (text.split(/[,{[]/, MAX_VALUES + 2).length > MAX_VALUES + 1) {
    throw new ForeignError(`more than ${MAX_VALUES} values`);
  }
  return attempt(() => JSON.parse(text, revive));
}

/**
 * The value as a schema describes it. Fields that only a newer version has are removed from it first.
 *
 * @throws ForeignError if it is not as described
 */
export function shapeForeign<T>(schema: z.ZodType<T>, value: unknown): T {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  removeUnknown(value, error.issues);
  const again = schema.safeParse(value);
  if (again.success) return again.data;
  const path = again.error.issues[0]?.path.join(".") || "its top";
  throw new ForeignError(`what this version does not understand, at ${quote(path)}`, path);
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
