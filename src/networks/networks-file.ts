import { AddressError, formatPrefix, parsePrefix, prefixOf, unmapPrefix } from "../addr/prefix.ts";
import { readRegularFile } from "../platform/regular-file.ts";
import { orThrow } from "../util/errors.ts";
import { printable, quote } from "../util/text.ts";
import type { NetworkTable } from "./network.ts";

/** The header line that many CSV files have. */
const HEADER = /^prefix,name$/i;

/** A name that contains a comma or a quotation mark, RFC 4180 section 2. */
const QUOTED = /^"((?:[^"]|"")*)"$/;

/**
 * Reads a CSV file of networks: `prefix,name` on each line; empty lines and lines that begin with # are ignored.
 *
 * @throws Error with the file and the reason, if it cannot be read or a line is not valid
 */
export function readNetworksFile(path: string): NetworkTable {
  /** Names by prefix, and the lengths of the prefixes of each family. */
  const names = new Map<string, string>();
  const lengths = { 4: new Set<number>(), 6: new Set<number>() };
  const unusable = (reason: string, cause: unknown) =>
    new Error(`cannot use the networks file ${path}: ${reason}`, { cause });
  const text = orThrow(() => readRegularFile(path), unusable);
  for (const [index, line] of text.split("\n").entries()) {
    // Some editors begin a file with U+FEFF, which trim removes.
    const row = line.trim();
    if (row === "" || row.startsWith("#") || (index === 0 && HEADER.test(row))) continue;
    try {
      const { prefix, name } = parseRow(row);
      const block = formatPrefix(prefix);
      if (names.has(block)) throw new AddressError(`${block} is listed twice`);
      names.set(block, name);
      lengths[prefix.network.version].add(prefix.length);
    } catch (error) {
      if (!(error instanceof AddressError)) throw error;
      throw unusable(`line ${index + 1}, ${quote(row)}: ${error.message}`, error);
    }
  }
  const sorted = (version: 4 | 6) => [...lengths[version]].toSorted((a, b) => b - a);
  const longestFirst = { 4: sorted(4), 6: sorted(6) };
  return {
    summary: `networks: ${names.size}`,
    find(ip) {
      for (const length of longestFirst[ip.version]) {
        const prefix = formatPrefix(prefixOf(ip, length));
        const name = names.get(prefix);
        if (name !== undefined) return { asn: null, name, prefix, source: "networks-file" };
      }
      return null;
    },
  };
}

/** @throws AddressError */
function parseRow(row: string) {
  const [prefix = "", ...rest] = row.split(",");
  const written = rest.join(",").trim();
  const [, quoted] = QUOTED.exec(written) ?? [];
  const name = quoted?.replaceAll('""', '"') ?? written;
  if (name === "") throw new AddressError("it must be a prefix, a comma and a name");
  return { prefix: unmapPrefix(parsePrefix(prefix.trim())), name: printable(name) };
}
