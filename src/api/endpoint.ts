import type { z } from "zod";
import type { IpAddress } from "../addr/ip.ts";
import type { ErrorCode } from "./errors.ts";
import type { Parameters, ValuesOf } from "./parameters.ts";
import type { ValueOf } from "./schemas.ts";

/** The prefix of every path. */
export const BASE_PATH = "/api/v1";

/** The parameter that names the locations that measure. */
export const FROM = "from";

/** The media type of the answer of several locations. */
export const SEVERAL = "application/json; profile=several";

/** True if an answer of an endpoint is from several locations. */
export const isOfSeveral = ({ several }: Pick<Endpoint, "several">, answer: unknown): boolean =>
  several !== undefined && "locations" in Object(answer);

/** Called with the bytes of an event before it is sent over a network; false if it must not be sent. */
export type MayTell = (bytes: number) => boolean;

/** A call of a handler, by a request or by a command. */
export interface Call {
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
  /** The caller's address; null if it is unknown. */
  readonly address: IpAddress | null;
  /** Aborts with `ENOUGH` when the caller wants the result so far of an mtr or a search for paths. */
  readonly enough?: AbortSignal | undefined;
  /** Pauses an mtr between its rounds, for as long as the caller wants no probes. */
  readonly mayGoOn?: (() => Promise<void> | undefined) | undefined;
  /** The client whose share of the slots it uses. */
  readonly client: string;
  /** The id of its request, also for the log of an agent. */
  readonly id?: string | undefined;
  /** Called with the address that is probed, for the log. */
  readonly onAddress?: ((ip: string) => void) | undefined;
  /** Keeps the connection open for a handler that may be silent for some seconds. */
  readonly allowSeconds: (seconds: number) => void;
  /** Called with each event of the endpoint, and its data as the result will contain it. */
  readonly onEvent?: ((name: string, data: object, mayTell?: MayTell) => void) | undefined;
}

/**
 * A path of the API: its handler, and its metadata for the router and the OpenAPI document.
 *
 * @typeParam Services the parts of the service that its handler uses
 */
export interface Endpoint<
  Services = never,
  P extends Parameters = Parameters,
  Schema extends z.ZodType = z.ZodType,
> {
  /** Below BASE_PATH, with path parameters in braces. */
  readonly path: string;
  /** The name of the function in generated clients. */
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly needsKey: boolean;
  /** The number of requests that one counts as; absent for one. */
  readonly price?: number;
  readonly parameters: P;
  /** A function, because only the OpenAPI document needs the schema. */
  readonly response: () => Schema;
  /** The schema of the answer of several locations, which has the media type `SEVERAL`; absent if there is none. */
  readonly several?: () => z.ZodType;
  /** A document of the response; a test checks it against the schema. */
  readonly example: object;
  /** The schemas of the data of its events, by their names. */
  readonly events?: () => Readonly<Record<string, z.ZodType>>;
  /** True if its events go on until the client goes: the stream begins at once. */
  readonly isLive?: boolean;
  /** True if other locations can do its work, for requests with `from`. */
  readonly runsElsewhere?: boolean;
  /** Its errors beyond `COMMON_ERRORS` and, if it needs a key, UNAUTHORIZED and KEYS_UNAVAILABLE. */
  readonly errors: readonly ErrorCode[];
  /** Returns the value of the response, or its JSON if that seldom changes. */
  handle(
    parameters: ValuesOf<P>,
    call: Call,
    services: Services,
  ): NoInfer<ValueOf<Schema>> | string | Promise<NoInfer<ValueOf<Schema>>>;
}
