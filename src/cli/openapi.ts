import { interfaceText } from "../routes/endpoints.ts";
import { UsageError } from "./usage.ts";

export const OPENAPI_USAGE =
  "sixscope openapi                                      print the interface as OpenAPI 3.1";

/**
 * `sixscope openapi`: the document that a running service has at `/api/v1/openapi.json`.
 *
 * @returns the text for standard output
 * @throws UsageError
 */
export function runOpenApi(argv: readonly string[]): string {
  if (argv.length > 0) throw new UsageError("openapi takes no arguments", OPENAPI_USAGE);
  return interfaceText();
}
