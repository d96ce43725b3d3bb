import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import type { Call, Tools } from "../http/endpoint.ts";
import { choiceParameter, integerParameter, optionalIntegerParameter } from "../http/parameters.ts";
import { ipv6Text, network, once } from "../http/schemas.ts";
import { interfaceName } from "../icmp/interfaces.ts";
import { SILENCE_MS } from "../icmp/prober.ts";
import type { TraceError } from "../icmp/trace-report.ts";
import { MAX_PERSISTENCE_MS } from "../icmp/trace-schedule.ts";
import { type HopNames, hopNames, NAMES_MS } from "./hop-names.ts";
import { icmpCode, icmpType } from "./probe.ts";

/** The greatest hop limit of a trace. */
export const MAX_HOPS = 64;

/** The greatest flow label: 20 bits. */
export const MAX_FLOW_LABEL = 0xf_ffff;

/** The parameter for where a trace ends. */
export const maxHopsParameter = integerParameter({
  minimum: 1,
  maximum: MAX_HOPS,
  default: 30,
  description: "Hops after which the trace ends.",
  example: 30,
});

/** The parameter for the flow label of a trace. */
export const flowLabelParameter = optionalIntegerParameter({
  minimum: 0,
  maximum: MAX_FLOW_LABEL,
  description:
    "The flow label of the probes, as a decimal number; by default a random one. Routers that choose among several paths choose by it, so the `flowLabel` of an earlier answer repeats its path.",
  example: 493_374,
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

/** An ICMPv6 error that ends a path, as results show it. */
export function presentTraceError(error: TraceError) {
  return { ...error, from: formatIpv6(error.from) };
}

/** The schema of `presentTraceError`. */
export const traceError = once(() =>
  z
    .strictObject({
      type: icmpType(),
      code: icmpCode(),
      name: z.string().describe("Its name, such as no-route."),
      from: ipv6Text("Its sender."),
      fromTarget: z.boolean().describe("Whether the target itself sent it."),
    })
    .meta({ id: "TraceError", description: "The ICMPv6 error that ended a trace." }),
);

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
    .max(MAX_FLOW_LABEL)
    .describe(
      "The flow label of all probes; 0 if another program on the service's machine reserves flow labels.",
    );
