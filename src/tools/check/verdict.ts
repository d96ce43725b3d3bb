import { CODE_TABLE } from "../here/codes.ts";
import type { HereResult } from "../here/result.ts";
import { CODES, FINDINGS, type Finding, type VERDICTS } from "./findings.ts";
import type { CheckResult, Step } from "./result.ts";

/** The finding of a step, before it is one. */
export type Seen = Omit<Step, "name" | "ip" | "status" | "ms"> & {
  readonly status?: "warn" | "fail" | "skipped";
};

/** A step from what was found in it. */
export function stepOf(name: Step["name"], ip: string | null, seen: Seen, ms: number): Step {
  const status = seen.status ?? (seen.finding ? FINDINGS[seen.finding].status : "ok");
  return { name, ...(ip !== null && { ip }), ...seen, status, ms: Math.round(ms) };
}

/** Ports where a server is expected to speak HTTP, without TLS and with it. */
export const [PLAIN_PORT, TLS_PORT] = [80, 443];

export const isWeb = (port: number) => port === PLAIN_PORT || port === TLS_PORT;

const isIpv6 = ({ ip = "" }: Step) => ip.includes(":");

const isIpv4 = ({ ip = ":" }: Step) => !ip.includes(":");

const rankOf = ({ finding }: Step) => (finding ? CODES.indexOf(finding) : CODES.length);

/** The worst of some steps; undefined if all are well. */
const worstOf = (steps: readonly Step[]): Step | undefined =>
  steps.filter(({ finding }) => finding).toSorted((a, b) => rankOf(a) - rankOf(b))[0];

const isFailed = ({ status }: Step) => status === "fail";

/** IPv6 that is slower by as much is a finding: people notice a tenth of a second. */
const SLOWER_MS = 50;

/** Times that differ by less are the same: both are taken in a process that does more than this. */
const SAME_MS = 5;

/** The step whose connections were the fastest. */
const fastest = (steps: readonly Step[]): Step | undefined =>
  steps.filter(({ rtt }) => rtt !== undefined).toSorted((a, b) => (a.rtt ?? 0) - (b.rtt ?? 0))[0];

/**
 * By how many milliseconds connections over IPv6 take longer than those over IPv4; 0 if some take longer and some do
 * not, and null if one is not known.
 */
function slownessOf(steps: readonly Step[]): number | null {
  const [six, four] = [fastest(steps.filter(isIpv6)), fastest(steps.filter(isIpv4))];
  if (six?.rtt === undefined || four?.rtt === undefined) return null;
  const isClear = six.rtt > (four.rttMost ?? 0) || four.rtt > (six.rttMost ?? 0);
  return isClear ? Math.round(six.rtt - four.rtt) : 0;
}

/** The step with the worst HTTP status. */
const worstAnswer = (steps: readonly Step[]): Step | undefined =>
  steps.toSorted((a, b) => (b.httpStatus ?? 0) - (a.httpStatus ?? 0))[0];

/** Compares the families: their HTTP responses and their times; null if only one has answered. */
export function compareFamilies(steps: readonly Step[]): Seen | null {
  const slowness = slownessOf(steps);
  const [six, four] = [worstAnswer(steps.filter(isIpv6)), worstAnswer(steps.filter(isIpv4))];
  const [status6 = 0, status4 = Infinity] = [six?.httpStatus, four?.httpStatus];
  // A redirect or a cache may differ; an error where the other family has none is seen by users.
  if (status6 >= 400 && status4 < 400) {
    const text = `${six?.ip} answers with status ${status6}, and ${four?.ip} with ${status4}.`;
    return { finding: "http-differs", text };
  }
  if (slowness === null) return null;
  const text = `${speedText(slowness)}.`;
  return slowness < SLOWER_MS ? { text } : { finding: "slower", text };
}

function speedText(slowness: number): string {
  if (Math.abs(slowness) < SAME_MS) return "IPv4 connects as fast";
  return `IPv4 connects ${Math.abs(slowness)} ms ${slowness > 0 ? "faster" : "slower"}`;
}

/** Addresses of IPv6 that are connected to. */
export const MAX_ADDRESSES = 4;

const COUNTS = ["none", "one", "two", "three", "four"];

/** The step of an address that proves that it works: a response on the ports of the web, else a connection. */
const proofOn = (port: number) => (isWeb(port) ? "http" : "tcp");

/** The near side of a check. */
export interface NearSide {
  /** A look at the machine that checks; null if there is none. */
  readonly here: HereResult | null;
  /** True if another machine on the way has answered. */
  readonly isPathHeard: boolean;
}

const NAMES: readonly Verdict["code"][] = ["names-unknown"];
const UNSENT: readonly Verdict["code"][] = [...NAMES, "not-sent"];
const UNANSWERED: readonly Verdict["code"][] = [...UNSENT, "no-answer", "unknown"];
const TOO_LARGE: readonly Verdict["code"][] = ["mtu-black-hole", "tls-silent", "http-silent"];

/** The verdicts on a name that a failure here explains, by what it does. */
const EXPLAINED = {
  ...{ names: NAMES, unsent: UNSENT, unanswered: UNANSWERED, large: TOO_LARGE },
  all: [...UNANSWERED, ...TOO_LARGE],
};

/** What a failure here is at fault of; undefined if there is none, or it does not explain the verdict. */
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

type Verdict = CheckResult["details"]["verdict"];

/**
 * The conclusion: whether the name works over IPv6, and the worst finding. Its first sentence is for everybody; what
 * follows is the evidence, and what to do. Where the machine that checks explains the failure, nobody else is blamed.
 *
 * @param subject the name or address
 */
export function checkVerdict(
  subject: string,
  port: number,
  steps: readonly Step[],
  near: NearSide = { here: null, isPathHeard: false },
): Verdict {
  const verdict = verdictOnName(subject, port, steps);
  // An address that not every network reaches needs no other explanation.
  const isSpecial = steps.some(({ finding }) => finding === "special-address");
  const fault = isSpecial ? undefined : faultHere(near, verdict);
  if (fault) {
    const works = over(isIpv4, port, steps) ? "; over IPv4 it works" : "";
    const first = `Whether ${subject} works over IPv6 cannot be told from here${works}.`;
    return { code: verdict.code, text: `${first} ${near.here?.details.verdict.text}`, fault };
  }
  return verdict.code === "not-sent" && !isSpecial ? { ...verdict, fault: "here" } : verdict;
}

/** True if some connections of a family have worked. */
const over = (isOfFamily: (step: Step) => boolean, port: number, steps: readonly Step[]) =>
  steps.some(
    (step) =>
      isOfFamily(step) && step.name === proofOn(port) && ["ok", "warn"].includes(step.status),
  );

function verdictOnName(subject: string, port: number, steps: readonly Step[]): Verdict {
  const ipv4 = steps.filter(isIpv4);
  // A machine without IPv4 says nothing of the name.
  const broken = ipv4.find((step) => isFailed(step) && step.finding !== "not-sent");
  const overIpv4 = over(isIpv4, port, steps)
    ? "; over IPv4 it works"
    : broken
      ? `; over IPv4 (${broken.ip}) it does not work`
      : "";
  const beside = broken ? `${overIpv4} either` : overIpv4;
  const slowness = slownessOf(steps);
  const speed = slowness === null ? "" : `; ${speedText(slowness)}`;
  const compared = broken ? overIpv4 : speed;
  const withPort = (text: string) => text.replace("{port}", String(port));
  const says = (finding: Finding) => withPort(FINDINGS[finding].words);
  const conclude = (code: (typeof VERDICTS)[number], first: string, evidence?: Step) => {
    const advice = evidence?.finding && FINDINGS[evidence.finding].advice;
    const sentences = [`${first}.`, evidence?.text, advice && withPort(advice)];
    return { code, text: sentences.filter(Boolean).join(" ") };
  };
  const names = steps.find(({ name }) => name === "names");
  if (names?.finding && isFailed(names)) {
    const others = names.finding === "dnssec-bogus" ? "" : beside;
    return conclude(names.finding, `${subject} ${says(names.finding)}${others}`, names);
  }
  const ips = [...new Set(steps.filter(isIpv6).flatMap(({ ip }) => ip ?? []))];
  const faults = ips.flatMap((ip) => faultOf(steps.filter((step) => step.ip === ip)) ?? []);
  const worst = worstOf(faults);
  const [some, all] = [COUNTS[faults.length], COUNTS[ips.length]];
  // A name may have more.
  const isMost = ips.length === MAX_ADDRESSES;
  const addresses = isMost ? `the ${all} addresses that were checked` : `its ${all} addresses`;
  if (worst?.finding && faults.length === ips.length) {
    const fault = `${worst.ip} ${says(worst.finding)}`;
    const made =
      names?.finding === "translator-only"
        ? "a translator (NAT64) makes its addresses of IPv4, and "
        : "";
    const none = ips.length === 2 ? "neither" : "none";
    const of = ips.length === 1 ? "" : `${none} of ${addresses} works, and `;
    const first =
      worst.ip === subject ? fault : `${subject} does not work over IPv6: ${made}${of}${fault}`;
    return conclude(worst.finding, `${first}${beside}`, worst);
  }
  if (!over(isIpv6, port, steps)) {
    const open = steps.find(
      (step) => step.status === "skipped" && DECISIVE.includes(step.name) && !isIpv4(step),
    );
    const but = worst?.finding ? `; ${worst.ip} ${says(worst.finding)}` : "";
    const first = `Whether ${subject} works over IPv6 is not known${but}${overIpv4}`;
    return conclude("unknown", first, open);
  }
  if (worst?.finding) {
    const silent = faults.filter(isSilent).length;
    const [waits, fails] = faults.length === 1 ? ["waits", "fails"] : ["wait", "fail"];
    const meets = silent === 0 ? fails : silent === faults.length ? waits : "wait or fail";
    const consequence = `, so ${some} in ${all} first connections ${meets}`;
    // Clients elsewhere may have a way where this machine has none, or none where it has.
    const isForAll =
      !isMost && faults.every(({ name, finding }) => name !== "policy" && finding !== "not-sent");
    const first = `${subject} works over IPv6, but not at ${some} of ${addresses}${isForAll ? consequence : ""}: ${worst.ip} ${says(worst.finding)}`;
    return conclude("partly", `${first}${compared}`, worst);
  }
  const warning = worstOf(steps.filter((step) => !isIpv4(step)));
  if (warning?.finding) {
    const first = `${subject} works over IPv6, but ${says(warning.finding)}`;
    const isAboutSpeed = warning.finding === "slower";
    return conclude(warning.finding, `${first}${isAboutSpeed ? "" : compared}`, warning);
  }
  return conclude("works", `${subject} works over IPv6${compared}`);
}

/** The steps without which it is not known whether an address works. */
const DECISIVE: readonly Step["name"][] = ["names", "tcp", "tls", "http"];

const isOneOf =
  (...findings: Finding[]) =>
  ({ finding }: Step) =>
    finding !== undefined && findings.includes(finding);

const isSilent = isOneOf("port-silent", "no-answer");

const isUnreached = isOneOf("not-sent", "unreachable", "no-answer");

const isHung = isOneOf("tls-silent", "http-silent");

/** The failure of an address, with what explains it; undefined if it has none. */
function faultOf(steps: readonly Step[]): Step | undefined {
  const fault = worstOf(steps.filter(isFailed));
  if (fault === undefined) return undefined;
  const of = (name: Step["name"]) => steps.find((step) => step.name === name);
  const [policy, mtu, trace] = [of("policy"), of("mtu"), of("trace")];
  if (policy?.finding && isUnreached(fault)) return { ...fault, text: policy.text };
  if (isHung(fault) && mtu && mtu.status !== "skipped") {
    if (mtu.finding === "large-packets")
      return { ...fault, finding: "mtu-black-hole", text: mtu.text };
    return { ...fault, text: `${fault.text} ${mtu.text}` };
  }
  // Of a port that is silent, how far probes come; of one that refuses, who may have said so.
  const explains = isSilent(fault) ? "warn" : fault.finding === "port-closed" ? "ok" : null;
  return trace?.status === explains ? { ...fault, text: trace.text } : fault;
}
