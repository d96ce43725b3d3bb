import { formatIpv6 } from "../../addr/format.ts";
import { equalIpv6 } from "../../addr/ipv6.ts";
import type { InterfaceInformation } from "../../icmp/wire/icmp-error.ts";
import { round } from "../../util/numbers.ts";
import { presentRow } from "../hops.ts";
import type { Services } from "../services.ts";
import { hopsOfReply, type TraceHop } from "./responses.ts";
import { UNANSWERED } from "./result.ts";

/**
 * A hop as the result shows it.
 *
 * @param trace all hops of its trace that answered; absent for a hop of several traces
 */
export function presentHop(
  hop: TraceHop,
  names: ReadonlyMap<string, string | null>,
  services: Pick<Services, "networks">,
  trace: readonly TraceHop[] | null = null,
) {
  const others = trace ? hop.others : undefined;
  const { from: address, scopeId } = others ?? { ...hop, from: hop.address };
  const { rttMs, rttsMs, addresses, mpls, interfaces, mtuBytes, replyHopLimit, end } = hop;
  const isSame = (other: TraceHop) =>
    !other.end && other.address && address && equalIpv6(other.address, address);
  const isRepeated = trace !== null && trace.filter(isSame).length > 1;
  // A router that cannot forward a probe answers it one hop before its hop limit ends.
  const isAtHop = (end === null || end === "reached") && !isRepeated;
  const asymmetry = isAtHop && replyHopLimit !== null ? hopsOfReply(replyHopLimit) - hop.hop : 0;
  const details = {
    ...(others !== undefined && { unanswered: UNANSWERED[others ? 0 : 1] }),
    ...(replyHopLimit !== null && { replyHopLimit }),
    ...(asymmetry !== 0 && { asymmetry }),
    ...(rttsMs.length > 1 && { rtts: rttsMs.map((rtt) => round(rtt, 3)) }),
    ...(addresses.length > 1 && { addresses: addresses.map(formatIpv6) }),
    ...(mpls.length > 0 && { mpls }),
    ...(interfaces.length > 0 && { interfaces: interfaces.map(presentInterface) }),
    ...(mtuBytes !== null && { mtu: mtuBytes }),
  };
  const rtt = rttMs === null ? null : round(rttMs, 3);
  return presentRow({ hop: hop.hop, address, scopeId }, names, services, { rtt }, details);
}

function presentInterface({ mtuBytes, address, ...others }: InterfaceInformation) {
  return { ...others, address: address && formatIpv6(address), mtu: mtuBytes };
}
