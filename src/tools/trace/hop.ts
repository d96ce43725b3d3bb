import { formatIpv6 } from "../../addr/format.ts";
import { zoneOf } from "../engine.ts";
import type { Names } from "../hop-names.ts";
import { named } from "../hops.ts";
import type { Services } from "../services.ts";
import { hopsOfReply, type TraceHop } from "./responses.ts";
import { type Hop, UNANSWERED } from "./result.ts";

/**
 * A hop as the result shows it: with its name, and conclusions from the other hops of its trace.
 *
 * @param trace all hops of its trace that answered; absent for a hop of several traces
 */
export function showHop(
  { end, state: _, others, ...row }: TraceHop,
  names: Names,
  services: Pick<Services, "networks">,
  trace: readonly TraceHop[] | null = null,
): Hop {
  if (trace !== null && others !== undefined) {
    const seen = others && { ip: formatIpv6(others.from) };
    const unanswered = UNANSWERED[others ? 0 : 1];
    const details = { ...(others && zoneOf(others.scopeId)), unanswered };
    return named({ ...row, ...seen, details }, names, services);
  }
  const { replyHopLimit } = row.details ?? {};
  if (replyHopLimit === undefined) return named(row, names, services);
  const isRepeated = (trace ?? []).filter(({ end, ip }) => !end && ip === row.ip).length > 1;
  // A router that cannot forward a probe answers it one hop before its hop limit ends.
  const isAtHop = (end === null || end === "reached") && !isRepeated;
  const asymmetry = isAtHop ? hopsOfReply(replyHopLimit) - row.hop : 0;
  const details = { ...row.details, ...(asymmetry !== 0 && { asymmetry }) };
  return named({ ...row, details }, names, services);
}
