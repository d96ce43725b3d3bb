/** Whether an address may be connected to. */
import { typeEntry } from "../../addr/classify.ts";
import { type IpAddress, tryParseIp } from "../../addr/ip.ts";
import { notGlobal, objectionTo } from "../../addr/policy.ts";
import { type Prefix, parsePrefix, prefixContains } from "../../addr/prefix.ts";
import { once } from "../../api/schemas.ts";
import type { Services } from "../services.ts";
import type { Seen } from "./result.ts";

/** This machine and its links, whose services trust all who can reach them. Only `SIXSCOPE_TARGETS_ALLOW` allows them. */
const OWN = once(() =>
  ["::1/128", "fe80::/10", "127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/8"].map(parsePrefix),
);

/** Types of addresses of tunnels and translators, to which only some networks have a route. */
const TRANSITION = ["SixToFour", "Teredo", "Nat64"];

/** The row of an address of a tunnel or translator; undefined for other addresses. */
function transitionOf(address: IpAddress) {
  const row = address.version === 6 ? typeEntry(address) : undefined;
  return row && TRANSITION.includes(row.type) ? row : undefined;
}

/** True for an address that is not one of the Internet, such as a ULA; those of tunnels and translators are. */
export function isOffInternet(ip: string): boolean {
  const address = tryParseIp(ip) as IpAddress;
  return notGlobal(address) !== null && transitionOf(address) === undefined;
}

/**
 * Judges whether an address may be connected to.
 *
 * @param isOwn true if it is one of this machine
 */
export function judgePolicy(
  ip: string,
  { config: { targets } }: Pick<Services, "config">,
  isOwn = false,
): Seen {
  const address = tryParseIp(ip) as IpAddress;
  const isIn = (prefixes: readonly Prefix[]) =>
    prefixes.some((prefix) => prefixContains(prefix, address));
  const objection = objectionTo(address, targets);
  if (objection !== null) {
    const finding = objection.includes("denied prefix") ? "not-allowed" : "not-public";
    return { finding, text: `${ip} is not probed: ${objection}.` };
  }
  const allowed = { text: "This server is allowed to probe it." };
  if (isIn(targets.allow)) return allowed;
  const allow = "SIXSCOPE_TARGETS_ALLOW can allow it.";
  const transition = transitionOf(address);
  // Why clients elsewhere may not reach it.
  const special = transition
    ? `${transition.type} (${transition.block}, RFC ${transition.rfc})`
    : notGlobal(address);
  if (special === null) {
    const text = `${ip} is an address of this machine, whose own services are not for callers. ${allow}`;
    return isOwn ? { finding: "own-machine", text } : allowed;
  }
  const [finding, why] = isIn(OWN())
    ? (["not-public", `: it leads each client to its own machine or link. ${allow}`] as const)
    : (["special-address", ", which not every network has a way to."] as const);
  return { finding, text: `${ip} is ${special}${why}` };
}
