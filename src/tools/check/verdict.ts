/** The conclusion of a check, a function of its evidence. */
import { capitalized, firstTrue, numberText, quote, shareText } from "../../util/text.ts";
import { CODE_TABLE } from "../here/codes.ts";
import type { HereResult } from "../here/result.ts";
import { speedOf } from "./compare.ts";
import {
  type Finder,
  faultOf,
  hasFound,
  isFailed,
  isHung,
  isOfCertificate,
  isOfIpv4,
  isOneOf,
  isRedirected,
  isRefused,
  isSilent,
  isUnsteady,
  worstOf,
} from "./fault.ts";
import { FINDINGS, NOUNS } from "./findings.ts";
import type { Doubt } from "./judge.ts";
import {
  type Attempt,
  byFamily,
  hasFailed,
  isIpv6,
  isLost,
  ofKind,
  transactionsOf,
  typical,
  worked,
  workedText,
} from "./ledger.ts";
import type { Step, Verdict } from "./result.ts";
import { isWeb } from "./service.ts";
import { causeText, viewsOf } from "./views.ts";

/** The evidence of a check. */
export interface Hearing {
  /** The steps that are not views: of the name, of policies, of the path. */
  readonly steps: readonly Step[];
  readonly rows: readonly Attempt[];
  /** The IPv6 addresses that the name has, of which at most `MAX_ADDRESSES` are tried. */
  readonly addresses: number;
  /** Addresses among them that only one resolver has, which differs from the others. */
  readonly doubted?: readonly Doubt[];
}

/** The evidence about the machine that checks and its network. */
export interface NearSide {
  /** A look at the machine that checks; null if there is none. */
  readonly here: HereResult | null;
  /** True if another machine on the way has answered. */
  readonly isPathHeard: boolean;
}

type Code = Verdict["code"];

type Codes = readonly Code[];

const NAMES: Codes = ["names-unknown"];
const UNSENT: Codes = [...NAMES, "not-sent"];
const UNANSWERED: Codes = [...UNSENT, "no-answer", "unknown"];
const TOO_LARGE: Codes = ["mtu-black-hole", "tls-silent", "http-silent", "response-incomplete"];

/** The verdicts on a name that a failure here explains, by what fails here. */
const EXPLAINED = {
  ...{ names: NAMES, unsent: UNSENT, unanswered: UNANSWERED, large: TOO_LARGE },
  all: [...UNANSWERED, ...TOO_LARGE],
};

/** Who is at fault if a failure here explains the verdict; undefined if none does. */
function faultHere({ here, isPathHeard }: NearSide, { code }: Verdict) {
  if (!here?.steps.some(({ status }) => status === "fail")) return undefined;
  const { explains = "unsent", fault = "here" } = CODE_TABLE[here.details.verdict.code];
  const resolvers = here.steps.find(({ name }) => name === "resolvers");
  if (NAMES.includes(code) && resolvers?.status === "ok") return undefined;
  return EXPLAINED[explains].includes(code) && !(isPathHeard && UNANSWERED.includes(code))
    ? fault
    : undefined;
}

/** True if a failure of the machine that checks can explain a verdict. */
export const mayBeHere = ({ code }: Verdict) => EXPLAINED.all.includes(code);

/** A verdict whose text is put together from its parts. */
const verdictOf = (parts: Omit<Verdict, "text">): Verdict => ({
  ...parts,
  text: [parts.headline, parts.evidence, parts.advice].filter(Boolean).join(" "),
});

/**
 * The conclusion: whether the name works over IPv6, and the worst finding. If the machine that checks explains the
 * failure, nobody else is blamed.
 *
 * @param subject the name or address
 */
export function checkVerdict(
  subject: string,
  port: number,
  hearing: Hearing,
  near: NearSide = { here: null, isPathHeard: false },
): Verdict {
  const verdict = verdictOnName(factsOf(subject, port, hearing, near.isPathHeard));
  // An address that not every network reaches needs no other explanation.
  const isSpecial = hearing.steps.some(({ finding }) => finding === "special-address");
  const fault = isSpecial ? undefined : faultHere(near, verdict);
  if (!fault || !near.here) return verdict;
  const works = isProven(viewsOf(hearing.rows).filter(isOfIpv4), port) ? OVER_IPV4 : "";
  return verdictOf({
    code: verdict.code,
    ...{ answer: "not-from-here", fault },
    headline: `Whether ${subject} works over IPv6 cannot be told from here${works}.`,
    ...{ evidence: near.here.details.verdict.text, advice: null },
  });
}

const AGAIN = "Test again after a minute.";

/** The steps without which it is not known whether an address works. */
const DECISIVE: readonly Step["name"][] = ["names", "tcp", "tls", "http"];

const OVER_IPV4 = "; over IPv4 it works";

/** True if some attempts have come to their end: a response on the ports of the web, else a connection. */
const isProven = (steps: readonly Step[], port: number) =>
  steps
    .filter(({ name }) => name === (isWeb(port) ? "http" : "tcp"))
    .some(({ status, finding }) => ["ok", "warn"].includes(status) || finding === "stopped");

/** `3 of 12 transactions over IPv6 failed, all at ::42, by RST`. */
function failedText(rows: readonly Attempt[], ips: readonly string[]) {
  const [six] = byFamily(rows);
  const all = transactionsOf(six);
  const [made, noun] = all.some(hasFailed)
    ? [all, "transaction"]
    : [ofKind(rows, "syn"), NOUNS.syn];
  const failures = made.filter(hasFailed);
  const failure = typical(failures);
  if (failure === undefined) return null;
  const isAtOne = failures.every(({ ip }) => ip === failure.ip);
  const where = ips.length > 1 && isAtOne ? `, all at ${failure.ip}` : "";
  return `${shareText(failures.length, made.length, noun)} failed${where}, ${causeText(failures, rows)}`;
}

/** The counts over IPv6 at a name that works. */
function countedText(rows: readonly Attempt[]): string {
  const [six] = byFamily(rows);
  const probes = (["syn", "echo"] as const).flatMap((kind) => {
    const all = ofKind(six, kind);
    // If a firewall drops bare SYNs, they say nothing of connections.
    return all.some(worked) ? workedText(all, NOUNS[kind]) : [];
  });
  const answered = probes.length > 0 ? `; ${probes.join(" and ")} were answered` : "";
  return `${workedText(transactionsOf(six), "transaction")} over IPv6 worked${answered}.`;
}

/** The facts that a verdict on a name rests on; addresses that filters answer with are left out. */
function factsOf(subject: string, port: number, hearing: Hearing, isPathHeard: boolean) {
  const doubted = hearing.doubted?.filter(({ isNowhere }) => isNowhere) ?? [];
  const doubtOf = ({ ip }: Pick<Step, "ip">) => doubted.find((each) => each.ip === ip);
  const rows = hearing.rows.filter((row) => !doubtOf(row));
  const addresses = hearing.addresses - doubted.length;
  const all = [...hearing.steps, ...viewsOf(hearing.rows)];
  const steps = all.filter((step) => !doubtOf(step));
  const [six, four] = [steps.filter(({ ip }) => ip && isIpv6(ip)), steps.filter(isOfIpv4)];
  const broken = four.find(isFailed);
  const overIpv4 = isProven(four, port)
    ? OVER_IPV4
    : broken
      ? `; over IPv4 (${broken.ip}) it does not work`
      : "";
  const speed = speedOf(rows);
  const byIp = Map.groupBy(six, ({ ip = "" }) => ip);
  const faults = [...byIp.values()].flatMap((own) => faultOf(own, isPathHeard) ?? []);
  const worst = worstOf(faults);
  // The first sentence is passed on without the evidence, so it names the router.
  const router = worst?.at && FINDINGS[worst.finding].fault === "path" ? ` (${worst.at})` : "";
  const isMost = addresses > byIp.size;
  return {
    ...{ subject, port, isPathHeard, rows, steps, six, faults, worst, isMost, overIpv4 },
    beside: broken ? `${overIpv4} either` : overIpv4,
    compared: broken ? overIpv4 : speed ? `; ${speed.text}` : "",
    names: steps.filter(hasFound).find(({ name }) => name === "names"),
    warning: worstOf(steps.filter((step) => !isOfIpv4(step))),
    ips: [...byIp.keys()],
    tried: isMost
      ? `the ${byIp.size} of ${addresses} addresses that were checked`
      : `its ${numberText(byIp.size)} addresses`,
    fault: worst && `${worst.ip} ${saysOf(worst, port)}${router}`,
    doubts: hearing.doubted ?? [],
    filtered: all.filter(doubtOf),
    unknown: `Whether ${subject} works over IPv6 is not known`,
  };
}

type Facts = ReturnType<typeof factsOf>;

/** Puts the port and the address into words of the table. */
const filled = (text: string, port: number, ip = "its address") =>
  text.replaceAll("{port}", String(port)).replaceAll("{ip}", ip);

/** True where large packets may vanish on the way, because none are known to have arrived. */
const mayVanish = ({ steps }: Facts, shown: Step) =>
  isHung(shown) &&
  !steps.some(({ name, ip, status }) => name === "mtu" && ip === shown.ip && status === "ok");

const saysOf = ({ finding }: Finder, port: number) => filled(FINDINGS[finding].words, port);

/**
 * A conclusion with the fault and the advice that its code has.
 *
 * @param first the headline, without its full stop
 * @param shown the step that is its evidence
 */
function conclude(
  facts: Facts,
  code: Code,
  first: string,
  shown?: Step,
  more?: Partial<Verdict>,
): Verdict {
  const { port, isPathHeard } = facts;
  const row = code === "works" ? undefined : FINDINGS[code];
  const about = shown?.finding ? FINDINGS[shown.finding] : row;
  const isHeard = isPathHeard && shown?.finding === "no-answer";
  const fault = isHeard ? "site" : shown && mayVanish(facts, shown) ? "unknown" : about?.fault;
  return verdictOf({
    code,
    answer: row?.answer ?? (row?.status === "fail" ? "no" : "yes"),
    ...{ headline: `${first}.`, evidence: shown?.text ?? null },
    advice: about?.advice ? filled(about.advice, port, shown?.ip) : null,
    fault: about ? (fault ?? "site") : null,
    ...(shown?.at && { at: shown.at }),
    ...more,
  });
}

/** The name has no IPv6 address, or resolvers do not tell. */
function ofNoAddress(facts: Facts) {
  const { subject, names, beside } = facts;
  if (!names || !isFailed(names)) return null;
  if (names.finding === "no-such-name") {
    const [fact, advice] = names.text.replace(quote(subject), subject).slice(0, -1).split("; ");
    const more = advice && { advice: `${capitalized(advice)}.` };
    return conclude(facts, "no-such-name", `${fact}`, names, { evidence: null, ...more });
  }
  const others = names.finding === "dnssec-bogus" ? "" : beside;
  const first = `${subject} ${saysOf(names, facts.port)}${others}`;
  return conclude(facts, names.finding, first, names);
}

/** No address works. */
function ofNoWorking(facts: Facts) {
  const { subject, names, ips, faults, worst, fault } = facts;
  if (!worst || faults.length < ips.length) return null;
  const isTranslated = names?.finding === "translator-only";
  const made = isTranslated ? "a translator (NAT64) makes its addresses of IPv4, and " : "";
  const none = ips.length === 2 ? "neither" : "none";
  const of = ips.length === 1 ? "" : `${none} of ${facts.tried} works, and `;
  const isUntold = FINDINGS[worst.finding].answer === "not-from-here";
  const outcome = isUntold
    ? `Whether ${subject} works over IPv6 cannot be told from here: `
    : worst.ip === subject
      ? ""
      : `${subject} does not work over IPv6: `;
  // Redirects are followed over IPv6 alone.
  const beside = isRedirected(worst) ? "" : facts.beside;
  const whose = outcome && `${outcome}${made}${of}`;
  return conclude(facts, worst.finding, `${whose}${fault}${beside}`, worst);
}

/** No address is known to work. */
function ofNoneProven(facts: Facts) {
  const { steps, six, fault } = facts;
  if (isProven(six, facts.port)) return null;
  const open = steps
    .filter(({ name, status }) => DECISIVE.includes(name) && status === "skipped")
    .find((step) => !isOfIpv4(step));
  const but = fault ? `; ${fault}` : "";
  const first = `${facts.unknown}${but}${facts.overIpv4}`;
  return conclude(facts, "unknown", first, open, { advice: AGAIN });
}

/** Some addresses work, and others do not. */
function ofSomeWorking(facts: Facts) {
  const { subject, port, six, ips, faults, worst, fault, isMost } = facts;
  if (!worst) return null;
  const isElsewhere = ({ ip }: Step) => faults.every((each) => each.ip !== ip);
  const unsteady = worstOf(six.filter((step) => isUnsteady(step) && isElsewhere(step)));
  const silent = faults.filter(isSilent).length;
  const delayed = silent === faults.length ? "are delayed" : "are delayed or fail";
  // Clients go on to another address.
  const meets = faults.every(isRefused) ? "fail at first" : silent === 0 ? "fail" : delayed;
  const [some, every] = [numberText(faults.length), numberText(ips.length)];
  const share = 2 * faults.length === ips.length ? "half of" : `${some} in ${every}`;
  // Clients elsewhere may have a route where this machine has none, or none where it has one.
  const isForAll =
    !isMost &&
    !unsteady &&
    faults.every(({ name, finding }) => name !== "policy" && finding !== "not-sent");
  const consequence = isForAll ? `, so about ${share} new connections ${meets}` : "";
  const first = `${subject} works over IPv6, but not at ${some} of ${facts.tried}${consequence}: ${fault}`;
  const beside = unsteady ? `; ${unsteady.ip} ${saysOf(unsteady, port)}` : "";
  const doubt = facts.doubts.find(({ ip }) => ip === worst.ip);
  const evidence = [
    worst.text,
    unsteady && `At ${unsteady.ip}, ${unsteady.text}`,
    doubt && `${doubt.resolver} alone has ${doubt.ip}.`,
  ];
  const more = { evidence: evidence.filter(Boolean).join(" ") };
  return conclude(facts, "partly", `${first}${beside}${facts.compared}`, worst, more);
}

/** An address that one resolver alone has does not work. */
function ofDoubted(facts: Facts) {
  const { subject, warning } = facts;
  const others = [...Map.groupBy(facts.filtered, ({ ip }) => ip).values()];
  const wrong = worstOf(others.flatMap((each) => faultOf(each, facts.isPathHeard) ?? []));
  const doubt = facts.doubts.find(({ ip }) => ip === wrong?.ip);
  if (!wrong || !doubt || (warning && warning.finding !== "no-echo")) return null;
  const { resolver, text } = doubt;
  const first = `${subject} works over IPv6, but ${resolver} alone has ${wrong.ip}, which ${saysOf(wrong, facts.port)}`;
  return conclude(facts, "resolvers-differ", first, undefined, { evidence: text });
}

/** Nothing failed, but no response was read to its end. */
function ofNoneRead(facts: Facts) {
  const { port, rows, warning } = facts;
  const isRead = !isWeb(port) || byFamily(rows)[0].some((row) => row.isRead);
  if (isRead || (warning && isUnsteady(warning))) return null;
  const evidence = `It answers, and no body was read in time. ${countedText(rows)}`;
  const more = { evidence, advice: AGAIN };
  return conclude(facts, "unknown", `${facts.unknown}${facts.overIpv4}`, undefined, more);
}

/** Some attempts at an address fail, from a moment on or now and then. */
function ofUnsteady(facts: Facts) {
  const { rows, ips, warning } = facts;
  if (!warning || !isUnsteady(warning)) return null;
  const { finding } = warning;
  const stopped = new Set(facts.six.filter(isOneOf("stopped")).map(({ ip }) => ip)).size;
  const how = firstTrue({
    "works over IPv6 only sometimes": finding === "sometimes",
    "worked over IPv6, and then stopped": stopped === ips.length,
    [`works over IPv6, but ${numberText(stopped)} of ${facts.tried} worked, and then stopped`]: true,
  });
  const counted = failedText(rows, ips);
  const first = `${facts.subject} ${how}${counted ? `: ${counted}` : ""}${facts.overIpv4}`;
  const failures = byFamily(rows)[0].filter((row) => hasFailed(row) && row.kind !== "echo");
  // Any network on the path may lose packets, and a router is not the site.
  const isSilence = failures.every((row) => isLost(row) || isHung(row));
  const fault = warning.at ? "path" : isSilence && failures.some(isLost) ? "unknown" : "site";
  const where = ips.length > 1 && warning.ip ? `At ${warning.ip}, ` : "";
  const reason = typical(failures)?.reason ?? "";
  const cause = warning.at ? "unreachable" : isOfCertificate(reason) ? reason : finding;
  const advice = FINDINGS[cause].advice ?? null;
  const evidence = `${where}${warning.text}`;
  return conclude(facts, finding, first, warning, { fault, advice, evidence });
}

/** It works, perhaps worse than it could. */
function ofWorking(facts: Facts): Verdict {
  const { subject, warning, compared } = facts;
  if (!warning) {
    const at = facts.isMost ? ` at ${facts.tried}` : "";
    const evidence = countedText(facts.rows);
    const first = `${subject} works over IPv6${at}${compared}`;
    return conclude(facts, "works", first, undefined, { evidence });
  }
  const { finding } = warning;
  const says = saysOf(warning, facts.port);
  const first =
    finding === "unknown"
      ? `Whether ${subject} always works over IPv6 is not known: it ${says}${facts.overIpv4}`
      : `${subject} works over IPv6, but ${says}${finding === "slower" ? "" : compared}`;
  return conclude(facts, finding, first, warning);
}

/** The first of the conclusions that applies. */
const verdictOnName = (facts: Facts): Verdict =>
  ofNoAddress(facts) ??
  ofNoWorking(facts) ??
  ofNoneProven(facts) ??
  ofSomeWorking(facts) ??
  ofDoubted(facts) ??
  ofNoneRead(facts) ??
  ofUnsteady(facts) ??
  ofWorking(facts);
