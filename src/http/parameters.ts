import type { Context } from "hono";
import { z } from "zod";
import { ApiError, quote } from "./errors.ts";

/** What a parameter may be; stands in the details of INVALID_PARAMETER. */
type Bounds =
  | { readonly allowed: readonly string[] }
  | { readonly minimum: number; readonly maximum: number }
  | Record<string, never>;

/** A query parameter: how its text is checked, and what is said where it does not pass. */
export interface Parameter<T> {
  readonly schema: z.ZodType<T, string | undefined>;
  readonly bounds: Bounds;
  /** Completes the sentence "the parameter must be …". */
  readonly expected: string;
}

/** A whole number in ASCII decimal digits. */
export function integerParameter(options: {
  readonly minimum: number;
  readonly maximum: number;
  readonly default: number;
}): Parameter<number> {
  const { minimum, maximum } = options;
  return {
    schema: z
      .string()
      .regex(/^[0-9]+$/)
      .transform(Number)
      .pipe(z.int().min(minimum).max(maximum))
      .prefault(String(options.default)),
    bounds: { minimum, maximum },
    expected: `a whole number from ${minimum} to ${maximum}, in decimal digits`,
  };
}

/** One of a list of words, in exactly that spelling. */
export function choiceParameter<const T extends readonly string[]>(
  allowed: T,
  fallback: T[number],
): Parameter<T[number]> {
  return {
    schema: z.enum(allowed).default(fallback),
    bounds: { allowed },
    expected: `one of ${allowed.join(", ")}`,
  };
}

/** A text that must be there; the endpoint itself judges it. */
export function textParameter(expected: string): Parameter<string> {
  return { schema: z.string(), bounds: {}, expected };
}

/**
 * Reads the query parameters that an endpoint knows and ignores all others.
 *
 * @throws ApiError INVALID_PARAMETER for the first that is missing, repeated or wrong
 */
export function readParameters<const P extends Readonly<Record<string, Parameter<unknown>>>>(
  context: Context,
  parameters: P,
): { [Name in keyof P]: P[Name] extends Parameter<infer T> ? T : never } {
  const read = Object.entries(parameters).map(([name, parameter]) => {
    const values = context.req.queries(name) ?? [];
    if (values.length > 1) {
      throw invalid(name, values, parameter, `stands ${values.length} times; give it once, as`);
    }
    const [value] = values;
    const result = parameter.schema.safeParse(value);
    if (result.success) return [name, result.data];
    throw value === undefined
      ? invalid(name, null, parameter, "is missing; it must be")
      : invalid(name, value, parameter, `is ${quote(value)}; it must be`);
  });
  return Object.fromEntries(read);
}

function invalid(
  name: string,
  value: string | readonly string[] | null,
  { bounds, expected }: Parameter<unknown>,
  what: string,
): ApiError {
  return new ApiError("INVALID_PARAMETER", `The parameter ${name} ${what} ${expected}.`, {
    parameter: name,
    value,
    ...bounds,
  });
}
