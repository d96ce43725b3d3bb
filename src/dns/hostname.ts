import { domainToASCII } from "node:url";
import { reverseName } from "../addr/format.ts";
import { type IpAddress, looksLikeIpv4, tryParseIp } from "../addr/ip.ts";
import { canonicalName, DnsFormatError, MAX_LABEL_BYTES, withoutFinalDot } from "./message/name.ts";
import type { RecordType } from "./message/record.ts";

/** A name in presentation form in ASCII without the final dot (`.` for the root), or the fault of the text. */
type ParsedHostname = { readonly ok: true; readonly name: string } | ReturnType<typeof refused>;

/** Characters of a host name without its final dot: it has 255 bytes on the wire. */
const MAX_HOSTNAME_LENGTH = 253;

/** UTF-16 code units of a name beyond ASCII: more cannot become 253 characters; bounds the conversion. */
const MAX_UNICODE_HOSTNAME_LENGTH = 1024;

/** ASCII characters that are not allowed: all but letters, digits, `-`, `_`, `*`, `/` (RFC 2317), and dots. */
const REFUSED_ASCII = /[\p{ASCII}--[A-Za-z0-9\-_*\/.]]/v;

const NOT_ASCII = /\P{ASCII}/v;

/** The full stops of UTS 46 section 2.3. */
const FULL_STOP = /[.\u3002\uff0e\uff61]/;

/** One of them may end a name. */
const FINAL_DOT = new RegExp(`${FULL_STOP.source}$`);

/** A label that UTS 46 does not change. */
const GUARD = "x";

/**
 * Reads the name that a user's text asks for: a host name, or any name in presentation form. With type
 * PTR an address of either family means its reverse name; with any other type it is refused. A name
 * beyond ASCII is converted by UTS 46, non-transitional. A final dot is dropped. Single labels are valid,
 * because the client has no search list.
 */
export function parseHostname(input: string, type: RecordType): ParsedHostname {
  // Tools put a dot behind every name, also behind an address.
  const ip = type === "PTR" ? tryParseIp(input.replace(/\.$/, "")) : null;
  if (ip !== null) return { ok: true, name: reverseName(ip) };
  if (isPresentationForm(input)) return parsePresentationForm(input);
  // Composed first, because an ASCII character and a combining mark can be one letter.
  const text = input.normalize("NFC");
  const name = text.replace(FINAL_DOT, "");
  if (name === "" && text !== "") return { ok: true, name: "." };
  // An address does not end in a dot.
  return parseName(name, name === text ? tryParseIp(name) : null, type);
}

/** True if a text has an escape, or is spelled as results show a name that is not a host name. */
function isPresentationForm(text: string): boolean {
  if (text.includes("\\")) return true;
  return REFUSED_ASCII.test(text) && /^[!-~]+\.$/.test(text) && !/[@$();"]/.test(text);
}

/** Reads a name in presentation form, which can have any bytes; RFC 1035 section 5.1. */
function parsePresentationForm(text: string): ParsedHostname {
  try {
    return { ok: true, name: withoutFinalDot(canonicalName(text)) };
  } catch (error) {
    if (!(error instanceof DnsFormatError)) throw error;
    return refused(`it is not a name in presentation form: ${error.message}`);
  }
}

/** @param name without its final dot @param ip the address that the name spells, or null */
function parseName(name: string, ip: IpAddress | null, type: RecordType): ParsedHostname {
  if (ip !== null && type === "PTR") return { ok: true, name: reverseName(ip) };
  if (ip !== null) return refused("it is an IP address; ask for its name with type=PTR", true);
  const isAddress = looksLikeIpv4(name);
  if (type === "PTR" && (name.includes(":") || isAddress)) {
    return refused("it is not a valid IPv4 or IPv6 address", isAddress, "INVALID_ADDRESS");
  }
  if (isAddress) return refused("it looks like an IPv4 address", true);
  const character = REFUSED_ASCII.exec(name)?.[0];
  if (character !== undefined) return refused(`it contains ${nameOf(character)}`);
  if (!NOT_ASCII.test(name)) return checkLabels(name);
  const converted = tryConvertToAscii(name);
  return converted === null
    ? refused("it is not a valid internationalized name (UTS 46)")
    : parseName(converted, tryParseIp(converted), type);
}

/** The ASCII form of a name by UTS 46, not checked yet; null if it has none. */
function tryConvertToAscii(name: string): string | null {
  if (name.length > MAX_UNICODE_HOSTNAME_LENGTH) return null;
  const labels = name.split(FULL_STOP);
  // The converter takes a slash for the end of the name, so a label with one is kept as it is.
  const isKept = labels.map((label) => label.includes("/") && !NOT_ASCII.test(label));
  const guarded = labels.map((label, at) => (isKept[at] ? GUARD : label));
  if (guarded.some((label) => label.includes("/"))) return null;
  // Without the label at the end, the converter reads a name such as "１" as an IPv4 address.
  const converted = domainToASCII([...guarded, GUARD].join(".")).split(".");
  if (converted.length !== labels.length + 1) return null;
  return labels.map((label, at) => (isKept[at] ? label : converted[at])).join(".");
}

/** The lengths of RFC 1035 section 2.3.4, and where an asterisk is allowed (RFC 4592 section 2.1.1). */
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
    if (label.includes("*") && label !== "*") {
      return refused("it has an asterisk that is not a whole label");
    }
  }
  return { ok: true, name };
}

/**
 * @param reason the fault, as a clause about the text: "it has an empty label"
 * @param isAddress true if it is an IP address, or looks like one
 */
function refused(
  reason: string,
  isAddress = false,
  code: "INVALID_HOSTNAME" | "INVALID_ADDRESS" = "INVALID_HOSTNAME",
) {
  return { ok: false, code, isAddress, reason } as const;
}

/** A character as a message shows it: its code point unless it is visible or a space. */
function nameOf(character: string): string {
  if (character === " ") return "a space";
  if (character > " " && character < "\x7f") return `the character ${character}`;
  return `the character U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
