/** The findings in the documents of other tools. */
import { tryParseIp } from "../../addr/ip.ts";
import { objectionTo } from "../../addr/policy.ts";
import { type Prefix, parsePrefix, prefixContains } from "../../addr/prefix.ts";
import type { Services } from "../../api/endpoint.ts";
import { ApiError } from "../../api/errors.ts";
import { once } from "../../api/schemas.ts";
import { listText, plural } from "../../util/text.ts";
import type { DnsResult } from "../dns/endpoint.ts";
import type { MtrResult } from "../mtr/endpoint.ts";
import type { MtuResult } from "../mtu/endpoint.ts";
import type { PingResult } from "../ping/endpoint.ts";
import type { TraceResult } from "../trace/endpoint.ts";
import type { Seen } from "./steps.ts";

type Answer = DnsResult | ApiError;

/** The addresses in an answer. */
export const addressesIn = ({ records }: Pick<DnsResult, "records">, type: "AAAA" | "A") =>
  records.flatMap((record) => (record.type === type ? [record.value] : []));

/**
 * Judges what the resolvers say of a name.
 *
 * @param validated the answer of one of them with its DNSSEC verdict
 */
export function judgeNames(six: Answer, four: Answer, validated: Answer): Seen {
  const dnssec = (detailsOf(validated) as Partial<DnsResult["details"]>).dnssec;
  if (dnssec?.verdict === "bogus") return { finding: "dnssec-bogus", text: dnssec.text };
  if (six instanceof ApiError) {
    const finding = six.code === "HOSTNAME_NOT_FOUND" ? "no-such-name" : "names-unknown";
    return { finding, text: six.message };
  }
  const ipv6 = addressesIn(six, "AAAA");
  const ipv4 = four instanceof ApiError ? [] : addressesIn(four, "A");
  const { dns64 = [], resolvers = [], unanswered = [], verdict, incomplete } = six.details;
  const has = (all: readonly string[], version: number) =>
    all.length > 0 ? `${plural(all.length, `IPv${version} address`)} (${listText(all)})` : "";
  const all = [has(ipv6, 6), has(ipv4, 4)].filter(Boolean).join(" and ");
  if (ipv6.length === 0) {
    const finding = incomplete ? "names-unknown" : "no-ipv6";
    return { finding, text: all ? `It has only ${all}. ${verdict.text}` : verdict.text };
  }
  const isKnown = dnssec && dnssec.verdict !== "indeterminate";
  const said = `It has ${all}${isKnown ? `; DNSSEC: ${dnssec?.verdict}` : ""}.`;
  if (ipv6.every((ip) => dns64.some((each) => each.ip === ip))) {
    const text = `${said} Its resolver makes IPv6 addresses of IPv4 (DNS64), and a translator (NAT64) carries the packets on.`;
    return { finding: "translator-only", text };
  }
  // Names of many servers have other addresses at each resolver; clients of one that has none use IPv4.
  const lacks = resolvers.filter(
    (reply) =>
      ["answer", "no-data", "name-error"].includes(reply.outcome) &&
      addressesIn(reply, "AAAA").length === 0,
  );
  if (lacks.length > 0) return { finding: "resolvers-differ", text: `${said} ${verdict.text}` };
  return unanswered.length > 0
    ? { finding: "resolver-silent", text: `${said} ${listText(unanswered)} did not answer.` }
    : { text: said };
}

const detailsOf = (answer: Answer): object =>
  answer instanceof ApiError ? answer.body.error.details : answer.details;

/** This machine and its links, where services trust whoever can reach them: by `SIXSCOPE_TARGETS_ALLOW` alone. */
const OWN = once(() =>
  ["::1/128", "fe80::/10", "127.0.0.0/8", "169.254.0.0/16", "0.0.0.0/8"].map(parsePrefix),
);

/** Judges whether an address may be connected to. */
export function judgePolicy(ip: string, { config: { targets } }: Pick<Services, "config">): Seen {
  const address = tryParseIp(ip);
  const isIn = (prefixes: readonly Prefix[]) =>
    address !== null && prefixes.some((prefix) => prefixContains(prefix, address));
  const objection = address && objectionTo(address, targets);
  if (objection) {
    const finding = objection.includes("denied prefix") ? "not-allowed" : "not-public";
    return { finding, text: `${ip} is not probed: ${objection}.` };
  }
  if (!isIn(OWN()) || isIn(targets.allow)) return { text: "It may be connected to." };
  const text = `${ip} is this machine or on its link, and SIXSCOPE_TARGETS_ALLOW does not have it.`;
  return { finding: "not-allowed", text };
}

/** Judges a ping by echo requests. */
export function judgeEcho({ stats, details: { verdict } }: PingResult): Seen {
  return { text: verdict.text, ...(stats.received === 0 && { finding: "no-echo" as const }) };
}

/** Judges a ping of a TCP port. */
export function judgePort({ details }: PingResult): Seen {
  const { port, lost, verdict } = details;
  const { code, text } = verdict;
  if (port?.state === "open") return { text };
  if (port?.state === "closed") return { finding: "port-closed", text };
  if (code === "not-sent") return { finding: "not-sent", text };
  if (lost.some((sample) => "from" in sample)) {
    // A firewall that lets echo requests through refuses the port alone.
    return { finding: port?.echo ? "port-closed" : "unreachable", text };
  }
  return { finding: port?.echo ? "port-silent" : "no-answer", text };
}

/** Judges a measurement of the path MTU. */
export function judgeMtu({ details: { verdict } }: MtuResult): Seen {
  const { code, text } = verdict;
  if (code === "inconclusive") return { status: "warn", text };
  const vanishes = code === "black-hole" || code === "below-1280";
  return { text, ...(vanishes && { finding: "large-packets" as const }) };
}

/** Loss that is no longer called chance alone, in percent: two of twenty. */
const DOUBTFUL_PERCENT = 10;

/**
 * Judges the loss of a path.
 *
 * @param isOverTcp true if each probe was one to an open port; of echo requests, a target may answer only some
 */
export function judgeMtr({ hops, details }: MtrResult, isOverTcp: boolean): Seen {
  const { verdict, toTarget, reached } = details;
  const { code, text, to } = verdict;
  if (!reached) return { status: "warn", text };
  const isSure = isOverTcp || (to !== undefined && to < hops.length);
  if (!isSure || (toTarget.loss ?? 0) < DOUBTFUL_PERCENT) return { text };
  return { finding: code === "loss" ? "path-loss" : "path-doubtful", text };
}

/** The words of a trace on the way; that its end is silent is judged by the port. */
export function judgeTrace({ details: { verdict, reached } }: TraceResult): Seen {
  return { text: verdict.text, ...(!reached && { status: "warn" as const }) };
}
