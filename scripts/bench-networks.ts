/**
 * Measures how long it takes to find the networks of a trace's hops in an MMDB file with 100,000 rows,
 * and to read that file: `bun run bench networks`.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tryParseIp } from "../src/addr/ip.ts";
import { readAsnFile } from "../src/networks/asn-file.ts";
import { readNetworksFile } from "../src/networks/networks-file.ts";
import { encodeMmdb } from "../test/lab/mmdb.ts";
import { median } from "./measure.ts";

const ROWS = 100_000;
const HOPS = 100;
const ROUNDS = 101;

const hex = (value: number) => value.toString(16);

/** A /40 for each row, in 2a00::/12 as the registries allocate them. */
const prefixes = Array.from(
  { length: ROWS },
  (_, row) => `2a0${hex(row >> 14)}:${hex(row & 0x3fff)}:${hex((row % 7) << 8)}::/40`,
);
const hops = Array.from({ length: HOPS }, (_, hop) => {
  const ip = tryParseIp((prefixes[hop * 997] ?? "").replace("::/40", "::1"));
  if (ip === null) throw new Error("a hop has no address");
  return ip;
});

const folder = mkdtempSync(join(tmpdir(), "sixscope-bench-"));
const asnFile = join(folder, "asn.mmdb");
const networksFile = join(folder, "networks.csv");
const record = (row: number) => ({
  autonomous_system_number: 1 + (row % 80_000),
  autonomous_system_organization: `Network ${row}`,
});
writeFileSync(asnFile, encodeMmdb(prefixes.map((prefix, row) => [prefix, record(row)])));
writeFileSync(networksFile, prefixes.map((prefix, row) => `${prefix},Network ${row}`).join("\n"));

function timed<T>(work: () => T): { readonly ms: number; readonly result: T } {
  const from = performance.now();
  const result = work();
  return { ms: performance.now() - from, result };
}

const rows: Record<string, Record<string, string>> = {};
for (const [name, read] of [
  [asnFile, () => readAsnFile(asnFile)],
  [networksFile, () => readNetworksFile(networksFile)],
] as const) {
  const { ms: readMs, result: table } = timed(read);
  const rounds = Array.from({ length: ROUNDS }, () => timed(() => hops.map(table.find)));
  const found = rounds[0]?.result.filter((network) => network !== null).length;
  const [first = Number.NaN, ...later] = rounds.map(({ ms }) => ms);
  rows[name.slice(folder.length + 1)] = {
    MiB: (Bun.file(name).size / 1024 / 1024).toFixed(1),
    "to read, ms": readMs.toFixed(1),
    [`${HOPS} hops, first time, ms`]: first.toFixed(2),
    [`${HOPS} hops, ms`]: median(later).toFixed(3),
    found: `${found}`,
  };
}
rmSync(folder, { recursive: true });
console.log(`\nThe networks of ${HOPS} hops, in files with ${ROWS.toLocaleString("en")} rows`);
console.table(rows);
