import { classifyIpv6 } from "../addr/classify.ts";
import { formatIpv6 } from "../addr/format.ts";
import { tryParseIpv4 } from "../addr/ipv4.ts";
import { type Ipv6Address, tryParseIpv6, tryParseZoned } from "../addr/ipv6.ts";
import { NEVER_TARGETS, objectionTo } from "../addr/policy.ts";
import { preferenceOf } from "../addr/selection.ts";
import type { Call } from "../api/endpoint.ts";
import { ApiError, invalidAddress } from "../api/errors.ts";
import { lookupAddresses } from "../dns/client.ts";
import { learnTranslators } from "../dns/dns64.ts";
import { parseHostname } from "../dns/hostname.ts";
import type { Prober } from "../icmp/prober/prober.ts";
import { interfaceIndex } from "../icmp/socket/interfaces.ts";
import { quote } from "../util/text.ts";
import { noAddressText, requireAnswer } from "./dns/failure.ts";
import { detailsOf, replyOf } from "./dns/reply.ts";
import type { Services } from "./services.ts";

/** A target that is not resolved yet: the text that was sent, and what it means. */
export type Target = { readonly text: string } & (
  | { readonly address: Ipv6Address; readonly zone: string | null }
  | { readonly name: string }
);

/** A text with `:` is often a URL, or a name with a port. */
const HOW_TO_WRITE = "write it like 2001:db8::1, or a name without scheme, port and path";

const IPV6_ONLY = "sixscope probes IPv6 only. Check a name to compare both";

/**
 * Reads a hostname, or an IPv6 address, which may have a zone if it is link-local.
 *
 * @throws ApiError INVALID_ADDRESS (also for text that looks like any address), INVALID_HOSTNAME
 */
export function parseTarget(text: string): Target {
  const address = tryParseIpv6(text);
  if (address !== null) return { text, address, zone: null };
  const zoned = tryParseZoned(text);
  if (zoned !== null) return { text, ...zoned };
  const parsed = parseHostname(text, "AAAA");
  if (parsed.ok) return { text, name: parsed.name };
  if (tryParseIpv4(text)) throw invalidAddress(text, IPV6_ONLY);
  if (text.includes(":") || parsed.isAddress) throw invalidAddress(text, HOW_TO_WRITE);
  throw new ApiError("INVALID_HOSTNAME", { hostname: text, reason: parsed.reason });
}

/** Addresses of a name that are considered; the resolver chooses their order. */
const MAX_ADDRESSES = 32;

/**
 * Turns a target into the one address that may be probed, and the interface of a link-local one.
 *
 * A name is resolved once, so that the address cannot change between the policy check and the probe. Of several
 * addresses, the run probes the first that the policy allows and that this machine can send to.
 *
 * @throws ApiError INVALID_PARAMETER for a zone, TARGET_NOT_ALLOWED, NO_IPV6_ADDRESS, and those of
 *   `requireAnswer`
 */
export async function resolveTarget(
  target: Target,
  services: Services,
  caller: Pick<Call, "signal" | "client">,
  prober: Pick<Prober, "route">,
) {
  const found = "name" in target ? await lookUp(target, services, caller) : [target.address];
  const judged = found.map((address) => {
    const objection = objectionTo(address, services.config.targets);
    const type = classifyIpv6(address);
    const isKnown = found.length === 1 || type === "LinkLocal" || objection !== null;
    const to = isKnown ? "" : prober.route(address, 0);
    const source = typeof to === "string" ? null : to.source;
    const unsendable = type === "LinkLocal" ? "no-interface" : "no-route";
    const use = objection ? "not-allowed" : source ? "spare" : unsendable;
    return { address, rank: preferenceOf(address, source), objection, type, use } as const;
  });
  const ordered = judged.toSorted((a, b) => b.rank - a.rank);
  const { address, objection, type } = (ordered.find(({ use }) => use === "spare") ??
    ordered.find((each) => each.objection === null) ??
    ordered[0]) as (typeof ordered)[number];
  if (objection !== null) {
    const ip = formatIpv6(address);
    const never = NEVER_TARGETS[type];
    const reason = never ? `is ${never}` : `cannot be probed: ${objection}; choose another target`;
    throw new ApiError("TARGET_NOT_ALLOWED", { target: target.text, ip, type }, reason);
  }
  const scopeId = type === "LinkLocal" ? scopeOf(target, address) : 0;
  const addresses = ordered.map((each) => {
    const use = each.address === address ? "probed" : each.use;
    return { ip: formatIpv6(each.address), use } as const;
  });
  return { destination: { target: address, scopeId }, ...(found.length > 1 && { addresses }) };
}

/** The interface of a link-local address, which exists on every interface. */
function scopeOf(target: Target, address: Ipv6Address): number {
  const zone = "zone" in target ? target.zone : null;
  // `%2512` is the interface 12 in a URI, but 2512 elsewhere; RFC 6874.
  const scopeId = zone && (interfaceIndex(zone) ?? interfaceIndex(zone.replace(/^25/, "")));
  if (scopeId) return scopeId;
  const details = { parameter: "target", value: target.text };
  const problem =
    "name" in target
      ? `it has the link-local address ${formatIpv6(address)}, and a name has no interface; send the address with`
      : zone === null
        ? "add"
        : `the server has no interface ${quote(zone)}; add`;
  const why = `${problem} an interface of the server, such as fe80::1%eth0`;
  throw new ApiError("INVALID_PARAMETER", details, why);
}

async function lookUp(
  { text, name }: Extract<Target, { name: string }>,
  { config: { targetResolver: resolver }, resolvers }: Services,
  caller: Pick<Call, "signal" | "client">,
): Promise<Ipv6Address[]> {
  const client = resolvers[resolver];
  learnTranslators(client);
  const { outcome, addresses } = await lookupAddresses(client, name, caller);
  const reply = replyOf(resolver, outcome);
  requireAnswer(reply, text);
  if (addresses.length === 0) {
    const details = { hostname: text, resolver, ...detailsOf(reply) };
    throw new ApiError("NO_IPV6_ADDRESS", details, noAddressText(details));
  }
  return addresses.slice(0, MAX_ADDRESSES);
}
