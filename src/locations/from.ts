import { z } from "zod";
import { type Call, type Endpoint, FROM, type Services } from "../api/endpoint.ts";
import { ApiError, ERRORS } from "../api/errors.ts";
import type { Parameter, Parameters, ValuesOf } from "../api/parameters.ts";
import { locationName, named, once, text } from "../api/schemas.ts";
import { ALL_LOCATIONS, asksSeveral } from "../config/settings.ts";
import { NOT_CONNECTED, unavailable } from "./replies.ts";

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
  price(from = "", locations) {
    const places = from === ALL_LOCATIONS ? locations() : new Set(from.split(",")).size;
    // More are refused, and none too.
    return places <= MAX_LOCATIONS ? Math.max(1, places) : 1;
  },
  option: {
    flags: "--from",
    help: "with --server, the location that measures, several (a,b), or the word all",
  },
};

/**
 * An endpoint whose work other locations can do: it gets the parameter `from`, events with the location,
 * and a result for several locations.
 */
export function withFrom(here: Endpoint): Endpoint {
  const [subject = ""] = Object.keys(here.parameters);
  const several = once(() => severalResults(here.response()));
  const events = here.events && once(() => eventsWithLocation(here.events?.() ?? {}));
  return {
    ...here,
    parameters: { ...here.parameters, [FROM]: fromParameter },
    response: once(() => {
      const results = [here.response(), several()] as const;
      const description = "The result of the service or of one location, or those of several.";
      return z.union(results).meta({ id: `${idOf(results[0])}OrMore`, description });
    }),
    ...(events && {
      events: () => ({ ...events(), location: several().shape.locations.element }),
    }),
    errors: [...here.errors, "LOCATION_NOT_FOUND", "LOCATION_TIMEOUT", "LOCATION_UNAVAILABLE"],
    async handle({ [FROM]: from, ...values }, call, services) {
      if (from === undefined) return here.handle(values, call, services);
      const text = from as string;
      const measure = (location: string, locatedCall: Call) =>
        measureAt(location, here, values, locatedCall, services);
      if (!asksSeveral(text)) return measure(text, call);
      const locations = await measureAtSeveral(namesOf(text, services), measure, call);
      return { target: values[subject], locations };
    },
  };
}

/** The names that `from` means. */
function namesOf(from: string, { locations }: Services): readonly string[] {
  const refuse = (why: string) =>
    new ApiError("INVALID_PARAMETER", { parameter: FROM, value: from }, why);
  if (from !== ALL_LOCATIONS) {
    const named = new Set(from.split(","));
    if (named.has(ALL_LOCATIONS)) throw refuse(`${ALL_LOCATIONS} cannot be one of several names`);
    return [...named];
  }
  if (locations?.isConnected === false) throw unavailable(from, NOT_CONNECTED);
  const names = (locations?.list() ?? []).map(({ location }) => location);
  if (names.length === 0) throw new ApiError("LOCATION_NOT_FOUND", { location: from });
  if (names.length <= MAX_LOCATIONS) return names;
  throw refuse(`there are ${names.length} locations; name up to ${MAX_LOCATIONS} of them`);
}

async function measureAt(
  location: string,
  here: Endpoint,
  values: ValuesOf<Parameters>,
  call: Call,
  services: Services,
): Promise<object> {
  const { onEvent } = call;
  const tell: Call["onEvent"] =
    onEvent && ((name, data, mayTell) => onEvent(name, { ...data, location }, mayTell));
  const locatedCall = { ...call, onEvent: tell };
  const { locations } = services;
  if (!locations) throw new ApiError("LOCATION_NOT_FOUND", { location });
  const question = { endpoint: here, parameters: textsOf(here, values) };
  const result = (await (location === locations.own
    ? here.handle(values, locatedCall, services)
    : locations.ask(location, question, locatedCall))) as { readonly details?: object };
  return { ...result, details: { ...result.details, location } };
}

/** Measures at all locations at once, with an event for each result when it is known. */
async function measureAtSeveral(
  names: readonly string[],
  measure: (location: string, call: Call) => Promise<object>,
  call: Call,
): Promise<readonly object[]> {
  let longestSeconds = 0;
  const allowSeconds = (seconds: number) => {
    longestSeconds = Math.max(longestSeconds, seconds);
    call.allowSeconds(longestSeconds);
  };
  return await Promise.all(
    names.map(async (location) => {
      const entry = await measure(location, { ...call, allowSeconds }).then(
        (result) => ({ location, result }),
        (error) => {
          if (error instanceof ApiError) return { location, error: error.body.error };
          throw error;
        },
      );
      call.onEvent?.("location", entry);
      return entry;
    }),
  );
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

/** The schema of the results of several locations. */
function severalResults(result: z.ZodType) {
  const location = locationName();
  const error = z.strictObject({
    code: z.enum(Object.keys(ERRORS)),
    message: text("One sentence: what is wrong, and what to do."),
    details: z.looseObject({}).describe("As in the error of a request."),
  });
  const one = z
    .union([z.strictObject({ location, result }), z.strictObject({ location, error })])
    .meta({ id: `${idOf(result)}At`, description: "The result or the error of a location." });
  return named(`${idOf(result)}s`, "What several locations measured.", {
    target: text("The target or the name as it was sent."),
    locations: z.array(one).max(MAX_LOCATIONS).describe("In the order of `from`."),
  });
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
