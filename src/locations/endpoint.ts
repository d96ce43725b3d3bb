import { z } from "zod";
import { list, locationName, named, oneOf, text, whole } from "../api/schemas.ts";
import { endpoint } from "../tools/services.ts";
import { VERSION } from "../util/version.ts";
import example from "./example.json" with { type: "json" };

/** `GET /locations`: the locations at which the service can measure. */
export const locations = endpoint({
  path: "/locations",
  operationId: "listLocations",
  summary: "The locations that can measure",
  description:
    "The locations that `from` can name, in alphabetical order; the service's own is among them if it has one, and those that the operator expects. Agents that share a location share a row. The answer has an `ETag`.",
  needsKey: false,
  parameters: {},
  response: () =>
    named("Locations", "The locations that can measure.", {
      version: text("The version of this service."),
      locations: z.array(
        named("Location", "A location.", {
          location: locationName(),
          state: oneOf(["up", "down"], "Up if it can measure; down if it is expected and cannot."),
          agents: whole("Agents that are there.", 0),
          versions: list(z.string(), "Those of its agents, several if they differ."),
          families: list(
            z.literal([4, 6]).meta({ type: "integer" }),
            "The IP versions of its addresses.",
          ),
          since: z.iso
            .datetime()
            .nullable()
            .describe("When its first agent started; null if it is down."),
          tags: list(z.string(), "What `from` can call it too."),
        }),
      ),
    }),
  example,
  errors: [],
  handle: (_parameters, _call, { locations }) => locations?.json() ?? NONE,
});

const NONE = JSON.stringify({ version: VERSION, locations: [] });
