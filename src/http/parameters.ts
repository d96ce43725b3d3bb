import type { Context } from "hono";
import { z } from "zod";
import { quote } from "../util/text.ts";
import { ApiError } from "./errors.ts";

/** What a parameter may be; stands in the details of INVALID_PARAMETER. */
type Bounds =
  | { readonly allowed: readonly string[] }
  | { readonly minimum: number; readonly maximum: number }
  | Record<string, never>;

/** What the interface document says about a parameter. */
interface About<T> {
  readonly description: string;
  readonly example: T;
}

/** A query parameter: how its text is checked, and what is said where it does not pass. */
interface QueryParameter<T> extends About<T> {
  readonly in: "query";
  readonly schema: z.ZodType<T, string | undefined>;
  readonly bounds: Bounds;
  /** Completes the sentence "the parameter must be …". */
  readonly expected: string;
}

/** A segment of the path; the endpoint itself judges it. */
interface PathParameter extends About<string> {
  readonly in: "path";
  /** What it is where the path ends with a slash; without this, nothing is there. */
  readonly whenEmpty?: string;
  readonly schema: z.ZodType<string, string | undefined>;
}

/** What a caller tells an endpoint. */
export type Parameter<T = unknown> = QueryParameter<T> | PathParameter;

/** The parameters of an endpoint by name. */
export type Parameters = Readonly<Record<string, Parameter>>;

/** What is read of the parameters. */
export type ValuesOf<P extends Parameters> = {
  readonly [Name in keyof P]: z.output<P[Name]["schema"]>;
};

/** A whole number in ASCII decimal digits. */
export function integerParameter(
  options: About<number> & {
    readonly minimum: number;
    readonly maximum: number;
    readonly default: number;
  },
): QueryParameter<number> {
  const { minimum, maximum, description, example } = options;
  return {
    in: "query",
    schema: z
      .string()
      .regex(/^[0-9]+$/)
      .transform(Number)
      .pipe(z.int().min(minimum).max(maximum))
      .prefault(String(options.default)),
    bounds: { minimum, maximum },
    expected: `a whole number from ${minimum} to ${maximum}, in decimal digits`,
    description,
    example,
  };
}

/** One of a list of words, in exactly that spelling. */
export function choiceParameter<const T extends readonly string[]>(
  allowed: T,
  options: About<T[number]> & { readonly default: T[number] },
): QueryParameter<T[number]> {
  const { description, example } = options;
  return {
    in: "query",
    schema: z.enum(allowed).default(options.default),
    bounds: { allowed },
    expected: `one of ${allowed.join(", ")}`,
    description,
    example,
  };
}

/** A text that must be there; the endpoint itself judges it. */
export function textParameter(expected: string, about: About<string>): QueryParameter<string> {
  return { in: "query", schema: z.string(), bounds: {}, expected, ...about };
}

/** A segment of the path; the endpoint itself judges it. */
export function pathParameter(about: About<string> & { whenEmpty?: string }): PathParameter {
  return { in: "path", schema: z.string(), ...about };
}

/**
 * Makes what reads the parameters that an endpoint knows from a request, and ignores all others.
 *
 * The reader throws ApiError INVALID_PARAMETER for the first that is missing, repeated or wrong.
 */
export function parameterReader<P extends Parameters>(
  parameters: P,
): (context: Context) => ValuesOf<P> {
  const entries = Object.entries(parameters);
  return (context) => {
    const values: Record<string, unknown> = {};
    for (const [name, parameter] of entries) {
      values[name] =
        parameter.in === "path"
          ? (context.req.param(name) ?? parameter.whenEmpty)
          : readQuery(name, context.req.queries(name) ?? [], parameter);
    }
    return values as ValuesOf<P>;
  };
}

function readQuery<T>(name: string, sent: readonly string[], parameter: QueryParameter<T>): T {
  if (sent.length > 1) {
    throw invalid(name, sent, parameter, `is given ${sent.length} times; give it once, as`);
  }
  const [value] = sent;
  const result = parameter.schema.safeParse(value);
  if (result.success) return result.data;
  throw value === undefined
    ? invalid(name, null, parameter, "is missing; it must be")
    : invalid(name, value, parameter, `is ${quote(value)}; it must be`);
}

function invalid(
  name: string,
  value: string | readonly string[] | null,
  { bounds, expected }: QueryParameter<unknown>,
  what: string,
): ApiError {
  return new ApiError("INVALID_PARAMETER", `The parameter ${name} ${what} ${expected}.`, {
    parameter: name,
    value,
    ...bounds,
  });
}
