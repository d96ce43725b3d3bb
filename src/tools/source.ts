import { type AddressType, classifyIpv6 } from "../addr/classify.ts";
import { formatIpv6 } from "../addr/format.ts";
import { type Ipv6Address, ipv6ToBytes } from "../addr/ipv6.ts";
import { tryRead } from "../platform/regular-file.ts";

/** Why packets from an address of a type get no answer from the Internet. */
const FAULTS: Readonly<Partial<Record<AddressType, string>>> = {
  LinkLocal: "a link-local address, which no router forwards",
  UniqueLocal:
    "a unique local address, to which the Internet has no way back unless a router translates it",
};

/** A sentence about a source address that does not fit a global target; empty for all others. */
export function sourceText(
  source: Ipv6Address,
  target: Ipv6Address,
  isDeprecated: boolean,
): string {
  if (classifyIpv6(target) !== "GlobalUnicast") return "";
  const type = classifyIpv6(source);
  const fault = FAULTS[type] ?? (isDeprecated ? "an address that is deprecated and will end" : "");
  return fault && ` The packets left from ${formatIpv6(source)}, ${fault}.`;
}

/** A sentence about an error that this machine itself has sent, which blames no router; empty for all others. */
export const ownErrorText = (source: Ipv6Address, from: string | undefined): string =>
  from === formatIpv6(source)
    ? ` ${from} is this machine itself: its neighbor on the way does not answer, or its own routes refuse.`
    : "";

/** The flag of a deprecated address in /proc/net/if_inet6, whose rows are address, index, prefix length, scope, flags and name. */
const DEPRECATED = 0x20;

/** True if an address of this machine is deprecated; RFC 4862 section 5.5.4. */
export function isDeprecated(
  ip: Ipv6Address,
  table = tryRead("/proc/self/net/if_inet6") ?? "",
): boolean {
  const row = table.split("\n").find((line) => line.startsWith(ipv6ToBytes(ip).toHex()));
  return (Number.parseInt(row?.split(" ")[4] ?? "0", 16) & DEPRECATED) !== 0;
}
