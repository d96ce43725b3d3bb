import { algorithmName } from "../message/codes.ts";
import { CLASSES } from "../message/message.ts";
import { encodeName } from "../message/name.ts";
import { canVerify, type Key } from "./key.ts";
import { COST_US, MAX, type Work } from "./limits.ts";
import { ancestorOf, labelsOf, wildcardOf } from "./names.ts";
import { Problem } from "./problem.ts";
import type { RecordSet, Signature } from "./record-set.ts";
import { durationText, nameText, setText, timeText } from "./wording.ts";

const CLASS_IN = Buffer.from([0, CLASSES.IN]);

/** A wrong clock shows first in signatures that are valid for days: those of the zones above are valid for weeks. */
const CHECK_CLOCK = "If other zones have such faults too, the clock of this machine is wrong.";

/**
 * Checks a signature of a record set; RFC 4035 section 5.3. Null if it is valid.
 *
 * @param keys of the zone that signed
 * @param now seconds since 1970
 */
export function findFault(
  set: RecordSet,
  signature: Signature,
  keys: readonly Key[],
  now: number,
  work: Work,
): Problem | null {
  const { algorithm, tag, signer, labels } = signature;
  const subject = `The signature of ${setText(set)} by key ${tag}`;
  if (!canVerify(algorithm)) {
    return Problem.missing`${subject} uses ${algorithmName(algorithm)}, which cannot be verified here.`;
  }
  if (labels > signableLabels(set.name)) return Problem.signature`${subject} is for a longer name.`;
  const isOfKeys = set.type === "DNSKEY";
  const fault = timeFault(signature, now);
  if (fault !== null) return Problem.signature`${subject} ${fault}. ${CHECK_CLOCK}`;
  const matching = keys.filter((key) => isBy(key, signature));
  const candidates = matching.filter((key) => key.isUsable).slice(0, MAX.keys);
  if (candidates.length === 0) {
    const zone = nameText(signer);
    const unknown = isOfKeys
      ? `no DS record or trust anchor of ${zone} is of that key`
      : `${zone} has no such key`;
    const reason = matching.length > 0 ? `${zone} revoked it, or it may not sign` : unknown;
    return Problem.signature`${subject} proves nothing: ${reason}.`;
  }
  const bytes = set.data.reduce((sum, data) => sum + set.name.length + data.length, 0);
  work.spend("cpuUs", COST_US.signedByte * bytes);
  const signed = signedBytes(set, signature);
  for (const key of candidates) {
    work.spend("cpuUs", key.verifyUs);
    if (key.verify(signed, signature.bytes)) return null;
  }
  return Problem.signature`${subject} does not match the records.`;
}

/** True if a key has the tag and the algorithm of a signature or a DS record. */
export function isBy({ tag, algorithm }: Key, by: Pick<Key, "tag" | "algorithm">): boolean {
  return tag === by.tag && algorithm === by.algorithm;
}

/** The first and last second in which a signature is valid, since 1970; RFC 4034 section 3.1.5. */
export function validityOf({ inception, expires }: Signature, now: number) {
  // The 32-bit numbers compare by serial number arithmetic, RFC 1982.
  const near = (time: number) => now + ((time - now) | 0);
  return { inception: near(inception), expires: near(expires) };
}

/** True if a wildcard was signed, not this name. */
export function isExpanded({ name }: RecordSet, { labels }: Signature): boolean {
  return labels < signableLabels(name);
}

function timeFault(signature: Signature, now: number): string | null {
  const { inception, expires } = validityOf(signature, now);
  if (now > expires) return `expired ${durationText(now - expires)} ago (${timeText(expires)})`;
  if (now >= inception) return null;
  return `becomes valid only in ${durationText(inception - now)} (${timeText(inception)})`;
}

/** The labels of a name that a signature counts; RFC 4034 section 3.1.3. */
function signableLabels(name: string): number {
  return labelsOf(name).filter((label, at) => at > 0 || label !== "*").length;
}

/** The bytes that were signed; RFC 4034 section 3.1.8.1. */
function signedBytes(set: RecordSet, signature: Signature): Buffer {
  const { labels, header } = signature;
  const owner = isExpanded(set, signature) ? wildcardOf(ancestorOf(set.name, labels)) : set.name;
  // The header begins with the type, and has the original TTL behind two further bytes.
  const fields = [encodeName(owner), header.subarray(0, 2), CLASS_IN, header.subarray(4, 8)];
  const start = Buffer.concat(fields);
  const lengthOf = ({ length }: Uint8Array) => Buffer.from([length >>> 8, length & 0xff]);
  const records = set.data.flatMap((data) => [start, lengthOf(data), data]);
  return Buffer.concat([header, ...records]);
}
