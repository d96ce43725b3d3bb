import { z } from "zod";
import { formatIpv6 } from "../../addr/format.ts";
import { equalIpv6 } from "../../addr/ipv6.ts";
import { amount, ipv6Text, list, named, once, oneOf, whole } from "../../api/schemas.ts";
import { INTERFACE_ROLES, type InterfaceInformation } from "../../icmp/wire/icmp-error.ts";
import { round } from "../../util/numbers.ts";
import { hopFields, ipOrNull, presentRow } from "../hops.ts";
import type { Services } from "../services.ts";
import { hopsOfReply, type TraceHop } from "./responses.ts";

/** Why a row has no time though more is known than silence. */
const UNANSWERED = ["seen-by-others", "rate-limited"] as const;

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

/** The schema of a hop. */
export const hopSchema = once(() => {
  const mtu = z.int().min(0).max(0xffff_ffff);
  const mpls = named("MplsLabel", "An entry of an MPLS label stack, RFC 4950.", {
    label: whole("20 bits.", 0, 0xf_ffff),
    trafficClass: z.int().min(0).max(7),
    bottomOfStack: z.boolean(),
    ttl: whole("The hops left for the label.", 0, 255),
  });
  const aboutInterface = named(
    "InterfaceInformation",
    "What a router says about one of its interfaces, RFC 5837; null if it does not say.",
    {
      role: z.enum(INTERFACE_ROLES),
      index: z.int().min(0).max(0xffff_ffff).nullable(),
      address: ipOrNull("The interface's IPv6 address."),
      name: z.string().nullable(),
      mtu: mtu.nullable().describe("Bytes."),
    },
  );
  const rtt = amount(
    "The round-trip time to it in milliseconds; null if it was silent.",
  ).nullable();
  const details = {
    unanswered: oneOf(
      UNANSWERED,
      "The hop did not answer this trace, but others to the same /48 in the last 5 s. `seen-by-others`: all met `ip` here. `rate-limited`: routers here limit their answers, and it is not certain which one it is.",
    ),
    replyHopLimit: whole("The hop limit with which the answer arrived.", 0, 255),
    asymmetry: z
      .int()
      .describe(
        "How many hops more the answer came over than the probe went, negative for fewer; absent if as many. A guess, because the answer's first hop limit is unknown: the next of 64, 128 and 255. Absent for an address that answered at several hops.",
      ),
    rtts: list(z.number().min(0), "All times in milliseconds, if there are several."),
    addresses: list(ipv6Text("An address."), "All addresses, if there are several."),
    mpls: list(mpls, "The label stack with which the probe arrived."),
    interfaces: z.array(aboutInterface),
    mtu: mtu.describe("The MTU in bytes of the next link."),
  };
  return named("Hop", "A hop of a trace.", hopFields({ rtt }, details));
});
