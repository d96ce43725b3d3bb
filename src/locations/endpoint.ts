import { z } from "zod";
import { endpoint } from "../api/endpoint.ts";
import { list, locationName, named, text } from "../api/schemas.ts";

/** `GET /locations`: where else the service can measure. */
export const locations = endpoint({
  path: "/locations",
  operationId: "listLocations",
  summary: "The locations that can measure",
  description:
    "The locations that `from` can name, in alphabetical order; the service's own is among them if it has one. Agents that share a location share a row.",
  needsKey: false,
  parameters: {},
  response: () =>
    named("Locations", "The locations that can measure.", {
      locations: z.array(
        named("Location", "A location that can measure.", {
          location: locationName(),
          version: text("The version of the sixscope there."),
          families: list(
            z.literal([4, 6]).meta({ type: "integer" }),
            "The IP versions of its addresses.",
          ),
          since: z.iso.datetime().describe("When it started."),
        }),
      ),
    }),
  example: {
    locations: [
      { location: "ams", version: "0.1.0", families: [4, 6], since: "2026-01-31T12:00:00.000Z" },
    ],
  },
  errors: [],
  handle: (_parameters, _call, { locations }) => ({ locations: locations?.list() ?? [] }),
});
