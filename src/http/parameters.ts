import { z } from "zod";
import { ApiError } from "./errors.ts";

/** The values that a parameter may have, as in the details of INVALID_PARAMETER. */
type Bounds =
  | { readonly allowed: readonly string[] }
  | { readonly minimum: number; readonly maximum: number }
  | Record<string, never>;

/** What the OpenAPI document says about a parameter. */
interface About<T> {
  readonly description: string;
  readonly example: T;
}

interface QueryParameter<T> extends About<T> {
  readonly in: "query";
  readonly schema: z.ZodType<T, string | undefined>;
  readonly bounds: Bounds;
  /** What the parameter must be, unless the bounds say it. */
  readonly expected?: string;
}

/** A segment of the path. */
interface PathParameter extends About<string> {
  readonly in: "path";
  /** Its value if the path ends with a slash; without this, such a path does not exist. */
  readonly whenEmpty?: string;
  readonly schema: z.ZodType<string, string | undefined>;
}

export type Parameter<T = unknown> = QueryParameter<T> | PathParameter;

/** The parameters of an endpoint by name. */
export type Parameters = Readonly<Record<string, Parameter>>;

/** The values of parameters. */
export type ValuesOf<P extends Parameters> = {
  readonly [Name in keyof P]: z.output<P[Name]["schema"]>;
};

/** The router's view of a request's parameters. */
interface Sent {
  param(name: string): string | undefined;
  queries(name: string): readonly string[] | undefined;
}

/** A whole number in ASCII decimal digits. */
export function integerParameter({
  minimum,
  maximum,
  default: fallback,
  ...about
}: About<number> & {
  readonly minimum: number;
  readonly maximum: number;
  readonly default: number;
}): QueryParameter<number> {
  const schema = z
    .string()
    .regex(/^[0-9]+$/)
    .transform(Number)
    .pipe(z.int().min(minimum).max(maximum))
    .prefault(String(fallback));
  return { in: "query", schema, bounds: { minimum, maximum }, ...about };
}

/** One of a list of words, in exactly that spelling. */
export function choiceParameter<const T extends readonly string[]>(
  allowed: T,
  { default: fallback, ...about }: About<T[number]> & { readonly default: T[number] },
): QueryParameter<T[number]> {
  return { in: "query", schema: z.enum(allowed).default(fallback), bounds: { allowed }, ...about };
}

/** A required text, which the endpoint checks. */
export function textParameter(expected: string, about: About<string>): QueryParameter<string> {
  return { in: "query", schema: z.string(), bounds: {}, expected, ...about };
}

/** A segment of the path, which the endpoint checks. */
export function pathParameter(about: About<string> & { whenEmpty?: string }): PathParameter {
  return { in: "path", schema: z.string(), ...about };
}

/**
 * Makes the function that reads an endpoint's parameters and ignores all others; it throws ApiError
 * INVALID_PARAMETER for the first that is missing, repeated or not valid.
 */
export function parameterReader<P extends Parameters>(parameters: P): (sent: Sent) => ValuesOf<P> {
  const entries = Object.entries(parameters);
  return (sent) => {
    const values: Record<string, unknown> = {};
    for (const [name, parameter] of entries) {
      values[name] =
        parameter.in === "path"
          ? (sent.param(name) ?? parameter.whenEmpty)
          : readQuery(name, sent.queries(name) ?? [], parameter);
    }
    return values as ValuesOf<P>;
  };
}

function readQuery<T>(
  name: string,
  sent: readonly string[],
  { schema, bounds, expected }: QueryParameter<T>,
): T {
  const [only] = sent;
  if (sent.length < 2) {
    const result = schema.safeParse(only);
    if (result.success) return result.data;
  }
  const value = sent.length > 1 ? sent : (only ?? null);
  throw new ApiError(
    "INVALID_PARAMETER",
    { parameter: name, value, ...bounds },
    expected && `it must be ${expected}`,
  );
}
