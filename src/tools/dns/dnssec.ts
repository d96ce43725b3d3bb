import type { Call } from "../../api/endpoint.ts";
import type { DnsClient, QueryOptions } from "../../dns/client.ts";
import { translationsIn } from "../../dns/dns64.ts";
import type { TrustAnchor } from "../../dns/dnssec/chain.ts";
import { createWork } from "../../dns/dnssec/limits.ts";
import type { Reply } from "../../dns/dnssec/record-set.ts";
import { type Validation, validate } from "../../dns/dnssec/validate.ts";
import { type DnsOutcome, isDecisive } from "../../dns/outcome.ts";
import type { DnssecDetails } from "./result.ts";

type Claim = DnssecDetails["resolver"]["claim"];

/** How a reply is checked. */
interface Check extends Pick<Call, "signal" | "client"> {
  /** The resolver that sent it. */
  readonly name: DnssecDetails["resolver"]["name"];
  readonly dnsClient: DnsClient;
  readonly anchors: readonly TrustAnchor[];
  /** Asks the question of the reply once more. */
  query(options: QueryOptions): Promise<DnsOutcome>;
}

/**
 * Our own verdict on a reply, and what its resolver claims. A resolver that fails is asked not to check; if
 * it answers then, it is asked again as before, because a server that fails once says nothing of the zone.
 * The outcome is that of the second time if it is an answer.
 */
export async function checkDnssec(
  outcome: DnsOutcome,
  { name, dnsClient, anchors, signal, client, query }: Check,
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
  const shown = isFlaky ? { ...believed, attempts: [...attempts, ...believed.attempts] } : outcome;
  const found = await validate({
    ...{ name: question.name, type: question.type, anchors },
    reply: unchecked === outcome || isFlaky ? replyOf(shown) : replyOfBoth(outcome, unchecked),
    work,
    async ask(name, type, timeoutMs) {
      const flags = { dnssec: true, checkingDisabled: true, timeoutMs, signal, client };
      return replyOf(await dnsClient.query(name, type, flags));
    },
  });
  const isFaulty = found.chain.some((link) => link.fault ?? link.sets.some(({ fault }) => fault));
  const isMade = found.verdict === "bogus" && translationsIn(dnsClient, shown).length > 0;
  const validation = isMade && !isFaulty ? { ...found, ...MADE } : found;
  const { verdict } = validation;
  const remark = isFlaky
    ? "The resolver failed at first, and answered when it was asked again."
    : REMARKS[verdict][claim];
  const extendedErrors = "extendedErrors" in believed ? believed.extendedErrors : [];
  return {
    outcome: shown,
    dnssec: {
      ...validation,
      text: [validation.text, remark].filter(Boolean).join(" "),
      resolver: { name, claim, validates: validates(verdict, claim), extendedErrors },
    },
  };
}

/** The verdict on addresses that a resolver makes, where nothing else is wrong; RFC 6147 section 3. */
const MADE = {
  verdict: "indeterminate",
  text: "The resolver makes the IPv6 addresses of IPv4 addresses (DNS64), so they have no signature.",
} as const;

/** The message of an outcome, or why there is none. */
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
  if (isDecisive(believed)) {
    return "authenticated" in believed && believed.authenticated ? "secure" : "none";
  }
  return believed.kind === "failure" && isDecisive(unchecked) ? "bogus" : "no-answer";
}

/** Where a claim differs from the verdict, or is not known from it. */
const REMARKS: Readonly<Record<Validation["verdict"], Readonly<Partial<Record<Claim, string>>>>> = {
  secure: {
    none: "The resolver does not claim that it is valid, so it does not validate, or does not tell.",
    bogus: "The resolver refuses the answer, though; its clock or its trust anchors may be wrong.",
  },
  insecure: {
    secure:
      "The resolver claims that it has validated the answer: it accepts more than is accepted here, or has not done so.",
    bogus: "The resolver refuses the answer, though, as if it were bogus.",
  },
  indeterminate: {
    secure: "The resolver claims that it has validated the answer.",
    bogus: "The resolver refuses the answer, and gives it if it must not check.",
  },
  bogus: {
    secure: "The resolver claims that it has validated the answer; do not rely on that.",
    none: "The resolver passes the answer on, so it does not validate this name.",
    bogus: "The resolver refuses the answer, too.",
  },
};

/** True if a resolver validates the name, null if its claim does not show it; AD alone may come from anybody. */
function validates(verdict: Validation["verdict"], claim: Claim): boolean | null {
  if (claim === "bogus" || (verdict === "secure" && claim === "secure")) return true;
  // With AD, its clock or its patience may be another.
  return verdict === "bogus" && claim === "none" ? false : null;
}
