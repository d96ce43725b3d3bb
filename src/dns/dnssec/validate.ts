import { attempt } from "../../util/errors.ts";
import { decodeName } from "../message/name.ts";
import type { RecordType } from "../message/record.ts";
import { Chain, type ChainOptions } from "./chain.ts";
import { isWithin, labelsOf, type NameAndType } from "./names.ts";
import { notesOn } from "./notes.ts";
import { Problem, problemOf, VERDICTS } from "./problem.ts";
import { type Answer, findSet, type RecordSet, type Reply, readReply } from "./record-set.ts";
import { nameText, setText } from "./wording.ts";

/** Aliases that are followed. */
const MAX_ALIASES = 16;

/** A reply to check, and the inputs of its chain of trust. */
export interface ValidateOptions extends Omit<ChainOptions, "now"> {
  /** The name that was asked for, in presentation form with the final dot. */
  readonly name: string;
  readonly type: RecordType;
  /** The reply, or why there is none. */
  readonly reply: Reply | string;
  /** Milliseconds since 1970. */
  readonly dateMs?: number;
}

/** The verdict on a reply. */
export type Validation = Awaited<ReturnType<typeof validate>>;

/** Checks a reply from the trust anchor down; RFC 4035 section 5. The worst problem decides the verdict. */
export async function validate({ dateMs = Date.now(), ...options }: ValidateOptions) {
  const now = Math.floor(dateMs / 1000);
  const chain = new Chain({ ...options, now });
  const problems: Problem[] = [];
  let secure = "";
  let end = { name: options.name, type: options.type };
  /**
   * Seconds that the signatures of a secure answer let its records be cached: `hops` are the aliases in order, then the
   * records at the end. Undefined for records that are not there.
   */
  let ttls: { hops: readonly (number | undefined)[]; soa?: number | undefined } = { hops: [] };
  try {
    const answer = readReply(options.reply, options.type, options.work);
    const { aliases, ...last } = followAliases(answer, options);
    const isAlias = aliases.length > 0;
    end = last;
    // An alias and its end may be in different zones. A problem of the end is found when the end is checked.
    if (isAlias) attempt(() => chain.askAhead(last.name), Problem);
    for (const alias of aliases) {
      await chain.check(alias, answer.authority).catch((error) => problems.push(problemOf(error)));
    }
    secure = await checkEnd(chain, answer, { ...end, isAlias });
    const sets = [...aliases, findSet(answer.answers, end.name, end.type)];
    const soa = answer.authority.find((set) => set.type === "SOA");
    ttls = { hops: sets.map((set) => set?.ttl), soa: soa?.ttl };
  } catch (error) {
    problems.push(problemOf(error));
  }
  const notes = notesOn(chain.zones, end, now);
  const rank = ({ verdict }: Problem) => VERDICTS.indexOf(verdict);
  const [worst] = problems.sort((a, b) => rank(b) - rank(a));
  const verdict: (typeof VERDICTS)[number] = worst?.verdict ?? "secure";
  /** One or two sentences about the finding and its place. */
  const text = worst?.message ?? `${secure} ${notes[0]?.text}`;
  const links = chain.zones.map(({ link }) => link);
  return { verdict, evidence: worst?.evidence ?? null, text, notes, chain: links, ttls };
}

/**
 * Follows the aliases of an answer: CNAME records, and DNAME records above the name, from which servers synthesize
 * unsigned CNAME records; RFC 6672. Returns the sets, and the name and type that they lead to.
 */
function followAliases({ answers, isNameError }: Answer, { name: asked, type }: NameAndType) {
  const aliases: RecordSet[] = [];
  for (let name = asked.toLowerCase(); ; ) {
    const isAbove = (set: RecordSet) => set.name !== name && isWithin(name, set.name);
    const dname = answers.find((set) => set.type === "DNAME" && isAbove(set));
    const cname = findSet(answers, name, "CNAME");
    const isEnd = findSet(answers, name, type) && !(dname && type === "CNAME");
    const [data, ...more] = cname?.data ?? [];
    if (isEnd || !cname || !data) return { aliases, name, type };
    if (more.length > 0) throw Problem.missing`${setText(cname)} leads to several names.`;
    if (aliases.length === MAX_ALIASES) {
      throw Problem.budget`The answer has more than ${MAX_ALIASES} aliases.`;
    }
    const target = decodeName(data);
    const [to] = dname?.data ?? [];
    if (dname && to) {
      const moved = labelsOf(name).slice(0, -labelsOf(dname.name).length || undefined);
      if (target !== `${[...moved, ...labelsOf(decodeName(to))].join(".")}.`) {
        throw Problem.denial`The CNAME record of ${nameText(name)} is not the one that the DNAME record of ${nameText(dname.name)} makes.`;
      }
      // A question for CNAME is answered by the synthesized record, unless the answer goes on behind it.
      if (type === "CNAME" && !isNameError) return { aliases, name: dname.name, type: dname.type };
    }
    aliases.push(dname ?? cname);
    name = target;
  }
}

/** Checks the answer at the end of its aliases. Returns a clause about the proof, or throws a Problem. */
async function checkEnd(
  chain: Chain,
  { answers, authority, isNameError }: Answer,
  { name, type, isAlias }: NameAndType & { readonly isAlias: boolean },
): Promise<string> {
  if (type === "RRSIG") {
    throw Problem.missing`Signatures are not signed themselves; ask for the records.`;
  }
  const set = findSet(answers, name, type);
  if (set !== undefined && isNameError) {
    throw Problem.denial`The answer has ${setText(set)}, and says that there is no such name.`;
  }
  // The same as `incomplete` of the client.
  const isDenied = isNameError || authority.some((other) => other.type === "SOA");
  if (set === undefined && isAlias && !isDenied) {
    throw Problem.missing`The answer ends at ${nameText(name)}, to which an alias leads.`;
  }
  const valid = (signer: string) =>
    `every signature from ${nameText(chain.anchorOf(signer))} down is valid.`;
  if (set !== undefined) {
    const signer = await chain.check(set, authority);
    return `${nameText(signer)} signs ${setText(set)}, and ${valid(signer)}`;
  }
  const denial = `${nameText(name)} ${isNameError ? "does not exist" : `has no ${type} record`}`;
  const proven = await chain.deny({ name, type, isNameError }, authority);
  if (!proven) {
    throw await chain.explainUnsigned(`The answer that ${denial}`, name, isNameError);
  }
  const { zone } = proven.zone.link;
  return `${nameText(zone)} proves that ${denial}, and ${valid(zone)}`;
}
