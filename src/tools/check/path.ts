/** The way to an address, as the measurements of a check have found it. */
import type { MtrResult } from "../mtr/result.ts";
import type { MtuResult } from "../mtu/result.ts";
import type { TraceResult } from "../trace/result.ts";
import type { CheckPath, Verdict } from "./result.ts";

/** What has measured the way to an address, as far as it has ended. */
export interface Way {
  readonly ip: string;
  mtu?: MtuResult;
  mtr?: MtrResult;
  trace?: TraceResult;
}

/** True if another machine on the way has answered. */
export const isHeard = (way?: Way) =>
  [way?.mtr, way?.trace].some((measured) =>
    measured?.hops.some(({ ip }) => ip !== null && ip !== measured.details.source),
  );

type PathHop = CheckPath["hops"][number];

const heardIn = (hops: readonly PathHop[]) => hops.filter(({ ip }) => ip !== null).length;

const shown = ({ hop, ip, hostname, details }: Omit<PathHop, "rtt">, rtt: number | null) => {
  const { zone, network, nameLate } = details ?? {};
  const known = {
    ...(zone && { zone }),
    ...(network && { network }),
    ...(nameLate && { nameLate }),
  };
  return { hop, ip, hostname, rtt, ...(Object.keys(known).length > 0 && { details: known }) };
};

/** The hops of a trace, with the fields that a check shows. */
export const tracedHops = (hops: TraceResult["hops"]) => hops.map((hop) => shown(hop, hop.rtt));

/** The hops by whichever measurement heard more of them, and behind which of them it breaks. */
export function pathOf({ ip, mtu, mtr, trace }: Way, { code, at }: Pick<Verdict, "code" | "at">) {
  const rounds = mtr?.hops.map((hop) => shown(hop, hop.p50));
  const traced = tracedHops(trace?.hops ?? []);
  const heard = rounds && heardIn(rounds) >= heardIn(traced) ? rounds : traced;
  if (heard.length === 0) return undefined;
  // The target also answers with greater hop limits, in rounds in which a nearer reply was lost.
  const end = heard.findIndex((hop) => hop.ip === ip);
  const hops = end === -1 ? heard : heard.slice(0, end + 1);
  const hopOf = (router?: string) => hops.find((hop) => hop.ip === router)?.hop;
  const isSilent = code === "port-silent" || code === "no-answer";
  // The last hop that answered before the silence.
  const isLost = isSilent && !trace?.details.reached;
  const last = isLost && traced.findLast((hop) => hop.ip !== null)?.hop;
  const narrow = code === "mtu-black-hole" && mtu?.lastLarge;
  const brokenAfter = hopOf(at) || narrow || last;
  const reached = hopOf(ip) === hops.at(-1)?.hop;
  return { ip, reached, hops, ...(brokenAfter && { brokenAfter }) };
}
