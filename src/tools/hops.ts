import { formatIpv6 } from "../addr/format.ts";
import { equalIpv6, type Ipv6Address } from "../addr/ipv6.ts";
import type { Call } from "../api/endpoint.ts";
import { choiceParameter, integerParameter } from "../api/parameters.ts";
import { SILENCE_MS } from "../icmp/prober/prober.ts";
import { interfaceName } from "../icmp/socket/interfaces.ts";
import { MAX_FLOW_LABEL, MAX_HOPS } from "./fields.ts";
import { hopNames, LATE, NAMES_MS } from "./hop-names.ts";
import { openRun } from "./run.ts";
import type { Services } from "./services.ts";
import type { TraceError, TraceHop } from "./trace/responses.ts";
import { MAX_PERSISTENCE_MS } from "./trace/schedule.ts";

/** The parameters of every tool that traces. */
export const pathParameters = {
  maxHops: integerParameter({
    minimum: 1,
    maximum: MAX_HOPS,
    default: 30,
    description: "Hops after which the trace ends.",
    example: 30,
    option: { flags: "-m, --max-hops" },
    label: "Max hops",
  }),
  flowLabel: integerParameter({
    minimum: 0,
    maximum: MAX_FLOW_LABEL,
    description:
      "The flow label of the probes, as a decimal number; by default a random one. Routers that choose among several paths choose by it, so the `flowLabel` of an earlier answer repeats its path.",
    example: 493_374,
    option: { flags: "--flow-label", help: "the flow label of the probes, which repeats a path" },
    label: "Flow label",
  }),
  names: choiceParameter(["yes", "no"], {
    default: "yes",
    description: "Whether to look up the names of the hops.",
    example: "no",
    option: { flags: "-n, --numeric", help: "no names" },
    label: "Names of the hops",
  }),
} as const;

/**
 * Opens a run that traces, with the names of its hops; see `openRun`.
 *
 * @param probed what is probed, how, and whether the names of the hops are looked up
 * @param longestMs the longest time beyond that of a trace
 * @param onName called whenever the name of an address has become known
 */
export async function openPathRun(
  { names: wanted, ...probed }: Parameters<typeof openRun>[0] & { readonly names: "yes" | "no" },
  longestMs: number,
  call: Call,
  services: Services,
  onName: (address: Ipv6Address) => void = () => {},
) {
  const { config, resolvers } = services;
  const { targetResolver: name, probeTimeoutMs } = config;
  const traceMs = 2 * probeTimeoutMs + MAX_PERSISTENCE_MS + SILENCE_MS + NAMES_MS;
  const run = await openRun(probed, traceMs + longestMs, call, services);
  const names = hopNames(resolvers[name], config.resolvers[name], call, onName);
  return { ...run, names: wanted === "yes" ? names : { ...names, ask() {} } };
}

/**
 * Sends each row that is new or has changed as an event. The same object is looked at again only if its
 * address is one of those that are named: something else than the row has changed there.
 */
export function hopEvents<Row extends Pick<TraceHop, "hop" | "address">>(
  present: (row: Row) => object,
  { onEvent }: Call,
): (rows: readonly Row[], ...changed: readonly (Ipv6Address | null | undefined)[]) => void {
  const told: { row: Row; text: string }[] = [];
  return (rows, ...changed) => {
    if (onEvent === undefined) return;
    for (const row of rows) {
      const { hop, address } = row;
      const known = told[hop];
      const isNamed = address && changed.some((each) => each && equalIpv6(each, address));
      if (known?.row === row && !isNamed) continue;
      const data = present(row);
      const text = JSON.stringify(data);
      told[hop] = { row, text };
      if (known?.text !== text) onEvent("hop", data);
    }
  };
}

/** Names by address, as far as they are known; `LATE` if one came too late. */
type Names = ReadonlyMap<string, string | null>;

/** A hop's address and name as results show them; null for a silent hop. */
export function presentAddress(address: Ipv6Address | null, names: Names) {
  const ip = address && formatIpv6(address);
  return { ip, hostname: ip && (names.get(ip) || null) };
}

/** A hop as results show it: its address and name, its fields, and its details if there are any. */
export function presentRow<Fields extends object, Details extends object = object>(
  { hop, address, scopeId }: Pick<TraceHop, "hop" | "address" | "scopeId">,
  names: Names,
  { networks }: Pick<Services, "networks">,
  fields: Fields,
  more = {} as Details,
) {
  const network = address && networks?.find(address);
  const isLate = address && names.get(formatIpv6(address)) === LATE;
  const details = {
    ...(isLate && { nameLate: true as const }),
    ...(scopeId !== 0 && { zone: interfaceName(scopeId) ?? String(scopeId) }),
    ...(network && { network }),
    ...more,
  };
  const isMore = Object.keys(details).length > 0;
  return { hop, ...presentAddress(address, names), ...fields, ...(isMore && { details }) };
}

/** An ICMPv6 error that ends a path, as results show it. */
export function presentTraceError(error: TraceError) {
  return { ...error, from: formatIpv6(error.from) };
}
