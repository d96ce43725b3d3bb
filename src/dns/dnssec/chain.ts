import { algorithmName } from "../message/codes.ts";
import { type Claim, type Denials, type Proof, prove } from "./denial.ts";
import {
  canVerify,
  digestName,
  isDigestOf,
  isUsableDigest,
  type Key,
  type KeyDigest,
  tryParseKey,
  tryParseKeyDigest,
} from "./key.ts";
import { MAX, type Work } from "./limits.ts";
import { isWithin, labelsOf, type NameAndType, parentOf } from "./names.ts";
import { readNsec } from "./nsec.ts";
import { readNsec3 } from "./nsec3.ts";
import { Problem, problemOf } from "./problem.ts";
import { findSet, type RecordSet, type Reply, readReply, type Signature } from "./record-set.ts";
import { findFault, isBy, isExpanded, validityOf } from "./signature.ts";
import { isoText, nameText, setText } from "./wording.ts";

/** A key that is trusted without proof. */
export interface TrustAnchor extends KeyDigest {
  readonly zone: string;
}

/** A zone as documents show it: its trust, and the sets that its keys signed. */
export interface ChainLink {
  readonly zone: string;
  status: "secure" | Problem["verdict"];
  fault?: string;
  readonly ds: readonly { keyTag: number; algorithm: string; digest: string }[];
  keys: readonly { keyTag: number; algorithm: string; trusted: boolean }[];
  readonly sets: CheckedSet[];
}

/** A record set, or a proof that there is none, and the signature that counts. */
export interface CheckedSet extends NameAndType {
  signature?: ReturnType<typeof showSignature>;
  proof?: Proof["steps"];
  fault?: string;
}

/** A zone of a chain; its keys are trusted once they are checked. */
export interface Zone {
  keys: readonly Key[];
  readonly link: ChainLink;
  /** Facts for the notes: the algorithms of its signatures, and how it hashes names. */
  readonly habits: { readonly algorithms: Set<string>; hashing?: Denials["hashing"] };
  /** The highest name below the zone that may be a zone too, because there is no proof about it. */
  readonly unproven?: string;
  /** The highest name below it that is proven not to exist. */
  readonly absent?: string;
}

/** The inputs of a chain of trust. */
export interface ChainOptions {
  /** Asks the resolver, with DO and CD. Returns the reply, or the reason why there is none. */
  ask(name: string, type: "DS" | "DNSKEY", timeoutMs: number): Promise<Reply | string>;
  readonly anchors: readonly TrustAnchor[];
  /** Zones that count as not signed, unless a trust anchor is closer to the name. */
  readonly unsignedZones?: readonly string[] | undefined;
  /** Seconds since 1970. */
  readonly now: number;
  readonly work: Work;
}

const SECONDS_A_DAY = 86_400;

/**
 * The chains of trust of one answer, from the trust anchor to the zones that signed it (RFC 4035 section 5).
 * A check begins at the zone that a signature names and goes up, so it need not search for zone cuts. All
 * methods throw a Problem for data that is not secure.
 */
export class Chain {
  /** The zones that were checked, each behind the one above it. */
  readonly zones: Zone[] = [];
  readonly #options: ChainOptions;
  readonly #zoneOfName = new Map<string, Promise<Zone>>();
  readonly #replies = new Map<string, Promise<Reply | string>>();

  constructor(options: ChainOptions) {
    this.#options = options;
  }

  /** The closest zone at or above a name that has a trust anchor. */
  anchorOf(name: string): string {
    const { anchors, unsignedZones = [] } = this.#options;
    const zones = [...anchors.map(({ zone }) => zone), ...unsignedZones];
    const above = zones.filter((zone) => isWithin(name, zone));
    const [closest] = above.sort((a, b) => labelsOf(b).length - labelsOf(a).length);
    if (closest === undefined) {
      throw Problem.missing`No trust anchor is at or above ${nameText(name)}: SIXSCOPE_TRUST_ANCHORS has none.`;
    }
    if (anchors.some(({ zone }) => zone === closest)) return closest;
    throw Problem.insecure`${nameText(name)} counts as not signed: SIXSCOPE_UNSIGNED_ZONES has ${nameText(closest)}.`;
  }

  /**
   * Asks at once for all that a check of a name can need: the DS records and keys of the zones that may be above it.
   */
  askAhead(name: string): void {
    const anchor = this.anchorOf(name);
    for (let zone = name; zone !== anchor; zone = parentOf(zone)) {
      const isLikely = labelsOf(zone).length <= MAX.labelsAhead;
      if (zone === name || isLikely) this.#fetch(zone, "DS");
      if (zone !== name && isLikely) this.#fetch(zone, "DNSKEY");
    }
    this.#fetch(anchor, "DNSKEY");
  }

  /**
   * Checks the signatures of a record set, RFC 4035 section 5.3. For a set from a wildcard, it also checks the
   * proof that the name itself does not exist. Returns the zone that signed.
   */
  async check(set: RecordSet, authority: readonly RecordSet[]): Promise<string> {
    const { name, type, signatures } = set;
    const signers = this.#signersOf(set, set);
    if (signers.length === 0) {
      const above = type === "DS" ? parentOf(name) : name;
      const unsigned = await this.explainUnsigned(setText(set), above);
      if (signatures.length === 0) throw unsigned;
    }
    let problem: unknown;
    for (const signer of signers) {
      try {
        const zone = await this.#zoneAt(signer);
        const wildcard = this.#note(zone, set, (shown) => this.#verify(zone, set, shown));
        if (!isExpanded(set, wildcard)) return signer;
        const claim = { name, type, wildcard };
        if (await this.deny(claim, authority)) return signer;
        // Some caches leave the proof out of an answer from a wildcard, but not out of a denial.
        if (await this.deny(claim, (await this.#ask(name, "DS")).authority)) return signer;
        throw Problem.missing`${setText(set)} is from a wildcard, without a proof that it may match this name.`;
      } catch (error) {
        problem ??= error;
      }
    }
    if (problem !== undefined) throw problem;
    const others = [...new Set(signatures.map(({ signer }) => nameText(signer)))].join();
    throw Problem.signature`The signature of ${setText(set)} is by ${others}, which is not its zone.`;
  }

  /**
   * Checks the proof of a claim. Returns the zone that proves it, and whether an unsigned zone begins at the
   * name; null if there is no signed NSEC or NSEC3 record.
   */
  async deny(claim: Claim, authority: readonly RecordSet[]) {
    const { name, wildcard } = claim;
    const candidates = authority.filter(({ type }) => type === "NSEC" || type === "NSEC3");
    // Records of other zones can prove the wildcard of an alias.
    const soa = wildcard ? undefined : authority.find(({ type }) => type === "SOA");
    const signers = candidates.flatMap((set) => this.#signersOf(claim, set));
    const prover = signers.find((signer) => signer === (wildcard?.signer ?? soa?.name ?? signer));
    if (prover === undefined) return null;
    const zone = await this.#zoneAt(prover);
    const own = candidates.filter((set) => set.signatures.some(({ signer }) => signer === prover));
    const proof = this.#note(zone, claim, (shown) => {
      const isHashed = own.every(({ type }) => type === "NSEC3");
      const sets = own.filter(({ type }) => isHashed || type === "NSEC");
      const signatures = sets.concat(soa ?? []).map((set) => {
        const signature = this.#verify(zone, set);
        if (!isExpanded(set, signature)) return showSignature(signature, this.#options.now);
        throw Problem.denial`${setText(set)} is from a wildcard, which proves nothing.`;
      });
      shown.signature = signatures.reduce((a, b) => (b.expires < a.expires ? b : a));
      const denials = isHashed ? readNsec3(sets, prover, this.#options.work) : readNsec(sets);
      zone.habits.hashing = denials.hashing;
      const { iterations = 0 } = denials.hashing ?? {};
      if (iterations > MAX.iterations) {
        throw Problem.insecure`${nameText(prover)} hashes names with ${iterations} iterations of NSEC3; a zone with more than ${MAX.iterations} counts as not signed (RFC 9276).`;
      }
      const proven = prove(denials, claim);
      shown.proof = proven.steps;
      return proven;
    });
    if (!proof.isOptOut) return { zone, isDelegation: proof.isDelegation };
    throw Problem.insecure`${nameText(name)} counts as not signed: ${nameText(prover)} opts out of proofs for names between its signed ones (RFC 5155 section 6).`;
  }

  /**
   * Finds out why a part of an answer has no signature. Returns the problem if its zone is signed, or if its name is
   * of the resolver's own network.
   *
   * @param subject of the sentence: the part that is not signed
   * @param name of the records
   * @param isNameError true if the part says that the name does not exist
   * @throws Problem if a zone above proves that the next one is not signed
   */
  async explainUnsigned(subject: string, name: string, isNameError = false): Promise<Problem> {
    const { link, unproven, absent } = await this.#zoneOf(name);
    if (absent && !isNameError) {
      return Problem.local`${subject} is not signed from the root down: ${nameText(link.zone)} proves that ${nameText(absent)} does not exist, and the resolver knows it all the same.`;
    }
    const more = unproven ? ` and does not prove that ${nameText(unproven)} is not` : "";
    return Problem.missing`${subject} has no signature, though ${nameText(link.zone)} is signed${more}.`;
  }

  /** The zone that begins at a name, which signs. */
  async #zoneAt(name: string): Promise<Zone> {
    if (name !== this.anchorOf(name)) this.#fetch(name, "DNSKEY");
    const zone = await this.#zoneOf(name);
    if (zone.link.zone === name) return zone;
    if (zone.absent) throw await this.explainUnsigned(nameText(name), name);
    if (zone.unproven) throw await this.explainUnsigned(`${nameText(name)} DS`, name);
    throw Problem.denial`${nameText(zone.link.zone)} proves that ${nameText(name)}, which signs, is not a zone.`;
  }

  /** The zone that begins at a name, or contains it. */
  #zoneOf(name: string): Promise<Zone> {
    return this.#zoneOfName.getOrInsertComputed(name, () => this.#findZone(name));
  }

  async #findZone(name: string): Promise<Zone> {
    const anchor = this.anchorOf(name);
    this.askAhead(name);
    const own = this.#options.anchors.filter(({ zone }) => zone === name);
    if (own.length > 0) return this.#open(name, own);
    const reply = await this.#ask(name, "DS").catch(async (error) => {
      // Below an unsigned zone, the answer does not matter.
      const above = await this.#zoneOf(parentOf(name)).catch(problemOf);
      throw "verdict" in above && above.verdict === "insecure" ? above : error;
    });
    const { answers, authority, isNameError } = reply;
    const ds = findSet(answers, name, "DS");
    if (ds !== undefined) {
      await this.check(ds, authority);
      const digests = ds.data.flatMap((data) => tryParseKeyDigest(data) ?? []);
      return this.#open(name, digests);
    }
    // No zone begins at an alias, and the rest of such an answer is about another name.
    const isAlias = findSet(answers, name, "CNAME") !== undefined;
    const claim = { name, type: "DS", isNameError } as const;
    const proven = isAlias ? null : await this.deny(claim, authority);
    if (proven?.isDelegation) {
      throw Problem.insecure`${nameText(name)} counts as not signed: ${nameText(proven.zone.link.zone)} proves that it has no DS record.`;
    }
    if (proven) return isNameError ? { absent: name, ...proven.zone } : proven.zone;
    // The SOA record is only a hint: signed proofs decide.
    const soa = authority.find(({ type }) => type === "SOA")?.name ?? name;
    const isAbove = !isAlias && soa !== name && isWithin(name, soa) && isWithin(soa, anchor);
    const above = await this.#zoneOf(isAbove ? soa : parentOf(name));
    return isAlias ? above : { unproven: name, ...above };
  }

  /** Checks the keys of a zone; RFC 4035 section 5.2. */
  async #open(name: string, digests: readonly KeyDigest[]): Promise<Zone> {
    const first = digests.slice(0, MAX.digests);
    const ds = first.map((each) => ({ ...showKey(each), digest: digestName(each.digestType) }));
    const link: ChainLink = { zone: name, status: "secure", ds, keys: [], sets: [] };
    const zone: Zone = { keys: [], link, habits: { algorithms: new Set() } };
    this.zones.push(zone);
    try {
      zone.keys = await this.#findKeys(zone, digests);
      return zone;
    } catch (error) {
      const { verdict, message } = problemOf(error);
      Object.assign(link, { status: verdict, fault: message });
      throw error;
    }
  }

  async #findKeys(opened: Zone, digests: readonly KeyDigest[]): Promise<readonly Key[]> {
    const { link } = opened;
    const zone = nameText(link.zone);
    const isAnchor = this.anchorOf(link.zone) === link.zone;
    const from = isAnchor ? "trust anchor" : "DS record";
    const usable = digests.filter(isUsableDigest).slice(0, MAX.digests);
    if (usable.length === 0) {
      const kinds = new Set(link.ds.map(({ algorithm, digest }) => `${algorithm} with ${digest}`));
      const text = `Each ${from} of ${zone} is of a kind that is not used here (${[...kinds].join(", ")})`;
      throw isAnchor
        ? Problem.missing`${text}.`
        : Problem.insecure`${text}, so it counts as not signed (RFC 4035 section 5.2).`;
    }
    const { answers } = await this.#ask(link.zone, "DNSKEY");
    const set = findSet(answers, link.zone, "DNSKEY");
    if (isAnchor && !set?.signatures.length) {
      throw Problem.missing`The resolver does not pass keys and signatures on, so nothing can be checked through it.`;
    }
    if (!set) throw Problem.missing`${zone} has a DS record and no DNSKEY record.`;
    const keys = set.data.flatMap((data) => tryParseKey(data) ?? []);
    const trusted = usable.flatMap((ds) => {
      const tried = keys.filter((key) => key.isUsable && isBy(key, ds)).slice(0, MAX.keys);
      return tried.filter((key) => isDigestOf(ds, link.zone, key));
    });
    link.keys = keys.map((key) => ({ ...showKey(key), trusted: trusted.includes(key) }));
    if (trusted.length === 0) {
      const tags = usable.map(({ tag }) => tag).join(", ");
      throw Problem.signature`No key of ${zone} matches its ${from} (key tag ${tags}).`;
    }
    this.#note(opened, set, (shown) => this.#verify({ ...opened, keys: trusted }, set, shown));
    return keys;
  }

  /** Returns the valid signature of a set by a zone's key. @param shown gets it, or the first that has a fault */
  #verify(
    { keys, link, habits }: Zone,
    set: RecordSet,
    shown: Partial<CheckedSet> = {},
  ): Signature {
    const { now, work } = this.#options;
    const isKnown = (signature: Signature) =>
      canVerify(signature.algorithm) && keys.some((key) => isBy(key, signature));
    const own = set.signatures
      .filter(({ signer }) => signer === link.zone)
      .sort((a, b) => Number(isKnown(b)) - Number(isKnown(a)));
    for (const { algorithm } of own) habits.algorithms.add(algorithmName(algorithm));
    let problem: Problem | undefined;
    for (const signature of own.slice(0, MAX.signatures)) {
      const fault = findFault(set, signature, keys, now, work);
      if (!(fault && problem)) shown.signature = showSignature(signature, now);
      if (fault === null) {
        const leftSeconds = validityOf(signature, now).expires - now;
        set.ttl = Math.min(signature.originalTtl, leftSeconds);
        return signature;
      }
      problem ??= fault;
    }
    if (!problem)
      throw Problem.missing`${setText(set)} has no signature by ${nameText(link.zone)}.`;
    if (own.length <= MAX.signatures) throw problem;
    throw Problem.budget`${setText(set)} has ${own.length} signatures, and the first ${MAX.signatures} are not valid. ${problem.message}`;
  }

  /** Checks a set with the keys of a zone, and adds it to the zone's link. */
  #note<T>({ link }: Zone, { name, type }: NameAndType, check: (shown: CheckedSet) => T): T {
    const shown: CheckedSet = { name, type };
    link.sets.push(shown);
    try {
      return check(shown);
    } catch (error) {
      shown.fault = problemOf(error).message;
      throw error;
    }
  }

  /** The signers of a set that may sign for a name: at or above it, not above its trust anchor. */
  #signersOf({ name, type }: NameAndType, { signatures }: RecordSet) {
    // The DS records of a zone belong to its parent.
    const anchor = this.anchorOf(type === "DS" ? parentOf(name) : name);
    const signers = signatures.slice(0, MAX.signatures).map(({ signer }) => signer);
    return [...new Set(signers)].filter((signer) => {
      if (type === "DS" && signer === name && name !== ".") return false;
      return isWithin(name, signer) && isWithin(signer, anchor);
    });
  }

  async #ask(name: string, type: "DS" | "DNSKEY") {
    const question = ` for ${nameText(name)} ${type} when asked not to check (CD)`;
    return readReply(await this.#fetch(name, type), type, this.#options.work, question);
  }

  /** Asks once for each name and type. */
  #fetch(name: string, type: "DS" | "DNSKEY"): Promise<Reply | string> {
    const { ask, work } = this.#options;
    return this.#replies.getOrInsertComputed(`${name} ${type}`, () => {
      const reply = Promise.try(() => {
        work.spend("questions");
        return ask(name, type, work.leftMs());
      });
      // Callers that need the reply get the error.
      reply.catch(() => {});
      return reply;
    });
  }
}

/** A key, or the key of a signature or a DS record, as documents show it. */
function showKey({ tag, algorithm }: Pick<Key, "tag" | "algorithm">) {
  return { keyTag: tag, algorithm: algorithmName(algorithm) };
}

/** A signature as documents show it. */
function showSignature(signature: Signature, now: number) {
  const { inception, expires } = validityOf(signature, now);
  return {
    ...showKey(signature),
    inception: isoText(inception),
    expires: isoText(expires),
    daysLeft: Math.floor((10 * (expires - now)) / SECONDS_A_DAY) / 10,
  };
}
