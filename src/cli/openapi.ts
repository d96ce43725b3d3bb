import { interfaceText } from "../routes/endpoints.ts";

export const OPENAPI_USAGE =
  "sixscope openapi                                      print the interface as OpenAPI 3.1";

/**
 * `sixscope openapi`: the document that a running service has at `/api/v1/openapi.json`.
 *
 * @returns the text for standard output
 */
export function runOpenApi(): string {
  return interfaceText();
}
