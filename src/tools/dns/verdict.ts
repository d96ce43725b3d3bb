import type { ResolverName } from "../../config/settings.ts";
import { blockReason, staleReason } from "../../dns/message/codes.ts";
import { withoutFinalDot } from "../../dns/message/name.ts";
import { plural } from "../../util/text.ts";
import { type Compared, comparisonText } from "./comparison.ts";
import type { DnsResult } from "./result.ts";

/** The conclusion, from the records of a resolver, and what its details say of them and of the other resolvers. */
export function dnsVerdict(
  resolver: ResolverName,
  records: DnsResult["records"],
  said: Pick<DnsResult["details"], "question" | "incomplete" | "dnssec" | "extendedErrors"> &
    Partial<Compared>,
) {
  const { extendedErrors = [], resolvers } = said;
  const { type } = said.question;
  const name = said.question.name === "." ? "the root" : withoutFinalDot(said.question.name);
  const asked = records.filter((record) => record.type === type).length;
  const code = asked > 0 ? "answer" : said.incomplete ? "incomplete" : "no-data";
  const blocked = blockReason(extendedErrors);
  const isOld = staleReason(extendedErrors) !== undefined;
  const sentences = [
    code === "answer" && `${resolver} has ${plural(asked, `${type} record`)} for ${name}.`,
    code === "no-data" &&
      !blocked &&
      `${resolver} says that ${name} exists and has no ${type} record.`,
    code === "incomplete" &&
      `${resolver} follows the CNAME chain of ${name} only so far; its end may have ${type} records.`,
    // With several resolvers, the comparison says it of each.
    blocked && !resolvers && `${resolver} blocks this name, as it says (${blocked}).`,
    isOld && !resolvers && `The answer is old, because ${resolver} could not get a new one.`,
    said.dnssec && `DNSSEC: ${said.dnssec.verdict}.`,
    comparisonText(said),
  ];
  return { code, text: sentences.filter(Boolean).join(" ") } as const;
}
