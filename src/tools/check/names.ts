/** The questions of a check about its name. */
import type { Call } from "../../api/endpoint.ts";
import { apiErrorOf } from "../../api/errors.ts";
import { dns } from "../dns/endpoint.ts";
import type { DnsResult } from "../dns/result.ts";
import { addressesIn, doubtsIn, judgeNames, judgeZone } from "./judge.ts";
import type { RunningCheck } from "./running.ts";

const askDns = (check: RunningCheck, texts: object, onEvent?: Call["onEvent"]) =>
  check.ask<DnsResult>(dns, { hostname: check.target.text, ...texts }, { onEvent });

/**
 * Asks all resolvers for the addresses of a name, and one resolver for the proof of its IPv6 addresses.
 *
 * @param add gets each IPv6 address as soon as a resolver has it
 * @returns promises: `known` resolves when an IPv6 address is known, or none will be; `ipv4` has the IPv4 addresses;
 *   `judged` and `doubted` have the findings
 */
export function lookUp(check: RunningCheck, add: (ip: string) => void) {
  const first = (type: "AAAA" | "A", tellAll?: (ips: readonly string[]) => void) => {
    const { promise: ips, resolve } = Promise.withResolvers<readonly string[]>();
    const tell: Call["onEvent"] = (_, reply) => {
      const found = addressesIn(reply as DnsResult, type);
      tellAll?.(found);
      if (found.length > 0) resolve(found);
    };
    const answer = askDns(check, { type, resolver: "all" }, tell).catch(apiErrorOf);
    return { ips, answer: answer.finally(() => resolve([])) };
  };
  const six = first("AAAA", (ips) => ips.forEach(add));
  const four = first("A");
  const proof = askDns(check, { type: "AAAA", dnssec: "yes" }).catch(apiErrorOf);
  // Awaited together, because each of them fails if the client goes away.
  const answers = Promise.all([six.answer, four.answer, proof]);
  return {
    ...{ known: six.ips, ipv4: four.ips, judged: answers.then((all) => judgeNames(...all)) },
    // An answer that does not come in time is nothing to doubt.
    doubted: six.answer.then(doubtsIn, () => []),
  };
}

/** Asks the servers of the zone, and judges their answers once the addresses have been tried. */
export async function askZoneServers(check: RunningCheck, tried: Promise<unknown>) {
  const [answer] = await Promise.all([askDns(check, { type: "AAAA", resolver: "zone" }), tried]);
  return judgeZone(answer, check.isIpv6Heard());
}
