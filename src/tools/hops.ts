import { type Ipv6Address, tryParseIpv6 } from "../addr/ipv6.ts";
import type { Call } from "../api/endpoint.ts";
import { choiceParameter, integerParameter } from "../api/parameters.ts";
import { SILENCE_MS } from "../icmp/prober/prober.ts";
import { MAX_FLOW_LABEL, MAX_HOPS } from "./fields.ts";
import { hopNames, LATE, NAMES_MS, type Names } from "./hop-names.ts";
import type { MtuHop } from "./mtu/result.ts";
import { openRun } from "./run.ts";
import type { Services } from "./services.ts";
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
 * @param onName called when the name of an address becomes known
 */
export async function openPathRun(
  { names: wanted, ...probed }: Parameters<typeof openRun>[0] & { readonly names: "yes" | "no" },
  longestMs: number,
  call: Call,
  services: Services,
  onName: (ip: string) => void = () => {},
) {
  const { config, resolvers } = services;
  const { targetResolver: name, probeTimeoutMs } = config;
  const traceMs = 2 * probeTimeoutMs + MAX_PERSISTENCE_MS + SILENCE_MS + NAMES_MS;
  const run = await openRun(probed, traceMs + longestMs, call, services);
  const names = hopNames(resolvers[name], config.resolvers[name], call, onName);
  return { ...run, names: wanted === "yes" ? names : { ...names, ask() {} } };
}

/** The fields that the row of a hop has in all tools. */
type HopRow = Pick<MtuHop, "hop" | "ip" | "hostname"> & { readonly details?: object };

/**
 * Makes a function that sends each row that is new or has changed as an event. A row that is the same object as before
 * is compared again only if its address is in `changed`, as when its name has become known.
 */
export function hopEvents<Row extends HopRow>(
  show: (row: Row) => object,
  { onEvent }: Call,
): (rows: readonly Row[], ...changed: readonly (string | null | undefined)[]) => void {
  const sent: { row: Row; text: string }[] = [];
  return (rows, ...changed) => {
    if (onEvent === undefined) return;
    for (const row of rows) {
      const before = sent[row.hop];
      if (before?.row === row && (row.ip === null || !changed.includes(row.ip))) continue;
      const data = show(row);
      const text = JSON.stringify(data);
      sent[row.hop] = { row, text };
      if (before?.text !== text) onEvent("hop", data);
    }
  };
}

/** The name of an address; null if none is known. */
export const nameOf = (ip: string | null, names: Names) => ip && (names.get(ip) || null);

/** A row with the name of its address, and whose network that is. */
export function named<Row extends HopRow>(
  row: Row,
  names: Names,
  { networks }: Pick<Services, "networks">,
): Row {
  const { ip } = row;
  const { zone, ...more }: { readonly zone?: string } = row.details ?? {};
  const network = ip && networks?.find(tryParseIpv6(ip) as Ipv6Address);
  const details = {
    ...(ip && names.get(ip) === LATE && { nameLate: true as const }),
    ...(zone !== undefined && { zone }),
    ...(network && { network }),
    ...more,
  };
  const hostname = nameOf(ip, names);
  return { ...row, hostname, ...(Object.keys(details).length > 0 && { details }) };
}
