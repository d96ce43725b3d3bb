import { encodeName } from "../name.ts";
import { algorithmName, canVerify, type Key } from "./key.ts";
import { MAX_KEYS, type Work } from "./limits.ts";
import { ancestorOf, labelsOf, wildcardOf } from "./names.ts";
import type { RecordSet } from "./record-set.ts";
import type { Signature } from "./signature-record.ts";
import { durationText, nameText, setText, timeText } from "./wording.ts";

/** Why a signature proves nothing. Of several, that with the highest weight is told. */
export interface Fault {
  readonly status: "bogus" | "indeterminate";
  readonly text: string;
  readonly weight: number;
}

/** The bytes before the data of each record: type, class, TTL, length. */
const RECORD_BYTES = 10;

const CLASS_IN = 1;

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
): Fault | null {
  const { keyTag, algorithm, signer } = signature;
  const by = `The signature of ${setText(set)} by key ${keyTag}`;
  if (signature.labels > signableLabels(set.name)) {
    return { status: "bogus", weight: 2, text: `${by} is for a longer name.` };
  }
  if (!canVerify(algorithm)) {
    const text = `${by} uses ${algorithmName(algorithm)}, which cannot be verified here.`;
    return { status: "indeterminate", weight: 0, text };
  }
  const late = timeFault(signature, now);
  if (late !== null) return { status: "bogus", weight: 4, text: `${by} ${late}.` };
  const matching = keys.filter((key) => key.tag === keyTag && key.algorithm === algorithm);
  const candidates = matching.filter((key) => key.isUsable).slice(0, MAX_KEYS);
  if (candidates.length === 0) {
    const what = matching.length > 0 ? "revoked it, or it may not sign" : "has no such key";
    return {
      status: "bogus",
      weight: 1,
      text: `${by} proves nothing: ${nameText(signer)} ${what}.`,
    };
  }
  const signed = signedBytes(set, signature);
  for (const key of candidates) {
    work.spend("signatures");
    if (key.verify(signed, signature.bytes)) return null;
  }
  return { status: "bogus", weight: 3, text: `${by} does not match the records.` };
}

/** When a signature begins and ceases to be valid, in seconds since 1970; RFC 4034 section 3.1.5. */
export function validityOf({ inception, expires }: Signature, now: number) {
  // The 32-bit numbers compare by serial number arithmetic, RFC 1982.
  const near = (time: number) => now + ((time - now) | 0);
  return { inception: near(inception), expires: near(expires) };
}

/** True if the records of a wildcard were signed, not those of this name. */
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
  const labels = labelsOf(name);
  return labels[0] === "*" ? labels.length - 1 : labels.length;
}

/** The bytes that were signed; RFC 4034 section 3.1.8.1. */
function signedBytes(set: RecordSet, signature: Signature): Buffer {
  const { name, type, data } = set;
  const { labels, header, originalTtl } = signature;
  const owner = isExpanded(set, signature) ? wildcardOf(ancestorOf(name, labels)) : name;
  const ownerBytes = encodeName(owner);
  return Buffer.concat([
    header,
    ...data.flatMap((each) => {
      const fields = Buffer.alloc(RECORD_BYTES);
      fields.writeUInt16BE(type, 0);
      fields.writeUInt16BE(CLASS_IN, 2);
      fields.writeUInt32BE(originalTtl, 4);
      fields.writeUInt16BE(each.length, 8);
      return [ownerBytes, fields, each];
    }),
  ]);
}
