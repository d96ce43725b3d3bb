import { canonicalName, DnsFormatError } from "../message/name.ts";
import type { TrustAnchor } from "./chain.ts";
import { KEY_FLAG, keyDigest, tryParseKey } from "./key.ts";

/** SHA-256: the digest by which DNSKEY records become anchors. */
const DIGEST_TYPE = 2;

/** Anchors of one file; a closed network has a few. */
const MAX_ANCHORS = 100;

/** A file of trust anchors is not valid; the message names the line. */
export class TrustAnchorError extends Error {
  override readonly name = "TrustAnchorError";
}

/**
 * Reads the DS and DNSKEY records of a zone file, RFC 1035 section 5, also of the files in which unbound and BIND
 * (`KEYDATA`) keep keys with their states of RFC 5011. Keys that are revoked, removed or not yet trusted are left out.
 *
 * @param nowMs milliseconds since 1970
 * @throws TrustAnchorError, also for a file without a trusted key
 */
export function parseTrustAnchors(text: string, nowMs = Date.now()): readonly TrustAnchor[] {
  let [origin, owner] = [".", "."];
  const absolute = (name: string) => {
    if (name === "@") return origin;
    return canonicalName(name.endsWith(".") || origin === "." ? name : `${name}.${origin}`);
  };
  const anchors: TrustAnchor[] = [];
  for (const [at, line] of linesOf(text).entries()) {
    const [first, ...rest] = line === "" ? [] : (line.match(/\S+/g) ?? []);
    if (first === undefined || first === "$TTL") continue;
    try {
      if (first === "$ORIGIN") {
        origin = absolute(rest.join(" "));
        continue;
      }
      const isOfOwner = /^\s/.test(line) && RECORD.test([first, ...rest].join(" "));
      if (!isOfOwner) owner = absolute(first).toLowerCase();
      const record = (isOfOwner ? [first, ...rest] : rest).join(" ");
      const anchor = parseAnchor(owner, record, nowMs);
      if (anchor !== null) anchors.push(anchor);
    } catch (error) {
      if (!(error instanceof TrustAnchorError || error instanceof DnsFormatError)) throw error;
      throw new TrustAnchorError(`line ${at + 1}: ${error.message}`);
    }
  }
  if (anchors.length === 0) throw new TrustAnchorError("it has no record of a trusted key");
  if (anchors.length > MAX_ANCHORS)
    throw new TrustAnchorError(`it has more than ${MAX_ANCHORS} records`);
  return anchors;
}

/** The states of RFC 5011 section 4 in which a key is not trusted, as unbound writes them. */
const UNTRUSTED = /\[ *(?:START|ADDPEND|REVOKED|REMOVED) *\]/;

/** Lines without comments; text in parentheses is joined into one line. */
function linesOf(text: string): readonly string[] {
  const withoutComment = (line: string) => {
    const end = line.indexOf(";");
    if (end < 0) return line;
    return UNTRUSTED.test(line) ? "" : line.slice(0, end);
  };
  const lines = text.split("\n").map(withoutComment);
  if (!text.includes("(")) return lines;
  // Its line breaks move behind it, so that later lines keep their numbers.
  const joined = (_: string, inner: string) =>
    inner.replaceAll("\n", " ") + inner.replaceAll(/[^\n]/g, "");
  return lines
    .join("\n")
    .replaceAll(/\(([^()]*)\)/g, joined)
    .split("\n");
}

/** KEYDATA has three times before the key: its next query, the start of its trust, and its removal. */
const RECORD =
  /^(?:(?:\d+|IN) )*(?:SOA .+|(DS|DNSKEY|KEYDATA \d{14} (\d{14}) \d{14}) (\d{1,5}) (\d{1,3}) (\d{1,3}) (.+))$/i;

/** Null for a key that is not trusted, and for the SOA record of a file. */
function parseAnchor(zone: string, record: string, nowMs: number): TrustAnchor | null {
  const match = RECORD.exec(record);
  const [, type, trustedFrom, ...fields] = match ?? [];
  const [first = 0, second = 0, third = 0] = fields.slice(0, 3).map(Number);
  if (match === null || first > 0xffff || second > 0xff || third > 0xff) {
    throw new TrustAnchorError("it must be a name, then DS or DNSKEY, three numbers and the data");
  }
  if (type === undefined) return null;
  const rest = fields[3]?.replaceAll(" ", "") ?? "";
  const isDigest = type.toUpperCase() === "DS";
  const data = Buffer.from(rest, isDigest ? "hex" : "base64");
  if (isDigest) {
    const digestBytes = keyDigest(".", data, third)?.length ?? data.length;
    if (data.length !== digestBytes || 2 * data.length !== rest.length) {
      throw new TrustAnchorError("the digest of the DS record is cut short or not in hex");
    }
    return { zone, tag: first, algorithm: second, digestType: third, digest: data };
  }
  const flags = first & ~KEY_FLAG.revoked;
  const bytes = Buffer.concat([Buffer.from([flags >> 8, flags & 0xff, second, third]), data]);
  const key = tryParseKey(bytes);
  if (!key?.isUsable || data.toString("base64").length !== rest.length) {
    throw new TrustAnchorError("the DNSKEY record is not the key of a zone in base64");
  }
  const isPending = trustedFrom === NEVER || (trustedFrom ?? "") > timestampOf(nowMs);
  if (flags !== first || isPending) return null;
  const digest = keyDigest(zone, bytes, DIGEST_TYPE) as Buffer;
  return { zone, tag: key.tag, algorithm: key.algorithm, digestType: DIGEST_TYPE, digest };
}

/** The time of a key that BIND does not trust. */
const NEVER = "19700101000000";

/** A time as zone files have it: `20261122080000`. */
const timestampOf = (ms: number) => new Date(ms).toISOString().replace(/\D/g, "").slice(0, 14);

/** The keys of the root, which IANA publishes: RFC 9718. */
export const ROOT_ANCHORS: readonly TrustAnchor[] = parseTrustAnchors(`
. IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D
. IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16
`);
