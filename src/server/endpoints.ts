import { z } from "zod";
import { describeInterface } from "../api/openapi.ts";
import { once } from "../api/schemas.ts";
import { locations } from "../locations/endpoint.ts";
import { withFrom } from "../locations/from.ts";
import { type Endpoint, endpoint } from "../tools/services.ts";
import { TOOLS, type Tool, toolNamed } from "../tools/table.ts";
import { change, watch, watches } from "../watch/endpoint.ts";
import type { ScheduleRules } from "../watch/schedule.ts";

/** `GET /openapi.json`: the OpenAPI document. */
export const openApi = endpoint({
  path: "/openapi.json",
  operationId: "getInterface",
  summary: "This document",
  description: "The API in OpenAPI 3.1, as `sixscope openapi` prints it.",
  needsKey: false,
  parameters: {},
  response: () =>
    z
      .looseObject({ openapi: z.string().describe("The version of OpenAPI.") })
      .meta({ id: "OpenApiDocument", description: "An OpenAPI 3.1 document." }),
  example: { openapi: "3.1.1", info: { title: "sixscope" } },
  errors: [],
  handle: () => interfaceText(),
});

/** Every endpoint of the service. */
export const ENDPOINTS: readonly Endpoint[] = [
  ...TOOLS.map(({ endpoint }) => (endpoint.runsElsewhere ? withFrom(endpoint) : endpoint)),
  watches,
  watch,
  change,
  locations,
  openApi,
];

/** The endpoint of a tool as a service has it, with its parameters for several locations. */
export function servedEndpoint({ endpoint }: Tool): Endpoint {
  return ENDPOINTS.find(({ path }) => path === endpoint.path) ?? endpoint;
}

/** The rules by which lines of the file of watches are checked. */
export const scheduleRules = (config: ScheduleRules["config"]): ScheduleRules => ({
  config,
  endpointOf: (tool) => servedEndpoint(toolNamed(tool)),
});

/** The OpenAPI document as text. */
export const interfaceText = once(() => JSON.stringify(describeInterface(ENDPOINTS)));
