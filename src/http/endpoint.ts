import type { z } from "zod";
import type { KeyRecord } from "../keys/key-file.ts";
import type { Caller } from "./client-address.ts";
import type { ErrorCode } from "./errors.ts";
import type { Parameters, ValuesOf } from "./parameters.ts";
import type { ValueOf } from "./schemas.ts";

/** The prefix of every path. */
export const BASE_PATH = "/api/v1";

/** What is known of a request before it is routed. */
export interface RequestInfo {
  readonly request: Request;
  readonly id: string;
  readonly caller: Caller;
  /** The valid API key of the request, or null. */
  readonly key: KeyRecord | null;
  /** Headers of the response, whatever its status. */
  readonly headers: Readonly<Record<string, string>>;
  /** Keeps the connection open for a handler that may be silent for so many seconds. */
  readonly allowSeconds: (seconds: number) => void;
  /** The pattern of the path, once a route has matched. */
  route: string | null;
}

/** Endpoint metadata for the router and the OpenAPI document. */
interface Description<P extends Parameters, Schema extends z.ZodType> {
  /** Below BASE_PATH, with path parameters in braces. */
  readonly path: string;
  /** The name of the function in generated clients. */
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly needsKey: boolean;
  readonly parameters: P;
  /** A function, because only the OpenAPI document needs the schema. */
  readonly response: () => Schema;
  readonly example: NoInfer<ValueOf<Schema>>;
  /** Its errors beyond `COMMON_ERRORS` and, if it needs a key, UNAUTHORIZED. */
  readonly errors: readonly ErrorCode[];
}

/** A path of the API: its metadata and its handler. */
export interface Endpoint<Dependencies> extends Description<Parameters, z.ZodType> {
  /** Takes the dependencies once. The handler returns a value for JSON, or JSON text. */
  readonly create: (
    dependencies: Dependencies,
  ) => (parameters: ValuesOf<Parameters>, info: RequestInfo) => unknown;
}

/** Checks that an endpoint's handler matches its parameters and its response schema. */
export function endpoint<P extends Parameters, Schema extends z.ZodType, Dependencies>(
  description: Description<P, Schema>,
  create: (
    dependencies: Dependencies,
  ) => (parameters: ValuesOf<P>, info: RequestInfo) => ValueOf<Schema> | Promise<ValueOf<Schema>>,
): Endpoint<Dependencies> {
  return { ...description, create: create as Endpoint<Dependencies>["create"] };
}
