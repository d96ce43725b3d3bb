import type { Call } from "../../api/endpoint.ts";
import type { DnsClient, QueryOptions } from "../../dns/client.ts";
import { translationsIn } from "../../dns/dns64.ts";
import { createWork } from "../../dns/dnssec/limits.ts";
import type { Evidence } from "../../dns/dnssec/problem.ts";
import type { Reply } from "../../dns/dnssec/record-set.ts";
import { type ValidateOptions, type Validation, validate } from "../../dns/dnssec/validate.ts";
import { type DnsOutcome, isDecisive } from "../../dns/outcome.ts";
import type { DnssecDetails } from "./result.ts";

type Claim = DnssecDetails["resolver"]["claim"];

/** How a reply is checked. */
interface Check
  extends Pick<Call, "signal" | "client">,
    Pick<ValidateOptions, "anchors" | "unsignedZones"> {
  /** The resolver that sent it. */
  readonly name: DnssecDetails["resolver"]["name"];
  readonly dnsClient: DnsClient;
  /** Asks the question of the reply once more. */
  query(options: QueryOptions): Promise<DnsOutcome>;
}

/**
 * Our own verdict on a reply, and the claim of its resolver. A resolver that fails is asked not to check. If it
 * answers then, it is asked again as before, because one failure says nothing of the zone. A contradicted answer is
 * asked for once more, because the servers of one resolver can have different versions of a zone. The outcome is the
 * reply that was judged, if that is an answer.
 */
export async function checkDnssec(
  outcome: DnsOutcome,
  { name, dnsClient, anchors, unsignedZones, signal, client, query }: Check,
): Promise<{ readonly outcome: DnsOutcome; readonly dnssec: DnssecDetails }> {
  const work = createWork();
  const ask = (checkingDisabled: boolean) =>
    query({ dnssec: true, checkingDisabled, timeoutMs: work.leftMs() });
  const unchecked = outcome.kind === "failure" ? await ask(true) : outcome;
  const hasFailed = unchecked !== outcome && isDecisive(unchecked);
  const believed = hasFailed ? await ask(false) : outcome;
  const isFlaky = hasFailed && isDecisive(believed);
  const claim = claimOf(believed, unchecked);
  const { question, attempts } = outcome;
  const judge = async (reply: Reply | string) => {
    let isWhole = true;
    const found = await validate({
      ...{ name: question.name, type: question.type, anchors, unsignedZones, reply, work },
      async ask(name, type, timeoutMs) {
        const flags = { dnssec: true, checkingDisabled: true, isUnread: true, timeoutMs };
        const inner = replyOf(await dnsClient.query(name, type, { ...flags, signal, client }));
        isWhole &&= typeof inner !== "string";
        return inner;
      },
    });
    const isMissed = found.evidence === "missing" && isWhole && found.chain.length > 0;
    return isMissed && claim === "bogus" ? { ...found, verdict: claim } : found;
  };
  const later = (next: DnsOutcome) => ({ ...next, attempts: [...attempts, ...next.attempts] });
  const answer = isFlaky ? later(believed) : outcome;
  const isAnswer = unchecked === outcome || isFlaky;
  const first = await judge(isAnswer ? replyOf(answer) : replyOfBoth(outcome, unchecked));
  const isContradicted = first.verdict === "bogus" && first.evidence !== "missing";
  const again = isContradicted ? await ask(true) : outcome;
  const found = isContradicted ? await judge(replyOf(again)) : first;
  const isConfirmed = found.verdict === first.verdict;
  const shown = isConfirmed || !isAnswer || !isDecisive(again) ? answer : later(again);
  const { ttls, ...validation } = found;
  const { verdict, evidence } = found;
  const isMade = evidence === "missing" && translationsIn(dnsClient, shown).length > 0;
  const advice = isMade ? MADE : adviceOn(found);
  const remark = isFlaky
    ? "The resolver failed at first, and answered when it was asked again."
    : REMARKS[`${verdict} ${claim}`];
  const doubt = !isConfirmed && `Its first answer was bogus: ${first.text}`;
  const text = [found.text, doubt, advice, remark].filter(Boolean).join(" ");
  const extendedErrors = "extendedErrors" in believed ? believed.extendedErrors : [];
  // AD alone may come from anybody. Even with AD, the resolver's clock or its patience may differ from ours.
  const isValidator = claim === "bogus" || (verdict === "secure" && claim === "secure");
  const validates = isValidator || (verdict === "bogus" && claim === "none" ? false : null);
  return {
    outcome: verdict === "secure" ? cappedTtls(shown, ttls) : shown,
    dnssec: { ...validation, text, resolver: { name, claim, validates, extendedErrors } },
  };
}

/** True if the zone is at fault: no evidence is merely missing, and the chain of trust begins at the configured keys. */
export function isZoneAtFault({ verdict, evidence, chain }: DnssecDetails): boolean {
  const isOfZone = beginsAtAnchor(chain) && !isRootBogus(chain);
  return verdict === "bogus" && evidence !== "missing" && isOfZone;
}

const beginsAtAnchor = ([first]: DnssecDetails["chain"]) =>
  first?.keys.some(({ trusted }) => trusted) ?? false;

/** True if the root's own keys are not valid, as with a wrong clock: the root itself does not fail. */
const isRootBogus = ([first]: DnssecDetails["chain"]) =>
  first?.zone === "." && first.status === "bogus";

/** What to do about each kind of evidence. */
const ADVICE: Readonly<Record<Evidence, string>> = {
  signature: "The owner of the zone must sign it again, or correct its DS record.",
  denial: "The owner of the zone must sign it again, because its proofs do not fit its records.",
  missing: "Ask another resolver: this one, or what is before it, may drop signatures and proofs.",
  local: "If the zone belongs to your network, name it in SIXSCOPE_UNSIGNED_ZONES.",
  budget: "Try again, or ask another resolver.",
};

/** The advice where the resolver refuses an answer for its missing signature: a zone that is no longer signed may still have a DS record. */
const UNSIGNED =
  "The owner of the zone must sign it, or withdraw its DS record; if another resolver has its signatures, this one drops them.";

/** RFC 6147 section 3. */
const MADE =
  "The resolver makes the IPv6 addresses of IPv4 addresses (DNS64), so they have no signature.";

const CHECK_ANCHORS =
  "If the network has a root of its own, SIXSCOPE_TRUST_ANCHORS must have the keys of that.";

/** What to do about a verdict; undefined without a problem, and where nothing was checked. */
function adviceOn({ verdict, evidence, chain }: Omit<Validation, "ttls">): string | undefined {
  if (chain.length === 0 || evidence === null) return undefined;
  if (!beginsAtAnchor(chain) && evidence !== "budget") return CHECK_ANCHORS;
  if (verdict === "bogus" && evidence === "missing") return UNSIGNED;
  return isRootBogus(chain) ? undefined : ADVICE[evidence];
}

/** An outcome whose TTLs are at most what its signatures allow; RFC 4035 section 5.3.3. */
function cappedTtls(outcome: DnsOutcome, { hops, soa: soaTtl }: Validation["ttls"]): DnsOutcome {
  if (!("records" in outcome)) return outcome;
  const { records, soa } = outcome;
  const capped = (ttl: number, most = ttl) => Math.min(ttl, most);
  let [hop, last] = [0, ""];
  const kept = records.map((record) => {
    // The signatures of a set follow it.
    const isSignature = record.type === "RRSIG";
    if (!isSignature && last === "CNAME") hop += 1;
    if (!isSignature) last = record.type;
    return { ...record, ttl: capped(record.ttl, hops[hop]) };
  });
  const soaKept = soa && { soa: { ...soa, ttl: capped(soa.ttl, soaTtl) } };
  return { ...outcome, records: kept, ...soaKept };
}

/** The message of an outcome, or the reason why there is none. */
function replyOf(outcome: DnsOutcome): Reply | string {
  if (!("rcode" in outcome)) return outcome.kind;
  const { message, rcode } = outcome;
  return isDecisive(outcome) && message !== undefined ? { rcode, message } : rcode;
}

/** The reply to a question that was asked again without checking. */
function replyOfBoth(outcome: DnsOutcome, unchecked: DnsOutcome): Reply | string {
  const [first, second] = [replyOf(outcome), replyOf(unchecked)];
  if (typeof second !== "string") return second;
  const again = first === second ? "also" : `and ${second}`;
  return `${first}, ${again} when asked not to check (CD)`;
}

function claimOf(believed: DnsOutcome, unchecked: DnsOutcome): Claim {
  const isSecure = "authenticated" in believed && believed.authenticated;
  if (isDecisive(believed)) return isSecure ? "secure" : "none";
  return believed.kind === "failure" && isDecisive(unchecked) ? "bogus" : "no-answer";
}

/** Remarks by our verdict and the resolver's claim, where the claim differs from the verdict or adds to it. */
const REMARKS: Readonly<Partial<Record<`${Validation["verdict"]} ${Claim}`, string>>> = {
  "secure none":
    "The resolver does not claim that it is valid, so it does not validate, or does not tell.",
  "secure bogus":
    "The resolver refuses the answer, though; its clock or its trust anchors may be wrong.",
  "insecure secure":
    "The resolver claims that it has validated the answer: it accepts more than is accepted here, or has not done so.",
  "insecure bogus": "The resolver refuses the answer, though, as if it were bogus.",
  "indeterminate secure": "The resolver claims that it has validated the answer.",
  "indeterminate bogus": "The resolver refuses the answer, and gives it if it must not check.",
  "bogus secure": "The resolver claims that it has validated the answer; do not rely on that.",
  "bogus none": "The resolver passes the answer on, so it does not validate this name.",
  "bogus bogus": "The resolver refuses the answer, too.",
};
