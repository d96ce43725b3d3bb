import type { z } from "zod";
import type { IpAddress } from "../addr/ip.ts";
import type { Config, ResolverName } from "../config/settings.ts";
import type { DnsClient } from "../dns/client.ts";
import type { IcmpEngine, NoIcmp } from "../icmp/engine.ts";
import type { ProbeSlots } from "../limits/probe-slots.ts";
import type { Networks } from "../networks/networks.ts";
import type { ErrorCode } from "./errors.ts";
import type { Parameters, ValuesOf } from "./parameters.ts";
import { once, type ValueOf } from "./schemas.ts";

/** The prefix of every path. */
export const BASE_PATH = "/api/v1";

/** The parameter that says where to measure. */
export const FROM = "from";

/** Called with the bytes of an event before it is sent over a network; false if it must not be sent. */
export type MayTell = (bytes: number) => boolean;

/** A call of a handler, by a request or by a command. */
export interface Call {
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
  /** The caller's address; null if it is unknown. */
  readonly address: IpAddress | null;
  /** Aborts with `ENOUGH` when the caller wants the result of an mtr or a search for paths as it is. */
  readonly enough?: AbortSignal | undefined;
  /** Whose share of the slots it uses. */
  readonly owner: string;
  /** The id of its request, under which the log of an agent has it too. */
  readonly id?: string | undefined;
  /** Called with the address that is probed, for the log. */
  readonly onAddress?: ((ip: string) => void) | undefined;
  /** Keeps the connection open for a handler that may be silent for some seconds. */
  readonly allowSeconds: (seconds: number) => void;
  /** Called with each event of the endpoint, and its data as the result will contain it. */
  readonly onEvent?: ((name: string, data: object, mayTell?: MayTell) => void) | undefined;
}

/** An endpoint, and its parameters as a request sends them. */
export interface Question {
  readonly endpoint: Endpoint;
  readonly parameters: Readonly<Record<string, string>>;
}

/** All that is known of the locations, until something changes. */
export interface KnownLocations {
  /** The document of `/locations`. */
  json(): string;
  /** Those that can measure now, by what `from` calls several: a tag that is not a name too, or the word for all. */
  byWord(): ReadonlyMap<string, readonly string[]>;
}

/** Other places where an endpoint can do its work, and the name of this one. */
export interface OtherLocations {
  readonly own: string | null;
  /** True if others can be reached now; null if none is configured. */
  readonly isConnected: boolean | null;
  readonly known: KnownLocations;
  /**
   * Asks a location, and returns its document.
   *
   * @throws ApiError of the location, or LOCATION_NOT_FOUND, LOCATION_TIMEOUT, LOCATION_UNAVAILABLE
   */
  ask(location: string, question: Question, call: Call): Promise<object>;
}

/** The parts of the service that handlers use. */
export interface Services {
  readonly config: Config;
  readonly resolvers: Readonly<Record<ResolverName, DnsClient>>;
  /** The server in place of all resolvers, if a command has chosen one: results of `/dns` show it as the resolver. */
  readonly resolverTitle?: string | undefined;
  /** The engine, or the reason why the service has no raw socket. */
  readonly icmp: IcmpEngine | NoIcmp;
  readonly probeSlots: ProbeSlots;
  /** The slots of requests that ask resolvers and send no probes. */
  readonly querySlots: ProbeSlots;
  /** Absent if the operator has named no file of networks. */
  readonly networks?: Pick<Networks, "find"> | null;
  /** Absent where no other location can be asked. */
  readonly locations?: OtherLocations | null;
}

/** A path of the API: its handler, and its metadata for the router and the OpenAPI document. */
export interface Endpoint<P extends Parameters = Parameters, Schema extends z.ZodType = z.ZodType> {
  /** Below BASE_PATH, with path parameters in braces. */
  readonly path: string;
  /** The name of the function in generated clients. */
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly needsKey: boolean;
  /** How many requests one counts as; absent for one. */
  readonly price?: number;
  readonly parameters: P;
  /** A function, because only the OpenAPI document needs the schema. */
  readonly response: () => Schema;
  /** A document of the response; a test checks it against the schema. */
  readonly example: object;
  /** The schemas of the data of its events, by their names. */
  readonly events?: () => Readonly<Record<string, z.ZodType>>;
  /** True if other locations can do its work, for requests with `from`. */
  readonly runsElsewhere?: boolean;
  /** Its errors beyond `COMMON_ERRORS` and, if it needs a key, UNAUTHORIZED and KEYS_UNAVAILABLE. */
  readonly errors: readonly ErrorCode[];
  /** Returns the value of the response, or its JSON if that is always the same. */
  handle(
    parameters: ValuesOf<P>,
    call: Call,
    services: Services,
  ): NoInfer<ValueOf<Schema>> | string | Promise<NoInfer<ValueOf<Schema>>>;
}

/** Checks that an endpoint's handler matches its parameters and its response schema. */
export function endpoint<P extends Parameters, Schema extends z.ZodType>(
  definition: Endpoint<P, Schema>,
): Endpoint {
  return { ...definition, response: once(definition.response) } as unknown as Endpoint;
}
