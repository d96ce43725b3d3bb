import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import type { Call, Tools } from "../http/endpoint.ts";
import { choiceParameter, integerParameter } from "../http/parameters.ts";
import { network } from "../http/schemas.ts";
import { interfaceName } from "../icmp/interfaces.ts";
import { SILENCE_MS } from "../icmp/prober.ts";
import { MAX_PERSISTENCE_MS } from "../icmp/trace-schedule.ts";
import { type HopNames, hopNames, NAMES_MS } from "./hop-names.ts";

/** The greatest hop limit of a trace. */
export const MAX_HOPS = 64;

/** The parameter for where a trace ends. */
export const maxHopsParameter = integerParameter({
  minimum: 1,
  maximum: MAX_HOPS,
  default: 30,
  description: "Hops after which the trace ends.",
  example: 30,
});

/** The parameter for names of hops. */
export const namesParameter = choiceParameter(["yes", "no"], {
  default: "yes",
  description: "Whether to look up the names of the hops.",
  example: "no",
});

/** The longest time of a trace with the names of its hops, in milliseconds. */
export function longestTraceMs(probeTimeoutMs: number): number {
  return 2 * probeTimeoutMs + MAX_PERSISTENCE_MS + SILENCE_MS + NAMES_MS;
}

/**
 * The names of the hops of a run, by its parameter `names`.
 *
 * @param onName called whenever a name has become known
 */
export function namesFor(
  wanted: "yes" | "no",
  { signal }: Call,
  { config: { targetResolver, resolvers: servers }, resolvers }: Tools,
  onName: () => void = () => {},
): HopNames {
  const names = hopNames(resolvers[targetResolver], servers[targetResolver], signal, onName);
  return wanted === "yes" ? names : { ...names, ask() {} };
}

/** Tells of each row that was not told before, or has changed. */
export function hopEvents<Row extends { readonly hop: number }>(
  present: (row: Row) => object,
  { onEvent }: Call,
): (rows: readonly Row[]) => void {
  const told: string[] = [];
  return (rows) => {
    if (onEvent === undefined) return;
    for (const row of rows) {
      const data = present(row);
      const text = JSON.stringify(data);
      if (told[row.hop] === text) continue;
      told[row.hop] = text;
      onEvent("hop", data);
    }
  };
}

/** A hop's address and name as results show them; null for a silent hop. */
export function presentAddress(
  address: Ipv6Address | null,
  names: ReadonlyMap<string, string | null>,
) {
  const ip = address && formatIpv6(address);
  return { ip, hostname: ip && (names.get(ip) ?? null) };
}

/** What the details of every hop have: its network, and the interface to a link-local address. */
export function hopDetails(
  address: Ipv6Address | null,
  scopeId: number,
  { networks }: Pick<Tools, "networks">,
) {
  const network = address && networks?.find(address);
  return {
    ...(scopeId !== 0 && { zone: interfaceName(scopeId) ?? String(scopeId) }),
    ...(network && { network }),
  };
}

/** The key `details` with details, unless there are none. */
export function withDetails<Details extends object>(
  details: Details,
): { readonly details?: Details } {
  return Object.keys(details).length > 0 ? { details } : {};
}

/** The schema of an address that may be missing. */
export const ipOrNull = (description: string) =>
  z.string().nullable().meta({ format: "ipv6", description });

/** The schemas of what every hop shows. */
export const hopFields = () => ({
  hop: z.int().min(1).max(MAX_HOPS).describe("The position, from 1."),
  ip: ipOrNull("The hop's address; null if it was silent."),
  hostname: z.string().nullable().describe("Its name; null if none is known."),
});

/** The schemas of `hopDetails`. */
export const hopDetailFields = () => ({
  zone: z.string().describe("The interface to a link-local address."),
  network: network(),
});

/** The schema of the flow label of a run. */
export const flowLabelNumber = () =>
  z
    .int()
    .min(0)
    .max(0xf_ffff)
    .describe(
      "The flow label of all probes; 0 if another program on the service's machine reserves flow labels.",
    );
