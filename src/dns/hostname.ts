import { domainToASCII } from "node:url";
import { reverseName } from "../addr/format.ts";
import { type IpAddress, looksLikeIpv4, tryParseIp } from "../addr/ip.ts";
import { MAX_HOSTNAME_LENGTH, MAX_LABEL_BYTES, MAX_UNICODE_HOSTNAME_LENGTH } from "./limits.ts";
import type { RecordType } from "./record.ts";

/** A name to ask for, or what is wrong with the text. */
export type ParsedHostname =
  | {
      readonly ok: true;
      /** ASCII, without the final dot; `.` for the root. */
      readonly name: string;
    }
  | {
      readonly ok: false;
      readonly code: "INVALID_HOSTNAME" | "INVALID_ADDRESS";
      /** Whether it is an IP address, or has the form of one. */
      readonly isAddress: boolean;
      /** What is wrong, as the end of a sentence that names the text: "it has an empty label". */
      readonly reason: string;
    };

/** The ASCII characters that no host name has: all but letters, digits, `-`, `_`, `*`, `/` of RFC 2317, and dots. */
const REFUSED_ASCII = /[\p{ASCII}--[A-Za-z0-9\-_*\/.]]/v;

const NOT_ASCII = /\P{ASCII}/v;

/** The full stops of UTS 46 section 2.3. */
const FULL_STOP = /[.\u3002\uff0e\uff61]/;

/** One of them may end a name. */
const FINAL_DOT = new RegExp(`${FULL_STOP.source}$`);

/** A label that UTS 46 leaves as it is. */
const GUARD = "x";

/**
 * The name that a user's text asks for. An address of either family stands for its reverse name when
 * the type is PTR, and is refused with any other type. A name beyond ASCII is converted by UTS 46,
 * non-transitional. A trailing dot is dropped; single labels pass, for there is no search list.
 */
export function parseHostname(input: string, type: RecordType): ParsedHostname {
  const name = input.replace(FINAL_DOT, "");
  if (name === "" && input !== "") return { ok: true, name: "." };
  // No address ends in a dot, so what does is none, whatever stands before it.
  return parseName(name, name === input ? tryParseIp(name) : null, type);
}

/** The name that a text asks for which has lost its final dot; `ip` is the address that it is. */
function parseName(name: string, ip: IpAddress | null, type: RecordType): ParsedHostname {
  if (ip !== null && type === "PTR") return { ok: true, name: reverseName(ip) };
  if (ip !== null) return refused("it is an IP address; ask for its name with type=PTR", true);
  const isAddress = looksLikeIpv4(name);
  if (type === "PTR" && (name.includes(":") || isAddress)) {
    const reason = "it is no valid IPv4 or IPv6 address";
    return { ok: false, code: "INVALID_ADDRESS", isAddress, reason };
  }
  if (isAddress) return refused("it has the form of an IPv4 address", true);
  const character = REFUSED_ASCII.exec(name)?.[0];
  if (character !== undefined) return refused(`it holds ${nameOf(character)}`);
  if (!NOT_ASCII.test(name)) return checkLabels(name);
  const converted = convertToAscii(name);
  return converted === null
    ? refused("it is no valid internationalised name (UTS 46)")
    : parseName(converted, tryParseIp(converted), type);
}

/** The ASCII form of a name by UTS 46, which is still to be checked; null where it has none. */
function convertToAscii(name: string): string | null {
  if (name.length > MAX_UNICODE_HOSTNAME_LENGTH) return null;
  const labels = name.split(FULL_STOP);
  // A slash would be taken for the end of the name; a label that has one must be ASCII already.
  const isKept = labels.map((label) => label.includes("/") && !NOT_ASCII.test(label));
  const guarded = labels.map((label, at) => (isKept[at] ? GUARD : label));
  if (guarded.some((label) => label.includes("/"))) return null;
  // The label at the end keeps a name such as "１" from being read as an IPv4 address.
  const converted = domainToASCII([...guarded, GUARD].join(".")).split(".");
  if (converted.length !== labels.length + 1) return null;
  return labels.map((label, at) => (isKept[at] ? label : converted[at])).join(".");
}

/** The lengths of RFC 1035 section 2.3.4, and where an asterisk may stand (RFC 4592 section 2.1.1). */
function checkLabels(name: string): ParsedHostname {
  if (name === "") return refused("it is empty");
  if (name.length > MAX_HOSTNAME_LENGTH) {
    return refused(`it has more than ${MAX_HOSTNAME_LENGTH} characters`);
  }
  for (const label of name.split(".")) {
    if (label === "") return refused("it has an empty label");
    if (label.length > MAX_LABEL_BYTES) {
      return refused(`it has a label of more than ${MAX_LABEL_BYTES} characters`);
    }
    if (label.includes("*") && label !== "*")
      return refused("it has an asterisk that is not a whole label");
  }
  return { ok: true, name };
}

function refused(reason: string, isAddress = false): ParsedHostname {
  return { ok: false, code: "INVALID_HOSTNAME", isAddress, reason };
}

/** How a message names a character that it had better not repeat. */
function nameOf(character: string): string {
  if (character > " " && character < "\x7f") return `the character ${character}`;
  return `the character U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
