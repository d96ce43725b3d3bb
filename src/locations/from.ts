import { z } from "zod";
import { type Call, FROM, SEVERAL } from "../api/endpoint.ts";
import { ApiError, apiErrorOf, ERRORS } from "../api/errors.ts";
import { integerParameter, type Parameter } from "../api/parameters.ts";
import { amount, locationName, named, once, text, whole } from "../api/schemas.ts";
import { ALL_LOCATIONS } from "../config/settings.ts";
import type { Endpoint } from "../tools/services.ts";
import { type Summary, summaryRow } from "../tools/summary.ts";
import { mapValues } from "../util/objects.ts";
import { MAX_SECONDS } from "./ask-agent.ts";
import { NOT_CONNECTED, unavailable } from "./replies.ts";

/** Locations that one request can ask. */
const MAX_LOCATIONS = 32;

/** Names or tags of locations, or the word for all of them alone. */
const FROM_FORM = new RegExp(
  `^(?!all,|.*,all(,|$))[a-z0-9-]{1,32}(,[a-z0-9-]{1,32}){0,${MAX_LOCATIONS - 1}}$`,
);

/** The parameter that bounds `from`. */
const LIMIT = "limit";

/** The locations that measure; without it, the service itself. */
const fromParameter: Parameter<string | undefined> = {
  in: "query",
  schema: once(() => z.string().regex(FROM_FORM).optional()),
  expected: `the name or a tag of locations, up to ${MAX_LOCATIONS} of them separated by commas, or ${ALL_LOCATIONS}`,
  description: `Where to measure instead: a location that \`/locations\` lists, whose result has \`details.location\`. Several names or tags (up to ${MAX_LOCATIONS}, separated by commas), a tag or \`${ALL_LOCATIONS}\` give a result or an error for each location, and \`details.summary\`: an answer with the media type \`${SEVERAL}\`.`,
  example: "ams",
  price(from = "", { [LIMIT]: limit = MAX_LOCATIONS }, locations) {
    const most = limit as number;
    const names = matchesOf(from, locations()).flatMap((some) => some.slice(0, most));
    return Math.max(1, Math.min(most, new Set(names).size));
  },
  option: {
    flags: "--from",
    help: "with --server, the location that measures, several (a,b), those with a tag, or the word all",
  },
};

/** The number of locations that measure, if `from` means more. */
const limitParameter = integerParameter({
  minimum: 1,
  maximum: MAX_LOCATIONS,
  default: MAX_LOCATIONS,
  description:
    "Locations to measure at, if `from` means more: they are chosen at random, in turn from each of its tags.",
  example: 5,
  option: { flags: "--limit", help: "locations to measure at, if --from means more" },
});

/**
 * Makes an endpoint whose work other locations can do: it adds the parameters `from` and `limit`, events with the
 * location, and a result for several locations.
 */
export function withFrom(here: Endpoint): Endpoint {
  const { parameters, response, events } = here;
  const [subject = ""] = Object.keys(parameters);
  // A look at the machine itself has no target.
  const hasTarget = parameters[subject]?.in === "path";
  const several = once(() => severalResults(response(), hasTarget));
  return {
    ...here,
    parameters: { ...parameters, [FROM]: fromParameter, [LIMIT]: limitParameter },
    several,
    ...(events && {
      events: once(() => {
        const { details: summary, locations } = several().shape;
        return { ...eventsWithLocation(events()), summary, location: locations.element };
      }),
    }),
    errors: [...here.errors, "LOCATION_NOT_FOUND", "LOCATION_TIMEOUT", "LOCATION_UNAVAILABLE"],
    async handle({ [FROM]: from, [LIMIT]: limit, ...values }, call, services) {
      if (from === undefined) return here.handle(values, call, services);
      const text = from as string;
      const { locations } = services;
      const question = { endpoint: here, parameters: textsOf(here, values) };
      const missing = (location: string) => {
        const names = locations?.byWord().get(ALL_LOCATIONS) ?? [];
        const more = names.length > MAX_LOCATIONS ? ", …" : "";
        const available = `${names.slice(0, MAX_LOCATIONS).join(", ")}${more}`;
        return new ApiError("LOCATION_NOT_FOUND", { location }, available);
      };
      const measure = async (location: string, call: Call): Promise<object> => {
        const { onEvent } = call;
        const tell: Call["onEvent"] =
          onEvent && ((name, data, mayTell) => onEvent(name, { ...data, location }, mayTell));
        const locatedCall = { ...call, onEvent: tell };
        if (!locations) throw missing(location);
        const rethrow = (error: unknown): never => {
          throw apiErrorOf(error).code === "LOCATION_NOT_FOUND" ? missing(location) : error;
        };
        const result = (await (location === locations.own
          ? here.handle(values, locatedCall, services)
          : locations.ask(location, question, locatedCall).catch(rethrow))) as {
          readonly details?: object;
        };
        return { ...result, details: { ...result.details, location } };
      };
      const { isConnected } = locations ?? {};
      if (text === ALL_LOCATIONS && isConnected === false) throw unavailable(text, NOT_CONNECTED);
      const matches = matchesOf(text, locations?.byWord());
      if (matches.every(({ length }) => length === 0)) throw missing(text);
      if (matches.length === 1 && matches[0]?.join() === text) return measure(text, call);
      const names = chooseLocations(matches, limit as number);
      const summary = names.map((name) => summaryRow(name));
      const details = { summary, matching: new Set(matches.flat()).size };
      const results = await measureAtSeveral(names, measure, call, details);
      return { ...(hasTarget && { target: values[subject] }), details, locations: results };
    },
  };
}

/** The locations that each word of `from` means; an unknown word counts as a name. */
function matchesOf(from: string, locations: ReadonlyMap<string, readonly string[]> = new Map()) {
  const words = [...new Set(from.split(","))];
  return words.map((word) => locations.get(word) ?? (word === ALL_LOCATIONS ? [] : [word]));
}

/**
 * Chooses up to `limit` locations: each word of a request in turn gives one of its locations, at random. The
 * result is in the order of the words.
 */
export function chooseLocations(
  matches: readonly (readonly string[])[],
  limit: number,
  random: () => number = Math.random,
): readonly string[] {
  const drawn = matches.flatMap((names) => [...shuffle(names, random).entries()]);
  const inTurn = drawn.sort(([turn], [other]) => turn - other).map(([, name]) => name);
  const chosen = new Set([...new Set(inTurn)].slice(0, limit));
  return [...new Set(matches.flat())].filter((name) => chosen.has(name));
}

function shuffle(names: readonly string[], random: () => number): readonly string[] {
  const drawn = names.map((name) => ({ name, at: random() }));
  return drawn.sort((one, other) => one.at - other.at).map(({ name }) => name);
}

/** Measures at all locations at once. Sends an event for each result, and one for the comparison after it. */
async function measureAtSeveral(
  names: readonly string[],
  measure: (location: string, call: Call) => Promise<object>,
  call: Call,
  details: { readonly summary: Summary["summary"][number][]; readonly matching: number },
): Promise<readonly object[]> {
  call.allowSeconds(MAX_SECONDS);
  const quiet = { ...call, allowSeconds: () => {} };
  const tellSummary = () =>
    call.onEvent?.("summary", { ...details, summary: [...details.summary] });
  tellSummary();
  return await Promise.all(
    names.map(async (location, at) => {
      const entry = await measure(location, quiet).then(
        (result) => ({ location, result }),
        (error) => ({ location, error: apiErrorOf(error).body.error }),
      );
      details.summary[at] =
        "error" in entry
          ? summaryRow(location, {}, entry.error.code)
          : summaryRow(location, entry.result);
      call.onEvent?.("location", entry);
      tellSummary();
      return entry;
    }),
  );
}

/** The parameters as a request sends them. Defaults are left out, because an older agent may not know the parameter. */
function textsOf({ parameters }: Endpoint, values: Readonly<Record<string, unknown>>) {
  const texts: Record<string, string> = {};
  for (const [name, { schema }] of Object.entries(parameters)) {
    const value = values[name];
    const fallback = schema().safeParse(undefined);
    if (!fallback.success || fallback.data !== value) texts[name] = String(value);
  }
  return texts;
}

/** The schema of the results of several locations. */
function severalResults(result: z.ZodType, hasTarget: boolean) {
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
    ...(hasTarget && { target: text("The target or the name as it was sent.") }),
    details: comparison(),
    locations: z.array(one).max(MAX_LOCATIONS).describe("In the order of `from`."),
  });
}

/** The schema of the comparison of several locations. */
const comparison = once(() => {
  const row = named("LocationSummary", "A location in the comparison.", {
    location: locationName(),
    verdict: text("The code of its verdict; null before it has one.").nullable(),
    error: text("The code of its error; null without one.").nullable(),
    loss: amount("The target's loss in percent; null if not known.", 100).nullable(),
    median: amount("The median time in milliseconds; null if not known.").nullable(),
    hops: whole("Hops to the target; null if not reached.", 1).nullable(),
    mtu: whole("The path MTU in bytes; null if not known.", 0).nullable(),
  });
  return named("Comparison", "Several locations beside each other.", {
    summary: z.array(row).max(MAX_LOCATIONS).describe("A row for each location, in their order."),
    matching: whole("Locations that `from` means; `limit` of them were asked.", 1),
  });
});

/** The schemas of events, also with the location that measures. */
function eventsWithLocation(events: Readonly<Record<string, z.ZodType>>) {
  const located = (schema: z.ZodType): z.ZodType =>
    schema instanceof z.ZodUnion
      ? z.union(schema.options.map((option) => located(option as z.ZodType)))
      : (schema as z.ZodObject).extend({ location: locationName() });
  return mapValues(events, (schema) => {
    const { id, description } = z.globalRegistry.get(schema) ?? {};
    const either = z.union([schema, located(schema)]);
    return either.meta({ id: `${id}Event`, ...(description && { description }) });
  });
}

function idOf(schema: z.ZodType): string {
  return z.globalRegistry.get(schema)?.id ?? "";
}
