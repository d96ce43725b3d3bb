import { canonicalName, DnsFormatError } from "../message/name.ts";
import type { TrustAnchor } from "./chain.ts";
import { keyDigest, tryParseKey } from "./key.ts";

/** SHA-256, into which keys are turned. */
const DIGEST_TYPE = 2;

/** Anchors of one file; a closed network has a few. */
const MAX_ANCHORS = 100;

/** A file of trust anchors is not valid; the message names the line. */
export class TrustAnchorError extends Error {
  override readonly name = "TrustAnchorError";
}

/**
 * Reads DS and DNSKEY records in the form of zone files, one on a line: `name [TTL] [IN] DS …`, with comments
 * behind a semicolon.
 *
 * @throws TrustAnchorError
 */
export function parseTrustAnchors(text: string): readonly TrustAnchor[] {
  const anchors = text.split(/\r?\n/).flatMap((line, at) => {
    const words = line.replace(/;.*/, "").match(/\S+/g);
    if (words === null) return [];
    try {
      return [parseAnchor(words)];
    } catch (error) {
      if (!(error instanceof TrustAnchorError || error instanceof DnsFormatError)) throw error;
      throw new TrustAnchorError(`line ${at + 1}: ${error.message}`);
    }
  });
  if (anchors.length === 0) throw new TrustAnchorError("it has no record");
  if (anchors.length > MAX_ANCHORS)
    throw new TrustAnchorError(`it has more than ${MAX_ANCHORS} records`);
  return anchors;
}

const RECORD = /^(?:(?:\d+|IN) )*(DS|DNSKEY) (\d{1,5}) (\d{1,3}) (\d{1,3}) (.+)$/i;

function parseAnchor([owner = "", ...words]: readonly string[]): TrustAnchor {
  const [, type, ...fields] = RECORD.exec(words.join(" ")) ?? [];
  const [first = 0, second = 0, third = 0] = fields.slice(0, 3).map(Number);
  if (type === undefined || first > 0xffff || second > 0xff || third > 0xff) {
    throw new TrustAnchorError("it must be a name, then DS or DNSKEY, three numbers and the data");
  }
  const zone = canonicalName(owner).toLowerCase();
  const rest = fields[3]?.replaceAll(" ", "") ?? "";
  const isDigest = type.toUpperCase() === "DS";
  const data = Buffer.from(rest, isDigest ? "hex" : "base64");
  if (isDigest) {
    const { length = data.length } = keyDigest(".", data, third) ?? {};
    if (data.length !== length || 2 * data.length !== rest.length) {
      throw new TrustAnchorError("the digest of the DS record is cut short or not in hex");
    }
    return { zone, tag: first, algorithm: second, digestType: third, digest: data };
  }
  const record = Buffer.concat([Buffer.from([first >> 8, first & 0xff, second, third]), data]);
  const key = tryParseKey(record);
  if (!key?.isUsable || data.toString("base64").length !== rest.length) {
    throw new TrustAnchorError("the DNSKEY record is not the key of a zone in base64");
  }
  const digest = keyDigest(zone, record, DIGEST_TYPE) as Buffer;
  return { zone, tag: key.tag, algorithm: key.algorithm, digestType: DIGEST_TYPE, digest };
}

/** The keys of the root, which IANA publishes: RFC 9718. */
export const ROOT_ANCHORS: readonly TrustAnchor[] = parseTrustAnchors(`
. IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D
. IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16
`);
