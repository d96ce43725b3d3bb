import type { z } from "zod";
import type { Endpoint as ApiEndpoint, Call } from "../api/endpoint.ts";
import type { Parameters } from "../api/parameters.ts";
import { once } from "../api/schemas.ts";
import type { Config, ResolverName } from "../config/settings.ts";
import type { DnsClient } from "../dns/client.ts";
import type { FairSlots } from "../gate/fair-slots.ts";
import type { Gate } from "../gate/gate.ts";
import type { Prober } from "../icmp/prober/prober.ts";
import type { NoIcmp } from "../icmp/unavailable.ts";
import type { Networks } from "../networks/networks.ts";
import type { lookHere } from "./here/engine.ts";

/** Other places where an endpoint can do its work, and the name of this one. */
export interface OtherLocations {
  readonly own: string | null;
  /** True if others can be reached now; null if none is configured. */
  readonly isConnected: boolean | null;
  /** The document of `/locations`. */
  json(): string;
  /** Locations that can measure now, by a word of `from` that means several: a tag that is not a name too, or the word for all. */
  byWord(): ReadonlyMap<string, readonly string[]>;
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
  /** The prober, or the reason why the service has none. */
  readonly icmp: Prober | NoIcmp;
  /** The one way out to targets. */
  readonly gate: Gate;
  readonly probeSlots: FairSlots;
  /** The slots of requests that ask resolvers and send no probes. */
  readonly querySlots: FairSlots;
  /** Looks at this machine; absent where a check does not begin with that. */
  readonly look?: typeof lookHere;
  /** Absent if the operator has named no file of networks. */
  readonly networks?: Pick<Networks, "find"> | null;
  /** Absent where no other location can be asked. */
  readonly locations?: OtherLocations | null;
}

/** An endpoint whose handler uses `Services`. */
export type Endpoint<
  P extends Parameters = Parameters,
  Schema extends z.ZodType = z.ZodType,
> = ApiEndpoint<Services, P, Schema>;

/** An endpoint, and its parameters as a request sends them. */
export interface Question {
  readonly endpoint: Endpoint;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Checks that an endpoint's handler matches its parameters and its response schema. */
export function endpoint<P extends Parameters, Schema extends z.ZodType>(
  definition: Endpoint<P, Schema>,
): Endpoint {
  return { ...definition, response: once(definition.response) } as unknown as Endpoint;
}
