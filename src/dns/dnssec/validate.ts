import { systemClock } from "../../util/clock.ts";
import { DnsFormatError, decodeName } from "../name.ts";
import { type RecordType, typeCode } from "../record.ts";
import {
  Chain,
  type ChainLink,
  type ChainOptions,
  type Problem,
  problem,
  type Reply,
  VERDICTS,
} from "./chain.ts";
import { LimitError, VERDICT_TIMEOUT_MS, Work } from "./limits.ts";
import { isWithin, labelsOf } from "./names.ts";
import { findSet, type RecordSet, type Sections, TYPE, tryReadSections } from "./record-set.ts";
import { isExpanded } from "./signature.ts";
import { durationText, nameText, setText, timeText } from "./wording.ts";

/** Aliases that are followed; the client follows no more. */
const MAX_ALIASES = 16;

/** A reply to check, and what is needed for that. */
export interface ValidateOptions
  extends Omit<ChainOptions, "work" | "now" | "clock" | "timeoutMs"> {
  /** The name that was asked for, in presentation form with the final dot. */
  readonly name: string;
  readonly type: RecordType;
  /** The reply, or why there is none. */
  readonly reply: Reply | string;
  /** Milliseconds since 1970. */
  readonly dateMs?: number;
  readonly clock?: ChainOptions["clock"];
  /** Milliseconds for all questions. */
  readonly timeoutMs?: number;
}

/** The verdict on a reply. */
export interface Validation {
  readonly verdict: (typeof VERDICTS)[number];
  /** One or two sentences: what was found, and where. */
  readonly text: string;
  /** Zones, each behind the one above it. */
  readonly chain: readonly ChainLink[];
}

/** Checks a reply from the trust anchor down; RFC 4035 section 5. */
export async function validate(options: ValidateOptions): Promise<Validation> {
  const {
    reply,
    clock = systemClock,
    dateMs = Date.now(),
    timeoutMs = VERDICT_TIMEOUT_MS,
  } = options;
  const now = Math.floor(dateMs / 1000);
  const chain = new Chain({ ...options, now, clock, timeoutMs, work: new Work() });
  const problems: Problem[] = [];
  let secure = "";
  try {
    const sections = typeof reply === "string" ? null : tryReadSections(reply.message);
    if (typeof reply === "string" || sections === null) {
      const why = typeof reply === "string" ? reply : "MALFORMED";
      problems.push(problem("indeterminate", `The resolver has no answer: ${why}.`));
    } else {
      const isNameError = reply.rcode === "NXDOMAIN";
      secure = await checkAnswer(chain, options, { ...sections, isNameError }, problems);
    }
  } catch (error) {
    if (error instanceof LimitError) problems.push(problem("indeterminate", error.message));
    else if (error instanceof DnsFormatError) {
      problems.push(
        problem("indeterminate", `The answer has a name that is not valid: ${error.message}.`),
      );
    } else throw error;
  }
  const rank = ({ status }: Problem) => VERDICTS.indexOf(status);
  const [worst] = problems.sort((a, b) => rank(b) - rank(a));
  return {
    verdict: worst?.status ?? "secure",
    text: worst?.text ?? `${secure} ${firstExpiry(chain.links, now)}`,
    chain: chain.links,
  };
}

/**
 * Checks the aliases of an answer, and what is at their end. Returns what is proven if there is no problem.
 *
 * @param problems gets what is not secure
 */
async function checkAnswer(
  chain: Chain,
  { name: asked, type }: Pick<ValidateOptions, "name" | "type">,
  { answers, authority, isNameError }: Sections & { readonly isNameError: boolean },
  problems: Problem[],
): Promise<string> {
  const code = typeCode(type);
  if (code === TYPE.RRSIG) {
    problems.push(
      problem("indeterminate", "Signatures are not signed themselves; ask for the records."),
    );
    return "";
  }
  const check = async (set: RecordSet) => {
    const checked = await chain.check(set);
    if (checked.status !== "secure") {
      problems.push(checked);
      return "";
    }
    if (isExpanded(set, checked.signature)) {
      const proven = await chain.expand(set, checked.signature, authority);
      if (proven.status !== "secure") problems.push(proven);
    }
    return nameText(checked.zone.link.zone);
  };
  let name = asked.toLowerCase();
  for (let aliases = 0; aliases <= MAX_ALIASES; aliases++) {
    const set = findSet(answers, name, code);
    if (set !== undefined) {
      if (isNameError) {
        const text = `The answer has ${setText(set)}, and says that there is no such name.`;
        problems.push(problem("bogus", text));
      }
      return `${await check(set)} signs ${setText(set)}, and every signature from ${anchorText(chain, name)} down is valid.`;
    }
    const alias = findAlias(answers, name);
    if (alias === null) break;
    await check(alias.set);
    if (alias.problem !== null) problems.push(alias.problem);
    name = alias.target;
  }
  const isMoved = name !== asked.toLowerCase();
  if (isMoved && authority.length === 0) {
    problems.push(
      problem("indeterminate", `The answer ends at ${nameText(name)}, to which an alias leads.`),
    );
    return "";
  }
  const what = isNameError ? "does not exist" : `has no ${type} record`;
  const proven =
    (await chain.deny({ name, type: code, isNameError }, authority)) ??
    (await chain.explainUnsigned(`The answer that ${nameText(name)} ${what}`, name));
  if (proven.status === "secure") {
    return `${nameText(proven.zone.link.zone)} proves that ${nameText(name)} ${what}, and every signature from ${anchorText(chain, name)} down is valid.`;
  }
  problems.push(proven);
  return "";
}

/** The alias that leads away from a name: a CNAME record, or a DNAME record above it; RFC 6672. */
function findAlias(answers: readonly RecordSet[], name: string) {
  const cname = findSet(answers, name, TYPE.CNAME);
  const target = cname?.data[0] && decodeName(cname.data[0]);
  const dname = answers.find(
    (set) => set.type === TYPE.DNAME && set.name !== name && isWithin(name, set.name),
  );
  if (dname === undefined) {
    return cname === undefined || target === undefined
      ? null
      : { set: cname, target, problem: null };
  }
  const end = labelsOf(decodeName(dname.data[0] as Uint8Array));
  const moved = labelsOf(name).slice(0, -labelsOf(dname.name).length || undefined);
  const expected = `${[...moved, ...end].join(".")}.`;
  const isOther = target !== undefined && target !== expected;
  const text = `The CNAME record of ${nameText(name)} is not the one that the DNAME record of ${nameText(dname.name)} makes.`;
  return { set: dname, target: expected, problem: isOther ? problem("bogus", text) : null };
}

function anchorText(chain: Chain, name: string): string {
  return nameText(chain.anchorOf(name) ?? ".");
}

/** Which signature of a valid chain expires first. */
function firstExpiry(links: readonly ChainLink[], now: number): string {
  const sets = links.flatMap((link) => link.sets);
  const ends = sets.flatMap(({ name, type, signature }) =>
    signature === undefined ? [] : [{ name, type, end: Date.parse(signature.expires) / 1000 }],
  );
  const [first] = ends.sort((a, b) => a.end - b.end);
  if (first === undefined) return "";
  const { name, type, end } = first;
  return `The first to expire is that of ${nameText(name)} ${type}, in ${durationText(end - now)} (${timeText(end)}).`;
}
