import { z } from "zod";
import { type Endpoint, endpoint } from "../http/endpoint.ts";
import { describeInterface } from "../http/openapi.ts";
import { once } from "../http/schemas.ts";
import { dns } from "./dns.ts";
import { locations } from "./locations.ts";
import { mtr } from "./mtr.ts";
import { mtu } from "./mtu.ts";
import { myIp } from "./my-ip.ts";
import { ping } from "./ping.ts";
import { traceroute } from "./traceroute.ts";
import { validate } from "./validate.ts";

/** `GET /openapi.json`: the OpenAPI document. */
const openApi = endpoint({
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

/** Every endpoint. To add one, write a file that defines it, and add it here. */
export const ENDPOINTS: readonly Endpoint[] = [
  myIp,
  validate,
  dns,
  ping,
  traceroute,
  mtr,
  mtu,
  locations,
  openApi,
];

/** The OpenAPI document as text. */
export const interfaceText = once(() => JSON.stringify(describeInterface(ENDPOINTS)));
