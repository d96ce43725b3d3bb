import { classifyIpv6 } from "../addr/classify.ts";
import { formatIpv6 } from "../addr/format.ts";
import { type Ipv6Address, tryParseIpv6, tryParseZoned } from "../addr/ipv6.ts";
import { objectionTo } from "../addr/policy.ts";
import type { Services } from "../api/endpoint.ts";
import { ApiError, invalidAddress } from "../api/errors.ts";
import { lookupAddresses } from "../dns/client.ts";
import { learnTranslators } from "../dns/dns64.ts";
import { parseHostname } from "../dns/hostname.ts";
import { interfaceIndex } from "../icmp/interfaces.ts";
import type { RunRequest } from "../icmp/ping.ts";
import { quote } from "../util/text.ts";
import { detailsOf, requireAnswer } from "./dns/reply.ts";

/** A target that is not resolved yet: the text that was sent, and what it means. */
type Target = { readonly text: string } & (
  | { readonly address: Ipv6Address; readonly zone: string | null }
  | { readonly name: string }
);

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
  if (text.includes(":") || parsed.isAddress) throw invalidAddress(text);
  throw new ApiError("INVALID_HOSTNAME", { hostname: text, reason: parsed.reason });
}

/**
 * Turns a target into the one address that may be probed, and the interface of a link-local one.
 *
 * A name is resolved once, so that the address cannot change between the policy check and the probe.
 *
 * @throws ApiError INVALID_PARAMETER for a zone, TARGET_NOT_ALLOWED, NO_IPV6_ADDRESS, and those of
 *   `requireAnswer`
 */
export async function resolveTarget(
  target: Target,
  services: Services,
  signal: AbortSignal,
): Promise<Pick<RunRequest, "target" | "scopeId">> {
  const address = "name" in target ? await lookUp(target, services, signal) : target.address;
  const type = classifyIpv6(address);
  const objection = objectionTo(address, services.config.targets);
  if (objection !== null) {
    const ip = formatIpv6(address);
    throw new ApiError("TARGET_NOT_ALLOWED", { target: target.text, ip, type }, objection);
  }
  return { target: address, scopeId: type === "LinkLocal" ? scopeOf(target, address) : 0 };
}

/** The interface of a link-local address, which exists on every interface. */
function scopeOf(target: Target, address: Ipv6Address): number {
  const zone = "zone" in target ? target.zone : null;
  const scopeId = zone === null ? null : interfaceIndex(zone);
  if (scopeId !== null) return scopeId;
  const problem =
    "name" in target
      ? `it has the link-local address ${formatIpv6(address)}, and a hostname cannot name its interface; send the address`
      : zone === null
        ? "it is link-local and names no interface; send it"
        : `its zone ${quote(zone)} is not an interface of this machine; send it`;
  throw new ApiError(
    "INVALID_PARAMETER",
    { parameter: "target", value: target.text },
    `${problem} with an interface of this machine, as in fe80::1%25eth0`,
  );
}

async function lookUp(
  { text, name }: Extract<Target, { name: string }>,
  { config: { targetResolver: resolver }, resolvers }: Services,
  signal: AbortSignal,
): Promise<Ipv6Address> {
  learnTranslators(resolvers[resolver]);
  const { outcome, addresses } = await lookupAddresses(resolvers[resolver], name, { signal });
  const reply = { resolver, outcome };
  requireAnswer(reply, text);
  const [address] = addresses;
  if (address === undefined) {
    throw new ApiError("NO_IPV6_ADDRESS", { hostname: text, resolver, ...detailsOf(reply) });
  }
  return address;
}
