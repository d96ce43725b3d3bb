import { z } from "zod";
import { endpoint } from "../http/endpoint.ts";
import { locationName } from "../http/schemas.ts";

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
    z
      .strictObject({
        locations: z.array(
          z
            .strictObject({
              location: locationName(),
              version: z.string().describe("The version of the sixscope there."),
              families: z
                .array(z.literal([4, 6]).meta({ type: "integer" }))
                .describe("The IP versions of its addresses."),
              since: z.iso.datetime().describe("When it started."),
            })
            .meta({ id: "Location", description: "A location that can measure." }),
        ),
      })
      .meta({ id: "Locations", description: "The locations that can measure." }),
  example: {
    locations: [
      { location: "ams", version: "0.1.0", families: [4, 6], since: "2026-01-31T12:00:00.000Z" },
    ],
  },
  errors: [],
  handle: (_parameters, _call, { locations }) => ({ locations: locations?.list() ?? [] }),
});
