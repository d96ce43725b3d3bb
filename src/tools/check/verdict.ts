import { capitalized, firstTrue, numberText, quote, shareText } from "../../util/text.ts";
import { CODE_TABLE } from "../here/codes.ts";
import type { HereResult } from "../here/result.ts";
import { CODES, FINDINGS, type Finding, NOUNS } from "./findings.ts";
import { type Doubt, isOffInternet } from "./judge.ts";
import {
  type Attempt,
  byFamily,
  byText,
  hasFailed,
  isIpv6,
  isLost,
  ofKind,
  transactionsOf,
  typical,
  worked,
  workedText,
} from "./ledger.ts";
import type { Seen, Step, Verdict } from "./result.ts";
import { PLAIN_PORT, TLS_PORT } from "./transaction.ts";
import { causeText, viewsOf } from "./views.ts";

export const isWeb = (port: number) => port === PLAIN_PORT || port === TLS_PORT;

const isOfIpv4 = ({ ip }: Step) => ip !== undefined && !isIpv6(ip);

/** A step that has found something. */
type Finder = Step & { readonly finding: Finding };

const hasFound = (step: Step): step is Finder => step.finding !== undefined;

const rankOf = ({ finding }: Finder) => CODES.indexOf(finding);

/** The worst of some steps; undefined if all are well. */
const worstOf = (steps: readonly Step[]): Finder | undefined =>
  steps
    .filter(hasFound)
    .toSorted((a, b) => rankOf(a) - rankOf(b) || byText(a.ip ?? "", b.ip ?? ""))[0];

const isFailed = ({ status }: Step) => status === "fail";

/** IPv6 that is slower by as much is a finding: people notice a tenth of a second. */
const SLOWER_MS = 50;

/** Times that differ by less count as equal: this process has other work between them. */
const SAME_MS = 5;

/** Standard errors within which 99 % of a normal distribution are. */
const Z = 2.58;

/**
 * By how many milliseconds connections over IPv6 take longer than over IPv4: the shift of Hodges and Lehmann, and its 99 %
 * interval by the rank sum of Mann and Whitney. Null if there are too few.
 */
export function slownessOf(six: readonly number[], four: readonly number[]) {
  const shifts = six.flatMap((a) => four.map((b) => a - b)).toSorted((a, b) => a - b);
  const pairs = shifts.length;
  const spread = Math.sqrt((pairs * (six.length + four.length + 1)) / 12);
  const outside = Math.floor(pairs / 2 - Z * spread);
  const [least, most] = [shifts[outside], shifts[pairs - 1 - outside]];
  if (outside < 0 || least === undefined || most === undefined) return null;
  return { least, most, shift: ((shifts[(pairs - 1) >> 1] ?? 0) + (shifts[pairs >> 1] ?? 0)) / 2 };
}

/** How long connections over IPv6 take against those over IPv4; null if that is not clear. */
function speedOf(rows: readonly Attempt[]): { slowerMs: number; text: string } | null {
  const [six, four] = byFamily(ofKind(rows, "connect").filter(worked));
  const msOf = (opened: readonly Attempt[]) => opened.map(({ ms }) => ms);
  const addresses = [...Map.groupBy(six, ({ ip }) => ip).values()];
  const all = addresses.flatMap((opened) => slownessOf(msOf(opened), msOf(four)) ?? []);
  // Clients take the fastest address.
  const [slowness] = all.toSorted((a, b) => a.shift - b.shift);
  if (slowness === undefined) return null;
  const { least, most, shift } = slowness;
  const ms = Math.round(Math.abs(shift));
  if (-SAME_MS < least && most < SAME_MS) return { slowerMs: 0, text: "IPv4 connects as fast" };
  if (ms < SAME_MS || (least <= 0 && most >= 0)) return null;
  const [slowerMs, how] = shift > 0 ? [ms, "faster"] : [-ms, "slower"];
  return { slowerMs, text: `IPv4 connects ${ms} ms ${how}` };
}

/** The response with the worst HTTP status. */
const worstAnswer = (rows: readonly Attempt[]) =>
  rows
    .filter(({ httpStatus }) => httpStatus !== undefined)
    .toSorted((a, b) => (b.httpStatus ?? 0) - (a.httpStatus ?? 0) || byText(a.ip, b.ip))[0];

/** Compares the families: their HTTP responses, certificates and times; null if only one has answered. */
export function compareFamilies(rows: readonly Attempt[]): Seen | null {
  const families = byFamily(rows);
  if (!families.every((all) => ofKind(all, "connect").some(worked))) return null;
  // More requests go to IPv6, and a server may limit them.
  const turns = Math.max(...ofKind(families[1], "request").map(({ turn }) => turn));
  const [six, four] = families.map((all) => worstAnswer(all.filter(({ turn }) => turn <= turns)));
  // A redirect or a cache may differ; an error where the other family has none is seen by users.
  if (six && four && (six.httpStatus ?? 0) >= 400 && (four.httpStatus ?? 0) < 400) {
    const text = `${six.ip} answers with status ${six.httpStatus}, and ${four.ip} with ${four.httpStatus}.`;
    return { finding: "http-differs", text };
  }
  const chains = families.map((all) => new Set(all.flatMap(({ chain = [] }) => chain)));
  const [own, other] = chains.filter(({ size }) => size > 0);
  const differs = own && other?.isDisjointFrom(own);
  const certificates = differs ? " Their chains of certificates differ." : "";
  const speed = speedOf(rows);
  const text = `${speed?.text ?? "Which of the families connects faster is not clear"}.${certificates}`;
  return (speed?.slowerMs ?? 0) < SLOWER_MS ? { text } : { finding: "slower", text };
}

/** Addresses of IPv6 that are connected to. */
export const MAX_ADDRESSES = 8;

/** What a check has heard. */
export interface Hearing {
  /** The steps that are no views: of the name, of policies, of the path. */
  readonly steps: readonly Step[];
  readonly rows: readonly Attempt[];
  /** The IPv6 addresses that the name has, of which at most `MAX_ADDRESSES` are tried. */
  readonly addresses: number;
  /** Those of them that only one resolver has, which differs from the others. */
  readonly doubted?: readonly Doubt[];
}

/** The near side of a check. */
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

/** The verdicts on a name that a failure of this machine explains, by what fails here. */
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

/** A verdict of its parts, which are put together. */
const verdictOf = (parts: Omit<Verdict, "text">): Verdict => ({
  ...parts,
  text: [parts.headline, parts.evidence, parts.advice].filter(Boolean).join(" "),
});

/**
 * The conclusion, a function of what was heard: whether the name works over IPv6, and the worst finding. Where the machine
 * that checks explains the failure, nobody else is blamed.
 *
 * @param subject the name or address
 */
export function checkVerdict(
  subject: string,
  port: number,
  hearing: Hearing,
  near: NearSide = { here: null, isPathHeard: false },
): Verdict {
  const verdict = verdictOnName(subject, port, hearing, near.isPathHeard);
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

/** What was counted over IPv6 at a name that works. */
function countedText(rows: readonly Attempt[]): string {
  const [six] = byFamily(rows);
  const probes = (["syn", "echo"] as const).flatMap((kind) => {
    const all = ofKind(six, kind);
    // Bare SYNs that no firewall lets through say nothing of connections.
    return all.some(worked) ? workedText(all, NOUNS[kind]) : [];
  });
  const answered = probes.length > 0 ? `; ${probes.join(" and ")} were answered` : "";
  return `${workedText(transactionsOf(six), "transaction")} over IPv6 worked${answered}.`;
}

function verdictOnName(subject: string, port: number, hearing: Hearing, isPathHeard: boolean) {
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
  const beside = broken ? `${overIpv4} either` : overIpv4;
  const speed = speedOf(rows);
  const compared = broken ? overIpv4 : speed ? `; ${speed.text}` : "";
  const filled = (text: string, ip = "its address") =>
    text.replaceAll("{port}", String(port)).replaceAll("{ip}", ip);
  const says = ({ finding }: Finder) => filled(FINDINGS[finding].words);
  const conclude = (code: Code, first: string, shown?: Step, more?: Partial<Verdict>) => {
    const row = code === "works" ? undefined : FINDINGS[code];
    const about = shown?.finding ? FINDINGS[shown.finding] : row;
    const isHeard = isPathHeard && shown?.finding === "no-answer";
    return verdictOf({
      code,
      answer: row?.answer ?? (row?.status === "fail" ? "no" : "yes"),
      ...{ headline: `${first}.`, evidence: shown?.text ?? null },
      advice: about?.advice ? filled(about.advice, shown?.ip) : null,
      fault: about ? (isHeard ? "site" : (about.fault ?? "site")) : null,
      ...(shown?.at && { at: shown.at }),
      ...more,
    });
  };
  const names = steps.filter(hasFound).find(({ name }) => name === "names");
  if (names && isFailed(names)) {
    if (names.finding === "no-such-name") {
      const [fact, advice] = names.text.replace(quote(subject), subject).slice(0, -1).split("; ");
      const more = advice && { advice: `${capitalized(advice)}.` };
      return conclude("no-such-name", `${fact}`, names, { evidence: null, ...more });
    }
    const others = names.finding === "dnssec-bogus" ? "" : beside;
    return conclude(names.finding, `${subject} ${says(names)}${others}`, names);
  }
  const byIp = Map.groupBy(six, ({ ip = "" }) => ip);
  const ips = [...byIp.keys()];
  const faults = [...byIp.values()].flatMap((all) => faultOf(all, isPathHeard) ?? []);
  const worst = worstOf(faults);
  const fault = worst && `${worst.ip} ${says(worst)}`;
  // The first sentence is passed on without the evidence, so it names the router.
  const router = worst?.at && FINDINGS[worst.finding].fault === "path" ? ` (${worst.at})` : "";
  const [some, every] = [numberText(faults.length), numberText(ips.length)];
  const isMost = addresses > ips.length;
  const tried = isMost
    ? `the ${ips.length} of ${addresses} addresses that were checked`
    : `its ${every} addresses`;
  if (worst && faults.length === ips.length) {
    const isTranslated = names?.finding === "translator-only";
    const made = isTranslated ? "a translator (NAT64) makes its addresses of IPv4, and " : "";
    const none = ips.length === 2 ? "neither" : "none";
    const of = ips.length === 1 ? "" : `${none} of ${tried} works, and `;
    const isUntold = FINDINGS[worst.finding].answer === "not-from-here";
    const outcome = isUntold
      ? `Whether ${subject} works over IPv6 cannot be told from here: `
      : worst.ip === subject
        ? ""
        : `${subject} does not work over IPv6: `;
    const whose = outcome && `${outcome}${made}${of}`;
    // Redirects are followed over IPv6 alone.
    const besides = isRedirected(worst) ? "" : beside;
    return conclude(worst.finding, `${whose}${fault}${router}${besides}`, worst);
  }
  const unknown = `Whether ${subject} works over IPv6 is not known`;
  if (!isProven(six, port)) {
    const open = steps
      .filter(({ name, status }) => DECISIVE.includes(name) && status === "skipped")
      .find((step) => !isOfIpv4(step));
    const but = fault ? `; ${fault}` : "";
    const first = `${unknown}${but}${overIpv4}`;
    return conclude("unknown", first, open, { advice: AGAIN });
  }
  if (worst) {
    const isElsewhere = ({ ip }: Step) => faults.every((each) => each.ip !== ip);
    const unsteady = worstOf(six.filter((step) => isUnsteady(step) && isElsewhere(step)));
    const silent = faults.filter(isSilent).length;
    const delayed = silent === faults.length ? "are delayed" : "are delayed or fail";
    // Clients go on to another address.
    const meets = faults.every(isRefused) ? "fail at first" : silent === 0 ? "fail" : delayed;
    const share = 2 * faults.length === ips.length ? "half of" : `${some} in ${every}`;
    const consequence = `, so about ${share} new connections ${meets}`;
    // Clients elsewhere may have a route where this machine has none, or none where it has one.
    const isForAll =
      !isMost &&
      !unsteady &&
      faults.every(({ name, finding }) => name !== "policy" && finding !== "not-sent");
    const first = `${subject} works over IPv6, but not at ${some} of ${tried}${isForAll ? consequence : ""}: ${fault}${router}`;
    const besides = unsteady ? `; ${unsteady.ip} ${says(unsteady)}` : "";
    const doubt = hearing.doubted?.find(({ ip }) => ip === worst.ip);
    const evidence = [
      worst.text,
      unsteady && `At ${unsteady.ip}, ${unsteady.text}`,
      doubt && `${doubt.resolver} alone has ${doubt.ip}.`,
    ];
    const more = { evidence: evidence.filter(Boolean).join(" ") };
    return conclude("partly", `${first}${besides}${compared}`, worst, more);
  }
  const warning = worstOf(steps.filter((step) => !isOfIpv4(step)));
  const others = [...Map.groupBy(all.filter(doubtOf), ({ ip }) => ip).values()];
  const wrong = worstOf(others.flatMap((each) => faultOf(each, isPathHeard) ?? []));
  if (wrong && (!warning || warning.finding === "no-echo")) {
    const { resolver, text } = doubtOf(wrong) as Doubt;
    const first = `${subject} works over IPv6, but ${resolver} alone has ${wrong.ip}, which ${says(wrong)}`;
    return conclude("resolvers-differ", first, undefined, { evidence: text });
  }
  const isRead = !isWeb(port) || byFamily(rows)[0].some((row) => row.isRead);
  if (!isRead && !(warning && isUnsteady(warning))) {
    const evidence = `It answers, and no body was read in time. ${countedText(rows)}`;
    return conclude("unknown", `${unknown}${overIpv4}`, undefined, { evidence, advice: AGAIN });
  }
  if (!warning) {
    const first = `${subject} works over IPv6${isMost ? ` at ${tried}` : ""}${compared}`;
    return conclude("works", first, undefined, { evidence: countedText(rows) });
  }
  const { finding } = warning;
  if (isUnsteady(warning)) {
    const stopped = new Set(six.filter(isOneOf("stopped")).map(({ ip }) => ip)).size;
    const how = firstTrue({
      "works over IPv6 only sometimes": finding === "sometimes",
      "worked over IPv6, and then stopped": stopped === ips.length,
      [`works over IPv6, but ${numberText(stopped)} of ${tried} worked, and then stopped`]: true,
    });
    const counted = failedText(rows, ips);
    const first = `${subject} ${how}${counted ? `: ${counted}` : ""}${overIpv4}`;
    const failures = byFamily(rows)[0].filter((row) => hasFailed(row) && row.kind !== "echo");
    // Any network on the path may lose packets, and a router is not the site.
    const isSilence = failures.every((row) => isLost(row) || isHung(row));
    const fault = warning.at ? "path" : isSilence && failures.some(isLost) ? "unknown" : "site";
    const where = ips.length > 1 && warning.ip ? `At ${warning.ip}, ` : "";
    const reason = typical(failures)?.reason ?? "";
    const cause = warning.at ? "unreachable" : isOfCertificate(reason) ? reason : finding;
    const advice = FINDINGS[cause].advice ?? null;
    return conclude(finding, first, warning, {
      ...{ fault, advice, evidence: `${where}${warning.text}` },
    });
  }
  if (finding === "unknown") {
    const first = `Whether ${subject} always works over IPv6 is not known: it ${says(warning)}`;
    return conclude(finding, `${first}${overIpv4}`, warning);
  }
  const first = `${subject} works over IPv6, but ${says(warning)}`;
  return conclude(finding, `${first}${finding === "slower" ? "" : compared}`, warning);
}

const AGAIN = "Test again after a minute.";

/** The steps without which it is not known whether an address works. */
const DECISIVE: readonly Step["name"][] = ["names", "tcp", "tls", "http"];

const isOneOf =
  (...findings: Finding[]) =>
  ({ finding }: Pick<Step, "finding">) =>
    finding !== undefined && findings.includes(finding);

const isSilent = isOneOf("port-silent", "no-answer");

const isUnreached = isOneOf("not-sent", "unreachable", "rejected", "path-loop", "no-answer");

const isUnsteady = isOneOf("stopped", "sometimes");

const isRefused = isOneOf("port-closed", "not-opened", "rejected", "unreachable");

const isOfCertificate = (reason: string): reason is Finding => reason.startsWith("certificate-");

const isRedirected = isOneOf("redirect-broken", "redirect-loop", "redirect-without-ipv6");

const isHung = isOneOf("tls-silent", "http-silent", "response-incomplete");

/** Silence from the first router on does not tell a site from the network of this machine. */
const OWN_WAY = " Nothing on the way answers, so the network of this machine may be at fault.";

/** The failure of an address, with what explains it; undefined if it has none. */
function faultOf(steps: readonly Step[], isPathHeard: boolean): Finder | undefined {
  const of = (name: Step["name"]) => steps.find((step) => step.name === name);
  // A trace over another protocol may take another path than the connections.
  const isClosed = of("tcp")?.status === "fail";
  const failed = steps.filter(
    ({ name, status }) => status === "fail" && (name !== "trace" || isClosed),
  );
  const fault = worstOf(failed.filter(({ finding }) => finding !== "stopped"));
  if (fault === undefined) return undefined;
  const [policy, mtu, trace] = [of("policy"), of("mtu"), of("trace")];
  if (policy?.finding && isUnreached(fault)) {
    const isOff = fault.ip !== undefined && isOffInternet(fault.ip);
    return { ...fault, text: policy.text, ...(isOff && { finding: "not-public" }) };
  }
  if (isHung(fault) && mtu && mtu.ms > 0) {
    return mtu.finding === "large-packets"
      ? { ...fault, finding: "mtu-black-hole", text: mtu.text }
      : { ...fault, text: `${fault.text} ${mtu.text}` };
  }
  // For a silent port, the trace says how far probes come; for a closed one, who may have answered.
  const explains = isSilent(fault) ? "skipped" : fault.finding === "port-closed" ? "ok" : null;
  if (trace?.status !== explains) return fault;
  const own = isSilent(fault) && !isPathHeard ? OWN_WAY : "";
  return { ...fault, text: `${fault.text} ${trace.text}${own}` };
}
