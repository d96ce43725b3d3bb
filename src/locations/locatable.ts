import { z } from "zod";
import { ALL_LOCATIONS } from "../config/settings.ts";
import { type Call, type Endpoint, endpoint, FROM, type Tools } from "../http/endpoint.ts";
import { ApiError, ERRORS, notConnected } from "../http/errors.ts";
import type { Parameter, Parameters, ValuesOf } from "../http/parameters.ts";
import { locationName, once } from "../http/schemas.ts";

/** Locations that one request can ask. */
const MAX_LOCATIONS = 32;

/** Which locations do the work; without it, the service itself. */
const fromParameter: Parameter<string | undefined> = {
  in: "query",
  schema: once(() =>
    z
      .string()
      .regex(new RegExp(`^[a-z0-9-]{1,32}(,[a-z0-9-]{1,32}){0,${MAX_LOCATIONS - 1}}$`))
      .optional(),
  ),
  expected: `the name of a location, up to ${MAX_LOCATIONS} names separated by commas, or ${ALL_LOCATIONS}`,
  description: `Where to measure instead: a location that \`/locations\` lists, whose result has \`details.location\`. Several (up to ${MAX_LOCATIONS}, separated by commas) or \`${ALL_LOCATIONS}\` give a result or an error for each.`,
  example: "ams",
};

/**
 * An endpoint that other locations can do the work of: it gets the parameter `from`, events with the
 * location, and a result for several locations.
 */
export function locatable<P extends Parameters, Schema extends z.ZodType>(
  definition: Endpoint<P, Schema>,
): Endpoint {
  const here: Endpoint = {
    ...endpoint(definition),
    response: once(definition.response),
    ...(definition.events && {
      events: once(() => eventsWithLocation(definition.events?.() ?? {})),
    }),
  };
  const several = once(() => severalResults(here.response()));
  return {
    ...here,
    parameters: { ...here.parameters, [FROM]: fromParameter },
    response: once(() => {
      const results = [here.response(), several()] as const;
      const description = "The result of the service or of one location, or those of several.";
      return z.union(results).meta({ id: `${idOf(results[0])}OrMore`, description });
    }),
    ...(here.events && {
      events: () => ({ ...here.events?.(), location: several().shape.locations.element }),
    }),
    errors: [...here.errors, "LOCATION_NOT_FOUND", "LOCATION_TIMEOUT", "LOCATION_UNAVAILABLE"],
    handle({ [FROM]: from, ...values }, call, tools) {
      if (from === undefined) return here.handle(values, call, tools);
      const text = from as string;
      const isOne = !text.includes(",") && text !== ALL_LOCATIONS;
      return isOne
        ? measureAt(text, here, values, call, tools)
        : measureAtSeveral(namesOf(text, tools), here, values, call, tools);
    },
  };
}

/** The names that `from` means. */
function namesOf(from: string, { locations }: Tools): readonly string[] {
  if (from !== ALL_LOCATIONS) return [...new Set(from.split(","))];
  if (locations?.isConnected === false) throw notConnected(from);
  const names = (locations?.list() ?? []).map(({ location }) => location);
  if (names.length === 0) throw new ApiError("LOCATION_NOT_FOUND", { location: from });
  if (names.length <= MAX_LOCATIONS) return names;
  const advice = `there are ${names.length} locations; name up to ${MAX_LOCATIONS} of them`;
  throw new ApiError("INVALID_PARAMETER", { parameter: FROM, value: from }, advice);
}

async function measureAt(
  location: string,
  here: Endpoint,
  values: ValuesOf<Parameters>,
  call: Call,
  tools: Tools,
): Promise<object> {
  const { signal, address, owner, allowSeconds, onEvent } = call;
  const tell: Call["onEvent"] = onEvent && ((name, data) => onEvent(name, { ...data, location }));
  const locatedCall = { signal, address, owner, allowSeconds, onEvent: tell };
  const { locations } = tools;
  if (location !== locations?.own && !locations)
    throw new ApiError("LOCATION_NOT_FOUND", { location });
  const result = (
    location === locations.own
      ? await here.handle(values, locatedCall, tools)
      : await locations.ask(
          location,
          { endpoint: here, parameters: textsOf(here, values) },
          locatedCall,
        )
  ) as { readonly details?: object };
  return { ...result, details: { ...result.details, location } };
}

/** Measures at all locations at once, and tells of each result when it is known. */
async function measureAtSeveral(
  names: readonly string[],
  here: Endpoint,
  values: ValuesOf<Parameters>,
  call: Call,
  tools: Tools,
): Promise<object> {
  let longestSeconds = 0;
  const allowSeconds = (seconds: number) => {
    longestSeconds = Math.max(longestSeconds, seconds);
    call.allowSeconds(longestSeconds);
  };
  const { signal, address, owner, onEvent } = call;
  const located = { signal, address, owner, allowSeconds, onEvent };
  const locations = await Promise.all(
    names.map(async (location) => {
      const entry = await measureAt(location, here, values, located, tools).then(
        (result) => ({ location, result }),
        (error) => {
          if (error instanceof ApiError) return { location, error: error.body.error };
          throw error;
        },
      );
      onEvent?.("location", entry);
      return entry;
    }),
  );
  return { target: values[pathParameterOf(here)], locations };
}

/** The parameters as a request sends them, without those that have their default: an older agent may not know them. */
function textsOf({ parameters }: Endpoint, values: ValuesOf<Parameters>): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [name, { schema }] of Object.entries(parameters)) {
    const value = values[name];
    const fallback = schema().safeParse(undefined);
    if (!fallback.success || fallback.data !== value) texts[name] = String(value);
  }
  return texts;
}

function pathParameterOf({ parameters }: Endpoint): string {
  return Object.entries(parameters).find(([, parameter]) => parameter.in === "path")?.[0] ?? "";
}

/** The schema of the results of several locations. */
function severalResults(result: z.ZodType) {
  const location = locationName();
  const error = z.strictObject({
    code: z.enum(Object.keys(ERRORS)),
    message: z.string().describe("One sentence: what is wrong, and what to do."),
    details: z.looseObject({}).describe("As in the error of a request."),
  });
  const one = z
    .union([z.strictObject({ location, result }), z.strictObject({ location, error })])
    .meta({ id: `${idOf(result)}At`, description: "The result or the error of a location." });
  return z
    .strictObject({
      target: z.string().describe("The target or the name as it was sent."),
      locations: z.array(one).max(MAX_LOCATIONS).describe("In the order of `from`."),
    })
    .meta({ id: `${idOf(result)}s`, description: "What several locations measured." });
}

/** The schemas of events, which have the location that measures if the request names one. */
function eventsWithLocation(events: Readonly<Record<string, z.ZodType>>) {
  const located = (schema: z.ZodType): z.ZodType =>
    schema instanceof z.ZodUnion
      ? z.union(schema.options.map((option) => located(option as z.ZodType)))
      : (schema as z.ZodObject).extend({ location: locationName() });
  return Object.fromEntries(
    Object.entries(events).map(([name, schema]) => {
      const { id, description } = z.globalRegistry.get(schema) ?? {};
      const either = z.union([schema, located(schema)]);
      return [name, either.meta({ id: `${id}Event`, ...(description && { description }) })];
    }),
  );
}

function idOf(schema: z.ZodType): string {
  return z.globalRegistry.get(schema)?.id ?? "";
}
