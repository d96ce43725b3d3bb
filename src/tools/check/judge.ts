/** Turns the documents of other tools into findings. */
import { ApiError } from "../../api/errors.ts";
import { isDecisive } from "../../dns/outcome.ts";
import { listText, plural } from "../../util/text.ts";
import { NOWHERE } from "../dns/comparison.ts";
import { isZoneAtFault } from "../dns/dnssec.ts";
import type { DnsResult } from "../dns/result.ts";
import { unansweredText } from "../dns/verdict.ts";
import type { HereResult } from "../here/result.ts";
import type { MtrResult } from "../mtr/result.ts";
import type { MtuResult } from "../mtu/result.ts";
import type { TraceResult } from "../trace/result.ts";
import type { Seen, Step } from "./result.ts";

type Answer = DnsResult | ApiError;

/** The findings of `/dns` about an answer that differs from that of most resolvers. */
const SUSPICIOUS: readonly string[] = ["rewritten", "perhaps-filtered"];

/** An address that only one resolver has, and what is found about that resolver. */
export interface Doubt {
  readonly ip: string;
  readonly resolver: string;
  readonly text: string;
  /** True for an address that no other host has, as filters answer with; another one may be old. */
  readonly isNowhere: boolean;
}

/** The addresses in an answer. */
export const addressesIn = ({ records }: Pick<DnsResult, "records">, type: "AAAA" | "A") =>
  records.flatMap((record) => (record.type === type ? [record.value] : []));

/**
 * Judges the answers of the resolvers for a name.
 *
 * @param proof the answer of one of them with its DNSSEC verdict
 */
export function judgeNames(six: Answer, four: Answer, proof: Answer): Seen {
  const dnssec = (detailsOf(proof) as Partial<DnsResult["details"]>).dnssec;
  if (dnssec && isZoneAtFault(dnssec)) return { finding: "dnssec-bogus", text: dnssec.text };
  const has = (ips: readonly string[], version: number) => {
    const noun = `IPv${version} address`;
    return `${ips.length === 1 ? `an ${noun}` : plural(ips.length, noun)} (${listText(ips)})`;
  };
  const ipv4 = four instanceof ApiError ? [] : addressesIn(four, "A");
  const whose = ipv4.length > 0 && has(ipv4, 4);
  if (six instanceof ApiError) {
    if (!whose) {
      const finding = six.code === "HOSTNAME_NOT_FOUND" ? "no-such-name" : "names-unknown";
      return { finding, text: six.message };
    }
    const { rcode = "nothing" } = detailsOf(six) as { readonly rcode?: string };
    const text = `It has ${whose}. Asked for AAAA, the resolvers say ${rcode}: its name servers are at fault, or the resolvers.`;
    return { finding: "ipv6-unknown", text };
  }
  const { resolvers = [], verdict, incomplete } = six.details;
  const translated = [six.details, ...resolvers].flatMap(({ dns64 = [] }) => dns64);
  // A check tries the addresses of all resolvers.
  const ipv6 = [...new Set([six, ...resolvers].flatMap((reply) => addressesIn(reply, "AAAA")))];
  if (ipv6.length === 0) {
    if (!whose) return { finding: incomplete ? "names-unknown" : "no-ipv6", text: verdict.text };
    return incomplete
      ? { finding: "ipv6-unknown", text: `It has ${whose}. ${verdict.text}` }
      : { finding: "no-ipv6", text: `It has ${whose} and no IPv6 address.` };
  }
  const isKnown = dnssec && dnssec.verdict !== "indeterminate";
  const validated = isKnown ? `; DNSSEC: ${dnssec.verdict}` : "";
  const doubts = doubtsIn(six).map(({ resolver, ip }) => ` ${resolver} alone has ${ip}.`);
  const summary = `It has ${has(ipv6, 6)}${whose ? ` and ${whose}` : ""}${validated}.${doubts.join("")}`;
  if (ipv6.every((ip) => translated.some((each) => each.ip === ip))) {
    const text = `${summary} Its resolver makes IPv6 addresses of IPv4 (DNS64), and a translator (NAT64) carries the packets on.`;
    return { finding: "translator-only", text };
  }
  // Large sites give each resolver other addresses, which is fine; clients of a resolver that has none use IPv4.
  const lacksThem = (reply: (typeof resolvers)[number]) =>
    isDecisive({ kind: reply.outcome }) && addressesIn(reply, "AAAA").length === 0;
  if (resolvers.some(lacksThem))
    return { finding: "resolvers-differ", text: `${summary} ${verdict.text}` };
  const failures = unansweredText(six.details);
  return failures
    ? { finding: "resolver-silent", text: `${summary} ${failures}` }
    : { text: summary };
}

/** The addresses that come only from resolvers that seem to rewrite or filter answers. */
export function doubtsIn(six: Answer): Doubt[] {
  if (six instanceof ApiError) return [];
  const { findings = [], resolvers = [] } = six.details;
  const suspects = findings.filter(({ code }) => SUSPICIOUS.includes(code));
  const isSuspect = ({ resolver }: (typeof resolvers)[number]) =>
    suspects.some((each) => each.resolver === resolver);
  const known = resolvers
    .filter((reply) => !isSuspect(reply))
    .flatMap((reply) => addressesIn(reply, "AAAA"));
  if (known.length === 0) return [];
  return suspects.flatMap(({ resolver = "", text }) => {
    const reply = resolvers.find((each) => each.resolver === resolver);
    const own = reply ? addressesIn(reply, "AAAA").filter((ip) => !known.includes(ip)) : [];
    return own.map((ip) => ({ ip, resolver, text, isNowhere: NOWHERE.test(ip) }));
  });
}

/**
 * Judges the answers of a zone's servers.
 *
 * @param isIpv6Heard true if anything has answered over IPv6; if not, their silence says nothing of them
 */
export function judgeZone({ details }: DnsResult, isIpv6Heard: boolean): Seen {
  const { servers = [], findings = [], verdict } = details;
  const { text } = verdict;
  const lacking = findings.flatMap(({ code, servers = [] }) => (code === "no-ipv6" ? servers : []));
  const isWithout = ({ name }: (typeof servers)[number]) => {
    const six = servers.filter(({ name: of, ip }) => of === name && ip?.includes(":"));
    const isDead = isIpv6Heard && six.every(({ outcome }) => ["silent", "lame"].includes(outcome));
    return lacking.includes(name) || (six.length > 0 && isDead);
  };
  if (servers.length > 0 && servers.every(isWithout)) return { finding: "zone-without-ipv6", text };
  const differs = ["serials-differ", "answers-differ", "unsigned-server"];
  return findings.some(({ code }) => differs.includes(code))
    ? { finding: "zone-servers-differ", text }
    : { text };
}

const detailsOf = (answer: Answer): object =>
  answer instanceof ApiError ? answer.body.error.details : answer.details;

/** Judges a look at the machine that checks; a failure there is no finding about the name. */
export function judgeHere({ steps, details }: HereResult): Pick<Step, "status" | "text"> {
  const { code, text } = details.verdict;
  const isFailed = steps.some(({ status }) => status === "fail");
  return { text, status: code === "works" ? "ok" : isFailed ? "fail" : "warn" };
}

/** Judges a measurement of the path MTU. */
export function judgeMtu({ details: { verdict, cause } }: MtuResult): Seen {
  const { code, text } = verdict;
  if (code === "inconclusive") return { status: "skipped", text };
  if (code !== "black-hole" && code !== "below-1280") return { text };
  // Some targets answer no large echo requests, and nothing vanishes.
  return { text, finding: cause === "back" ? "large-doubtful" : "large-packets" };
}

/** Loss in percent from which chance alone does not explain it: two of twenty. */
const DOUBTFUL_PERCENT = 10;

/**
 * Judges the loss of a path. At the last hop it may be the target's choice: many limit echo replies, some SYNs.
 *
 * @param isOverTcp true if each probe was one to an open port
 */
export function judgeMtr({ hops, details }: MtrResult, isOverTcp: boolean): Seen {
  const { verdict, toTarget, reached } = details;
  const { code, text, to } = verdict;
  if (!reached) return { status: "skipped", text };
  const isOnTheWay = to !== undefined && to < hops.length;
  const isCounted = isOverTcp || isOnTheWay;
  // A probe that an error answers is refused, not lost.
  const lostPercent = (toTarget.loss ?? 0) - (100 * toTarget.errors) / toTarget.sent;
  if (!isCounted || lostPercent < DOUBTFUL_PERCENT) return { text };
  const at = isOnTheWay ? hops[to - 1]?.ip : null;
  const finding = code === "loss" && isOnTheWay ? "path-loss" : "path-doubtful";
  return { finding, text, ...(at && { at }) };
}

/** Judges a trace. The port decides whether a silent end is a failure. */
export function judgeTrace({ hops, details: { verdict, reached, loop } }: TraceResult): Seen {
  const { text } = verdict;
  if (reached) return { text };
  const [router] = loop?.addresses.filter((ip) => ip !== null) ?? [];
  if (loop) return { finding: "path-loop", text, ...(router && { at: router }) };
  const last = hops.findLast(({ ip }) => ip !== null)?.ip;
  return { status: "skipped", text, ...(last && { at: last }) };
}
