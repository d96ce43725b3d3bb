import { OutOfBoundsError } from "../../util/bytes.ts";
import type { Clock } from "../../util/clock.ts";
import { DnsFormatError } from "../name.ts";
import { typeName } from "../record.ts";
import { type Denial, type Denials, type ProofStep, prove, proveExpansion } from "./denial.ts";
import {
  algorithmName,
  digestName,
  isDigestOf,
  isUsableDigest,
  type Key,
  type KeyDigest,
  tryParseKey,
  tryParseKeyDigest,
} from "./key.ts";
import {
  MAX_DIGESTS,
  MAX_ITERATIONS,
  MAX_SIGNATURES,
  VERDICT_TIMEOUT_MS,
  type Work,
} from "./limits.ts";
import { isWithin, labelsOf, parentOf } from "./names.ts";
import { readNsec } from "./nsec.ts";
import { readNsec3 } from "./nsec3.ts";
import { findSet, type RecordSet, type Sections, TYPE, tryReadSections } from "./record-set.ts";
import { findFault, isExpanded, validityOf } from "./signature.ts";
import type { Signature } from "./signature-record.ts";
import { isoText, nameText, setText } from "./wording.ts";

/** The verdicts of validation, RFC 4033 section 5, the worst last. */
export const VERDICTS = ["secure", "insecure", "indeterminate", "bogus"] as const;

/** A key that is trusted without proof. */
export interface TrustAnchor extends KeyDigest {
  readonly zone: string;
}

/** A reply of the resolver. */
export interface Reply {
  readonly rcode: string;
  /** The message. */
  readonly message: Uint8Array;
}

/** Asks the resolver, with DO and CD. Returns why there is no reply if there is none. */
export type Ask = (
  name: string,
  type: "DS" | "DNSKEY",
  timeoutMs: number,
) => Promise<Reply | string>;

/** Why something is not secure. */
export interface Problem {
  readonly status: Exclude<(typeof VERDICTS)[number], "secure">;
  /** A sentence. */
  readonly text: string;
}

/** A zone as documents show it: how it is trusted, and what its keys signed. */
export interface ChainLink {
  readonly zone: string;
  status: (typeof VERDICTS)[number];
  fault?: string;
  readonly ds: { keyTag: number; algorithm: string; digest: string }[];
  readonly keys: { keyTag: number; algorithm: string; trusted: boolean }[];
  readonly sets: CheckedSet[];
}

/** A record set, or a proof that there is none, and the signature that counts. */
export interface CheckedSet {
  readonly name: string;
  readonly type: string;
  readonly signature?: ShownSignature;
  readonly proof?: readonly ProofStep[];
  readonly fault?: string;
}

interface ShownSignature {
  readonly keyTag: number;
  readonly algorithm: string;
  readonly inception: string;
  readonly expires: string;
  readonly daysLeft: number;
}

/** A zone whose keys are trusted. */
interface SecureZone {
  readonly status: "secure";
  readonly keys: readonly Key[];
  readonly link: ChainLink;
}

interface Signed {
  readonly status: "secure";
  readonly zone: SecureZone;
  readonly signature: Signature;
}

interface Proven {
  readonly status: "secure";
  readonly zone: SecureZone;
  readonly isDelegation: boolean;
}

/** A name and a type that an answer says do not exist. */
interface Denied {
  readonly name: string;
  readonly type: number;
  readonly isNameError: boolean;
}

type Answer = Sections & { readonly isNameError: boolean };

/** The parts of the world that a chain of trust needs. */
export interface ChainOptions {
  readonly ask: Ask;
  readonly anchors: readonly TrustAnchor[];
  /** Seconds since 1970. */
  readonly now: number;
  readonly clock: Pick<Clock, "nowMs">;
  /** Milliseconds for all questions. */
  readonly timeoutMs: number;
  readonly work: Work;
}

const SECONDS_A_DAY = 86_400;

/** The first signature of all is the least likely to be wrong. */
const CHECK_CLOCK = "If other zones have such faults too, the clock of this machine is wrong.";

/**
 * The chains of trust of one answer: which zones are signed, from the trust anchor on (RFC 4035 section
 * 5). It begins at the zone that signed and goes up, because a signature names its zone, and cuts between
 * zones need not be searched for.
 */
export class Chain {
  /** The zones that were looked at, each behind the one above it. */
  readonly links: ChainLink[] = [];
  readonly #options: ChainOptions;
  readonly #deadlineMs: number;
  readonly #zones = new Map<string, Promise<SecureZone | Problem>>();
  readonly #answers = new Map<string, Promise<Answer | Problem>>();

  constructor(options: ChainOptions) {
    this.#options = options;
    this.#deadlineMs = options.clock.nowMs() + options.timeoutMs;
  }

  /** The closest zone at or above a name that has a trust anchor; undefined if there is none. */
  anchorOf(name: string): string | undefined {
    const zones = this.#options.anchors.map(({ zone }) => zone);
    return zones
      .filter((zone) => isWithin(name, zone))
      .sort((a, b) => labelsOf(b).length - labelsOf(a).length)[0];
  }

  /** Checks the signatures of a record set; RFC 4035 section 5.3. */
  async check(set: RecordSet): Promise<Signed | Problem> {
    if (this.anchorOf(set.name) === undefined) return this.#withoutAnchor(set.name);
    if (set.signatures.length === 0) {
      return this.explainUnsigned(
        setText(set),
        set.type === TYPE.DS ? parentOf(set.name) : set.name,
      );
    }
    const signers = this.#signersOf(set.signatures, set);
    let problem: Problem | null = null;
    for (const signer of signers) {
      const zone = await this.#zone(signer);
      const checked = zone.status === "secure" ? this.#checkBy(zone, set) : zone;
      if (checked.status === "secure") return checked;
      problem ??= checked;
    }
    const others = [...new Set(set.signatures.map(({ signer }) => nameText(signer)))].join();
    return (
      problem ?? bogus(`The signature of ${setText(set)} is by ${others}, which is not its zone.`)
    );
  }

  /**
   * Checks the proof of a negative answer; null if it has no signed NSEC or NSEC3 record. A proof of
   * RFC 5155's opt-out is insecure.
   */
  async deny(denied: Denied, authority: readonly RecordSet[]): Promise<Proven | Problem | null> {
    const { name, type } = denied;
    return this.#prove(
      denied,
      authority,
      (denials) => prove(denials, denied),
      (zone) =>
        type === TYPE.DS
          ? `${nameText(name)} counts as not signed: ${zone} has no DS record for it, and opts out of proving so.`
          : `${nameText(name)} is in a part of ${zone} that opts out of proofs, so a zone that is not signed may have it.`,
    );
  }

  /** Checks the proof that a wildcard matches a name. */
  async expand(set: RecordSet, { labels, signer }: Signature, authority: readonly RecordSet[]) {
    const { name, type } = set;
    const proven = await this.#prove(
      { name, type, signer },
      authority,
      (denials) => proveExpansion(denials, name, labels),
      (zone) =>
        `${nameText(name)} is from a wildcard, and ${zone} opts out of proving that nothing else has the name.`,
    );
    return (
      proven ??
      bogus(`${setText(set)} is from a wildcard, without a proof that it may match this name.`)
    );
  }

  /**
   * Finds out why something has no signature: a zone above it proves that the next one is not signed, or
   * it should have one.
   *
   * @param what is not signed, the subject of a sentence
   * @param name of the records
   * @param unproven a zone between that has no proof of being signed or not
   */
  async explainUnsigned(what: string, name: string, unproven?: string): Promise<Problem> {
    let at = name;
    let apex: string | undefined;
    let open = unproven;
    for (;;) {
      const anchor = this.anchorOf(at);
      if (anchor === undefined) return this.#withoutAnchor(at);
      const answer = anchor === at ? null : await this.#ask(at, "DS");
      if (answer !== null && "status" in answer) return answer;
      if (answer === null || findSet(answer.answers, at, TYPE.DS)) {
        const zone = await this.#zone(at);
        return zone.status === "secure" ? bogus(unsignedText(what, at, open)) : zone;
      }
      // The rest of such an answer is about another name.
      const isAlias = findSet(answer.answers, at, TYPE.CNAME) !== undefined;
      const proven = isAlias ? null : await this.#denyDs(at, answer);
      if (proven !== null) {
        return proven.status === "secure"
          ? bogus(unsignedText(what, proven.zone.link.zone))
          : proven;
      }
      if (apex === at) open = at;
      // Only a hint: what counts is a proof, which is signed.
      const soa = answer.authority.find(({ type }) => type === TYPE.SOA)?.name ?? at;
      apex = !isAlias && soa !== at && isWithin(at, soa) ? soa : undefined;
      at = apex ?? parentOf(at);
    }
  }

  /** The keys of a zone, if a chain of trust leads to it. */
  #zone(name: string): Promise<SecureZone | Problem> {
    const known = this.#zones.get(name) ?? this.#findZone(name);
    this.#zones.set(name, known);
    return known;
  }

  async #findZone(name: string): Promise<SecureZone | Problem> {
    const anchor = this.anchorOf(name);
    if (anchor === undefined) return this.#withoutAnchor(name);
    if (anchor === name) {
      return this.#openZone(
        name,
        this.#options.anchors.filter(({ zone }) => zone === name),
      );
    }
    const answer = await this.#ask(name, "DS");
    if ("status" in answer) return answer;
    const set = findSet(answer.answers, name, TYPE.DS);
    if (set !== undefined) {
      const checked = await this.check(set);
      if (checked.status !== "secure") return checked;
      return this.#openZone(
        name,
        set.data.flatMap((data) => tryParseKeyDigest(data) ?? []),
      );
    }
    const proven = await this.#denyDs(name, answer);
    if (proven === null) return this.explainUnsigned(`${nameText(name)} DS`, parentOf(name), name);
    if (proven.status !== "secure") return proven;
    return bogus(
      `${nameText(proven.zone.link.zone)} proves that ${nameText(name)}, which signs, is not a zone.`,
    );
  }

  /** Checks that a name has no DS record. Insecure if it is a zone. */
  async #denyDs(
    name: string,
    { authority, isNameError }: Answer,
  ): Promise<Proven | Problem | null> {
    const proven = await this.deny({ name, type: TYPE.DS, isNameError }, authority);
    if (proven?.status !== "secure" || !proven.isDelegation) return proven;
    const parent = nameText(proven.zone.link.zone);
    return problem(
      "insecure",
      `${nameText(name)} counts as not signed: ${parent} proves that it has no DS record.`,
    );
  }

  /** Checks the keys of a zone; RFC 4035 section 5.2. */
  async #openZone(name: string, digests: readonly KeyDigest[]): Promise<SecureZone | Problem> {
    const link: ChainLink = { zone: name, status: "secure", ds: [], keys: [], sets: [] };
    for (const { tag, algorithm, digestType } of digests.slice(0, MAX_DIGESTS)) {
      const digest = digestName(digestType);
      link.ds.push({ keyTag: tag, algorithm: algorithmName(algorithm), digest });
    }
    this.links.push(link);
    const found = await this.#findKeys(link, digests.slice(0, MAX_DIGESTS));
    if (!("status" in found)) return { status: "secure", keys: found, link };
    link.status = found.status;
    link.fault = found.text;
    return found;
  }

  async #findKeys(
    link: ChainLink,
    digests: readonly KeyDigest[],
  ): Promise<readonly Key[] | Problem> {
    const { zone } = link;
    const isAnchor = this.anchorOf(zone) === zone;
    const from = isAnchor ? "trust anchor" : "DS record";
    const usable = digests.filter(isUsableDigest);
    if (usable.length === 0) {
      const kinds = new Set(link.ds.map(({ algorithm, digest }) => `${algorithm} with ${digest}`));
      const text = `Each ${from} of ${nameText(zone)} is of a kind that is not used here (${[...kinds].join(", ")})`;
      return isAnchor
        ? problem("indeterminate", `${text}.`)
        : problem("insecure", `${text}, so it counts as not signed (RFC 4035 section 5.2).`);
    }
    const answer = await this.#ask(zone, "DNSKEY");
    if ("status" in answer) return answer;
    const set = findSet(answer.answers, zone, TYPE.DNSKEY);
    if (set === undefined) return bogus(`${nameText(zone)} has a ${from} and no DNSKEY record.`);
    if (set.signatures.length === 0) {
      return isAnchor
        ? problem(
            "indeterminate",
            "The resolver does not pass signatures on, so nothing can be checked through it.",
          )
        : bogus(`${setText(set)} has no signature.`);
    }
    const keys = set.data.flatMap((data) => tryParseKey(data) ?? []);
    const trusted = keys.filter(
      (key) => key.isUsable && usable.some((digest) => isDigestOf(digest, zone, key)),
    );
    for (const key of keys) {
      const { tag: keyTag, algorithm } = key;
      link.keys.push({
        keyTag,
        algorithm: algorithmName(algorithm),
        trusted: trusted.includes(key),
      });
    }
    if (trusted.length === 0) {
      const tags = usable.map(({ tag }) => tag).join(", ");
      return bogus(`No key of ${nameText(zone)} matches its ${from} (key tag ${tags}).`);
    }
    const checked = this.#checkBy({ status: "secure", keys: trusted, link }, set);
    if (checked.status === "secure") return keys;
    const isTime = isAnchor && /expired|only in/.test(checked.text);
    return isTime ? problem(checked.status, `${checked.text} ${CHECK_CLOCK}`) : checked;
  }

  /** Checks the signatures of a set by the keys of a zone. @param isShown false for parts of a proof */
  #checkBy(zone: SecureZone, set: RecordSet, isShown = true): Signed | Problem {
    const { now, work } = this.#options;
    const { link, keys } = zone;
    const all = set.signatures.filter(({ signer }) => signer === link.zone);
    const faults = [];
    const show = (signature: Signature, fault?: string) => {
      const shown = { name: set.name, type: typeName(set.type), signature: this.#shown(signature) };
      if (isShown) link.sets.push({ ...shown, ...(fault && { fault }) });
    };
    for (const signature of all.slice(0, MAX_SIGNATURES)) {
      const fault = findFault(set, signature, keys, now, work);
      if (fault === null) {
        show(signature);
        return { status: "secure", zone, signature };
      }
      faults.push({ ...fault, signature });
    }
    const [worst] = faults.sort((a, b) => b.weight - a.weight);
    if (worst === undefined)
      return bogus(`${setText(set)} has no signature by ${nameText(link.zone)}.`);
    show(worst.signature, worst.text);
    if (all.length <= MAX_SIGNATURES) return problem(worst.status, worst.text);
    const tried = `${setText(set)} has ${all.length} signatures, and the first ${MAX_SIGNATURES} are not valid.`;
    return problem("indeterminate", `${tried} ${worst.text}`);
  }

  /** Checks records of a proof, and what they prove. */
  async #prove(
    {
      name,
      type,
      signer,
    }: { readonly name: string; readonly type: number; readonly signer?: string },
    authority: readonly RecordSet[],
    read: (denials: Denials) => Denial,
    optOutText: (zone: string) => string,
  ): Promise<Proven | Problem | null> {
    const signersOf = ({ signatures }: RecordSet) => this.#signersOf(signatures, { name, type });
    const ofType = (type: number) =>
      authority.filter((set) => set.type === type && signersOf(set).length > 0);
    const isHashed = ofType(TYPE.NSEC).length === 0;
    const sets = ofType(isHashed ? TYPE.NSEC3 : TYPE.NSEC);
    const [by = null] = sets.slice(0, 1).flatMap(signersOf);
    if (by === null || (signer !== undefined && signer !== by)) return null;
    const zone = await this.#zone(by);
    if (zone.status !== "secure") return zone;
    const signatures: Signature[] = [];
    const soa = authority.filter((set) => set.type === TYPE.SOA && set.name === by);
    for (const set of [...sets, ...soa]) {
      const checked = this.#checkBy(zone, set, false);
      const fault =
        checked.status === "secure" && isExpanded(set, checked.signature)
          ? bogus(`${setText(set)} is from a wildcard, which proves nothing.`)
          : checked;
      if (fault.status !== "secure") {
        zone.link.sets.push({ name, type: typeName(type), fault: fault.text });
        return fault;
      }
      signatures.push(fault.signature);
    }
    const denials = readDenials(isHashed, sets, by, this.#options.work);
    if ("status" in denials) return denials;
    const denial = read(denials);
    const expiry = (each: Signature) => validityOf(each, this.#options.now).expires;
    const [first] = signatures.sort((a, b) => expiry(a) - expiry(b));
    zone.link.sets.push({
      ...{ name, type: typeName(type) },
      ...(first && { signature: this.#shown(first) }),
      ...(denial.isProven ? { proof: denial.steps } : { fault: denial.text }),
    });
    if (!denial.isProven) return bogus(denial.text);
    const { isOptOut, isDelegation } = denial;
    if (isOptOut) return problem("insecure", optOutText(nameText(by)));
    return { status: "secure", zone, isDelegation };
  }

  /** The zones that may have signed records: at or above their name, and not above its trust anchor. */
  #signersOf(signatures: readonly Signature[], { name, type }: Pick<RecordSet, "name" | "type">) {
    const anchor = this.anchorOf(name);
    const signers = new Set(signatures.slice(0, MAX_SIGNATURES).map(({ signer }) => signer));
    return [...signers].filter((signer) => {
      // A zone's DS records are its parent's.
      if (type === TYPE.DS && signer === name && name !== ".") return false;
      return isWithin(name, signer) && (anchor === undefined || isWithin(signer, anchor));
    });
  }

  /** Asks once for a record set that the chain needs. */
  #ask(name: string, type: "DS" | "DNSKEY"): Promise<Answer | Problem> {
    const question = `${name} ${type}`;
    const answer = this.#answers.get(question) ?? this.#askNow(name, type);
    this.#answers.set(question, answer);
    return answer;
  }

  async #askNow(name: string, type: "DS" | "DNSKEY"): Promise<Answer | Problem> {
    const { ask, clock, work } = this.#options;
    work.spend("questions");
    const leftMs = this.#deadlineMs - clock.nowMs();
    if (leftMs <= 0) {
      return problem(
        "indeterminate",
        `The check ended after ${VERDICT_TIMEOUT_MS / 1000} seconds.`,
      );
    }
    const reply = await ask(name, type, leftMs);
    const answer = typeof reply === "string" ? null : tryReadSections(reply.message);
    if (typeof reply !== "string" && answer !== null) {
      return { ...answer, isNameError: reply.rcode === "NXDOMAIN" };
    }
    const why = typeof reply === "string" ? reply : "MALFORMED";
    return problem(
      "indeterminate",
      `The resolver has no answer for ${nameText(name)} ${type}: ${why}.`,
    );
  }

  #withoutAnchor(name: string): Problem {
    return problem("indeterminate", `No trust anchor is at or above ${nameText(name)}.`);
  }

  #shown(signature: Signature): ShownSignature {
    const { now } = this.#options;
    const { inception, expires } = validityOf(signature, now);
    return {
      keyTag: signature.keyTag,
      algorithm: algorithmName(signature.algorithm),
      inception: isoText(inception),
      expires: isoText(expires),
      daysLeft: Math.floor((10 * (expires - now)) / SECONDS_A_DAY) / 10,
    };
  }
}

function readDenials(
  isHashed: boolean,
  sets: readonly RecordSet[],
  zone: string,
  work: Work,
): Denials | Problem {
  try {
    const denials = isHashed ? readNsec3(sets, zone, work) : readNsec(sets);
    if (typeof denials !== "number") return denials;
    const text = `${nameText(zone)} hashes names with ${denials} iterations of NSEC3; a zone with more than ${MAX_ITERATIONS} counts as not signed (RFC 9276).`;
    return problem("insecure", text);
  } catch (error) {
    if (!(error instanceof OutOfBoundsError || error instanceof DnsFormatError)) throw error;
    return bogus(`The proof of ${nameText(zone)} is malformed.`);
  }
}

function unsignedText(what: string, signed: string, unproven?: string): string {
  const zone = nameText(signed);
  return unproven === undefined
    ? `${what} has no signature, though ${zone} is signed.`
    : `${what} has no signature, though ${zone} is signed and does not prove that ${nameText(unproven)} is not.`;
}

/** Something is not secure. */
export function problem(status: Problem["status"], text: string): Problem {
  return { status, text };
}

function bogus(text: string): Problem {
  return { status: "bogus", text };
}
