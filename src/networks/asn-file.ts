import { Reader } from "mmdb-lib";
import decoder from "mmdb-lib/lib/decoder";
import { formatIp } from "../addr/ip.ts";
import { formatPrefix, parsePrefix, prefixContains, prefixOf } from "../addr/prefix.ts";
import { readRegularBytes } from "../platform/regular-file.ts";
import { reasonOf } from "../util/errors.ts";
import { printable } from "../util/text.ts";
import type { NetworkTable } from "./network.ts";

/** The names of a record's fields in GeoLite and DB-IP Lite, IPinfo Lite, iptoasn, and older files of IPinfo. */
const NUMBER_FIELDS = ["autonomous_system_number", "asn", "as_number", "AS_number"];
const NAME_FIELDS = [
  "autonomous_system_organization",
  "as_name",
  "as_description",
  "AS_description",
  "name",
];

/** The part of the IPv6 space in which files contain IPv4. */
const IPV4_PART = parsePrefix("::/96");

/** Zero bytes between the tree and the data. */
const SEPARATOR_BYTES = 16;

const MAX_ASN = 0xffff_ffff;

/** Values of a record, including those behind its pointers; the largest known records have a hundred. */
const MAX_VALUES = 1_000;

/** The number of values that may still be decoded. */
let valuesLeft = 0;

// In the built executable, the import is the whole module.
const Decoder = ("default" in decoder ? decoder.default : decoder) as typeof decoder;

// The library follows every pointer, so a few maps that lead to each other keep it busy for ever.
const { decode } = Decoder.prototype;
Decoder.prototype.decode = function (offset) {
  valuesLeft -= 1;
  if (valuesLeft < 0) throw new Error(`a record has more than ${MAX_VALUES} values`);
  return decode.call(this, offset);
};

/** Runs a read that may decode `MAX_VALUES` values; throws an error for more. */
function bounded<T>(read: () => T): T {
  valuesLeft = MAX_VALUES;
  return read();
}

/**
 * Reads a file in the MaxMind DB format that contains autonomous systems.
 *
 * @throws Error with the file and the reason, if it cannot be read or is not such a file
 */
export function readAsnFile(path: string): NetworkTable {
  const reader = openReader(path);
  const { ipVersion, databaseType, buildEpoch } = reader.metadata;
  return {
    summary: `${databaseType} of ${buildEpoch.toISOString().slice(0, 10)}`,
    find(ip) {
      // A file without IPv6 would read the first bits of an IPv6 address as IPv4.
      if (ip.version === 6 && (ipVersion === 4 || prefixContains(IPV4_PART, ip))) return null;
      const [record, length] = bounded(() => reader.getWithPrefixLength(formatIp(ip)));
      const asn = asnOf(fieldOf(record, NUMBER_FIELDS));
      const name = nameOf(fieldOf(record, NAME_FIELDS));
      // 0 is for addresses that are not routed, RFC 7607.
      if (asn === 0 || (asn === null && name === null)) return null;
      return { asn, name, prefix: formatPrefix(prefixOf(ip, length)), source: "asn-file" };
    },
  };
}

function openReader(path: string) {
  try {
    const bytes = readRegularBytes(path);
    const reader = bounded(() => new Reader<never>(bytes));
    const { ipVersion, searchTreeSize, binaryFormatMajorVersion, buildEpoch } = reader.metadata;
    const separator = bytes.subarray(searchTreeSize, searchTreeSize + SEPARATOR_BYTES);
    const isValid =
      separator.equals(Buffer.alloc(SEPARATOR_BYTES)) &&
      [4, 6].includes(ipVersion) &&
      binaryFormatMajorVersion === 2 &&
      !Number.isNaN(buildEpoch.getTime());
    if (!isValid) throw new Error("its metadata is not valid");
    // Reads one address of each part, because most damage shows here.
    for (let part = 0; part < 256; part++) {
      for (const ip of [`${part}.0.0.0`, `${part.toString(16)}00::`]) bounded(() => reader.get(ip));
    }
    return reader;
  } catch (error) {
    const reason = `${reasonOf(error)}; it must be a complete MMDB file`;
    throw new Error(`cannot read the ASN file ${path}: ${reason}`, { cause: error });
  }
}

/** The first of these fields that a record has. */
function fieldOf(record: unknown, names: readonly string[]): unknown {
  if (typeof record !== "object" || record === null) return undefined;
  const fields = record as Readonly<Record<string, unknown>>;
  return names.map((name) => fields[name]).find((value) => value !== undefined);
}

/** The number in 64496, "64496" or "AS64496". */
function asnOf(value: unknown): number | null {
  const [, digits] = /^(?:AS)?([0-9]{1,10})$/i.exec(String(value)) ?? [];
  const asn = Number(digits);
  return asn <= MAX_ASN ? asn : null;
}

function nameOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? printable(value) : null;
}
