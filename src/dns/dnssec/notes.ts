import type { Zone } from "./chain.ts";
import type { NameAndType } from "./names.ts";
import { durationText, nameText, setText, timeText } from "./wording.ts";

/**
 * Notes for the owner of a zone on how it is signed, each with a code and a sentence. The zone is the one that signed the
 * end of an answer, or the first whose keys are not trusted. If all its sets are valid, the first note says which
 * signature expires first.
 *
 * @param now seconds since 1970
 */
export function notesOn(zones: readonly Zone[], end: NameAndType, now: number) {
  const isEnd = ({ name, type }: NameAndType) => name === end.name && type === end.type;
  const last =
    zones.findLast(({ link }) => link.sets.some(isEnd)) ??
    zones.find(({ link }) => link.status !== "secure");
  if (last === undefined) return [];
  const { link, habits } = last;
  const zone = nameText(link.zone);
  const { iterations = 0, salt = "" } = habits.hashing ?? {};
  const announced = new Set([...link.ds, ...link.keys].map(({ algorithm }) => algorithm));
  const unused = [...announced].filter((algorithm) => !habits.algorithms.has(algorithm));
  // Beside a fault, the expiry of other signatures is of no use.
  const valid = link.sets.some(({ fault }) => fault !== undefined) ? [] : link.sets;
  const [first] = valid
    .flatMap(({ name, type, signature }) =>
      signature ? [{ name, type, expires: Date.parse(signature.expires) / 1000 }] : [],
    )
    .sort((a, b) => a.expires - b.expires);
  const texts = {
    expires:
      first &&
      `Of the signatures of ${zone}, that of ${setText(first)} is the first to expire, in ${durationText(first.expires - now)} (${timeText(first.expires)}).`,
    "unused-algorithm":
      habits.algorithms.size > 0 &&
      unused.length > 0 &&
      `${zone} has keys or DS records of ${unused.join(", ")}, which signs nothing here; a zone is signed with every algorithm that it announces (RFC 6840 section 5.11).`,
    "sha1-ds":
      link.ds.some(({ digest }) => digest === "SHA-1") &&
      `${zone} has a DS record with SHA-1, which validators no longer use (RFC 9905); one with SHA-256 is enough.`,
    "nsec3-iterations":
      iterations > 0 &&
      `${zone} hashes names with ${iterations} further iterations of NSEC3; there should be none (RFC 9276 section 3.1).`,
    "nsec3-salt":
      salt !== "" &&
      `${zone} hashes names with the salt ${salt}; there should be none (RFC 9276 section 3.1).`,
  };
  return (Object.keys(texts) as (keyof typeof texts)[]).flatMap((code) =>
    texts[code] ? [{ code, zone: link.zone, text: texts[code] }] : [],
  );
}
