import { z } from "zod";
import { mapValues } from "../util/objects.ts";
import { ApiError } from "./errors.ts";
import { once } from "./schemas.ts";

/** The values that a parameter may have, as in the details of INVALID_PARAMETER. */
type Bounds =
  | { readonly allowed: readonly string[] }
  | { readonly minimum: number; readonly maximum: number };

/** The description of a parameter in the OpenAPI document, at the command line and on the page. */
interface About<T> {
  readonly description: string;
  readonly example: T;
  /** Its option, such as `-m, --max-hops`, and its help; without one, commands lack the parameter. */
  readonly option?: { readonly flags: string; readonly help?: string };
  /** An option for each of several values instead, which may also take a port. */
  readonly switches?: Readonly<Record<string, { readonly flags: string; readonly help: string }>>;
  /** Its name on the page, and the hint below its field; without a label, forms lack it. */
  readonly label?: string;
  readonly hint?: string;
  /** The parameter that it depends on: forms show it while that parameter does not have its default. */
  readonly goesWith?: string;
}

/** A parameter in the query, or a segment of the path. */
export interface Parameter<T = unknown> extends About<T> {
  readonly in: "query" | "path";
  /** A function, because schemas take time to build: each is built for its first request. */
  readonly schema: () => z.ZodType<T, string | undefined>;
  readonly bounds?: Bounds;
  /** The value of a request without it. */
  readonly default?: T;
  /**
   * The number of requests that a request with this value counts as; without it, one.
   *
   * @param values of all parameters that are valid
   * @param locations the available locations, by the words of `from`
   */
  price?(
    value: T,
    values: Readonly<Record<string, unknown>>,
    locations: () => ReadonlyMap<string, readonly string[]>,
  ): number;
  /** The values of a parameter without bounds, in words. */
  readonly expected?: string;
  /** The value of a segment if the path ends before it; without this, such a path does not exist. */
  readonly whenEmpty?: string;
  /** The greatest value for a command without `--server`, which runs for its user alone. */
  readonly maximumAlone?: number;
  /** True if the option takes seconds, for a parameter in milliseconds. */
  readonly isInSeconds?: boolean;
}

/** The parameters of an endpoint by name. */
export type Parameters = Readonly<Record<string, Parameter>>;

/** The values of parameters. */
export type ValuesOf<P extends Parameters> = {
  readonly [Name in keyof P]: z.output<ReturnType<P[Name]["schema"]>>;
};

/** Parameters as they were sent: the segments of the path, and all values in the query by name. */
export interface SentParameters {
  param(name: string): string | undefined;
  queries(): Readonly<Record<string, string[]>>;
}

type Integer = About<number> &
  Pick<Parameter<number>, "maximumAlone" | "isInSeconds" | "price"> &
  Extract<Bounds, { readonly minimum: number }>;

function integer(minimum: number, maximum: number, preset: number | undefined) {
  const inRange = z.int().min(minimum).max(maximum);
  const digits = z.string().regex(/^[0-9]+$/);
  const whole = digits.transform(Number).pipe(inRange);
  return preset === undefined ? whole.optional() : whole.default(preset);
}

/** A whole number in ASCII decimal digits. If it is missing, its value is the default or undefined. */
export function integerParameter<Preset extends number | undefined = undefined>({
  minimum,
  maximum,
  ...others
}: Integer & { readonly default?: Preset }) {
  const schema = once(() => integer(minimum, maximum, others.default));
  const parameter = { in: "query", schema, bounds: { minimum, maximum }, ...others };
  return parameter as Parameter<number | Preset>;
}

/** One of a list of words, in exactly that spelling. */
export function choiceParameter<const T extends readonly string[]>(
  allowed: T,
  others: About<T[number]> & Pick<Parameter<T[number]>, "price"> & { readonly default: T[number] },
): Parameter<T[number]> {
  const schema = once(() => z.enum(allowed).default(others.default));
  return { in: "query", schema, bounds: { allowed }, ...others };
}

/** Parameters with the wider bounds of a command without `--server`. */
export function alone(parameters: Parameters): Parameters {
  const widened = (parameter: Parameter): Parameter => {
    const { bounds, maximumAlone: maximum } = parameter;
    if (maximum === undefined || bounds === undefined || "allowed" in bounds) return parameter;
    const schema = once(() =>
      integer(bounds.minimum, maximum, parameter.default as number | undefined),
    );
    return { ...parameter, bounds: { ...bounds, maximum }, schema };
  };
  return mapValues(parameters, widened);
}

/** A parameter as the command line takes it: in seconds if its option is. */
export function optionParameter(parameter: Parameter): Parameter {
  const { bounds, isInSeconds, ...others } = parameter;
  if (!isInSeconds || bounds === undefined || "allowed" in bounds) return parameter;
  const { minimum, maximum } = bounds;
  const ms = (text: string) => (/^\d+(\.\d+)?$/.test(text) ? Math.round(Number(text) * 1000) : "");
  return {
    ...others,
    schema: once(() => z.string().transform(ms).pipe(z.int().min(minimum).max(maximum)).optional()),
    expected: `a number of seconds from ${minimum / 1000} to ${maximum / 1000}`,
  };
}

/** Keeps zod from making messages, which would take longer than the rest of a refusal; ours are more specific. */
const UNSAID = { error: () => "" };

/**
 * Reads an endpoint's parameters and ignores all others, unless their name differs by case only.
 *
 * @throws ApiError INVALID_PARAMETER for the first parameter that is missing, repeated, not valid or misspelled
 */
export function readParameters(parameters: Parameters, sent: SentParameters): ValuesOf<Parameters> {
  const values: Record<string, unknown> = {};
  let queries: Readonly<Record<string, string[]>> | undefined;
  for (const name in parameters) {
    const { in: place, schema, bounds, expected, whenEmpty } = parameters[name] as Parameter;
    if (place === "path") {
      values[name] = sent.param(name) ?? whenEmpty;
      continue;
    }
    queries ??= readQuery(parameters, sent);
    const all = queries[name] ?? [];
    const result = schema().safeParse(all[0], UNSAID);
    if (!result.success || all.length > 1) {
      const value = all.length > 1 ? all : (all[0] ?? null);
      const details = { parameter: name, value, ...bounds };
      throw new ApiError("INVALID_PARAMETER", details, expected);
    }
    values[name] = result.data;
  }
  return values;
}

/** The same as `readParameters`, for one text of each name. */
export function readTexts(parameters: Parameters, texts: Readonly<Record<string, string>>) {
  const queries = () => mapValues(texts, (text) => [text]);
  return readParameters(parameters, { param: (name) => texts[name], queries });
}

/**
 * The number of requests that a request with this query counts as: the price of the endpoint, multiplied by the prices
 * of its valid parameters.
 *
 * @param locations as for `Parameter.price`
 */
export function priceOf(
  { price = 1, parameters }: { readonly price?: number; readonly parameters: Parameters },
  query: Readonly<Record<string, string[]>>,
  locations: () => ReadonlyMap<string, readonly string[]>,
): number {
  // Parsing costs as much as the rest of a small answer, and most requests have no such parameter.
  if (!Object.keys(query).some((name) => parameters[name]?.price)) return price;
  const values = Object.fromEntries(
    Object.entries(parameters).flatMap(([name, { schema }]) => {
      const { success, data } = schema().safeParse(query[name]?.[0], UNSAID);
      return success ? [[name, data]] : [];
    }),
  );
  return Object.entries(values).reduce(
    (product, [name, value]) =>
      product * (parameters[name]?.price?.(value, values, locations) || 1),
    price,
  );
}

function readQuery(parameters: Parameters, sent: SentParameters) {
  const queries = sent.queries();
  for (const name in queries) {
    if (Object.hasOwn(parameters, name)) continue;
    const isSame = (other: string) => other.toLowerCase() === name.toLowerCase();
    const correct = Object.keys(parameters).find(isSame);
    if (correct === undefined) continue;
    const details = { parameter: name, value: queries[name]?.[0] ?? null };
    throw new ApiError("INVALID_PARAMETER", details, `its name is ${correct}`);
  }
  return queries;
}
