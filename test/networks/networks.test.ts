/** The files that say whose network an address belongs to. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tryParseIp } from "../../src/addr/ip.ts";
import { readAsnFile } from "../../src/networks/asn-file.ts";
import type { NetworkTable } from "../../src/networks/network.ts";
import { openNetworks } from "../../src/networks/networks.ts";
import { readNetworksFile } from "../../src/networks/networks-file.ts";
import { createLog } from "../../src/util/log.ts";
import { encodeMmdb, type MmdbOptions, type MmdbValue } from "../lab/mmdb.ts";
import { run } from "../lab/run.ts";
import { randomFrom } from "../lab/simulation.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-networks-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

function file(content: string | Buffer, name = "file"): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function find(table: Pick<NetworkTable, "find">, text: string) {
  const ip = tryParseIp(text);
  if (ip === null) throw new Error(`${text} is not an address`);
  return table.find(ip);
}

const asnFile = (records: [string, MmdbValue][], options?: MmdbOptions) =>
  readAsnFile(file(encodeMmdb(records, options)));

const GEOLITE = { autonomous_system_number: 64496, autonomous_system_organization: "Example" };

describe("a record of an ASN file", () => {
  const known = { asn: 64496, name: "Example" };
  const rows: [string, MmdbValue, { asn: number | null; name: string | null } | null][] = [
    ["of GeoLite, DB-IP Lite and ip-location-db", GEOLITE, known],
    ["of IPinfo Lite", { country_code: "XX", asn: "AS64496", as_name: "Example" }, known],
    ["of older files of IPinfo", { asn: "AS64496", name: "Example", domain: "x.test" }, known],
    ["of iptoasn", { AS_number: 64496, AS_description: "Example" }, known],
    [
      "of iptoasn, with text in lower case",
      { as_number: "64496", as_description: "Example" },
      known,
    ],
    ["without a name", { asn: 64496 }, { asn: 64496, name: null }],
    ["with an empty name", { asn: "AS64496", as_name: "" }, { asn: 64496, name: null }],
    ["without a number", { asn: "", name: "Example" }, { asn: null, name: "Example" }],
    ["with the largest number", { asn: 0xffff_ffff }, { asn: 0xffff_ffff, name: null }],
    ["with a number that is too large", { asn: "4294967296" }, null],
    ["that is not routed", { AS_number: 0, AS_description: "Not routed" }, null],
    ["of a city", { city: { names: { en: "Berlin" } } }, null],
    ["that is a text", "Example", null],
    ["with controls in its name", { asn: 1, name: "a\u001b[2Jb" }, { asn: 1, name: "a\ufffd[2Jb" }],
  ];
  test.each(rows)("%s", (_, record, expected) => {
    const network = find(asnFile([["2001:db8::/32", record]]), "2001:db8::1");
    const rest = { prefix: "2001:db8::/32", source: "asn-file" };
    expect(network as unknown).toEqual(expected && { ...expected, ...rest });
  });
});

describe("an ASN file", () => {
  const BLOCKS: [string, MmdbValue][] = [
    ["2001:db8::/32", { asn: 1 }],
    ["2001:db8:8000::/33", { asn: 2 }],
    ["2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128", { asn: 3 }],
    ["192.0.2.0/24", { asn: 4 }],
  ];
  const rows: [string, number, string][] = [
    ["2001:db8::", 1, "2001:db8::/33"],
    ["2001:db8:7fff::1", 1, "2001:db8::/33"],
    ["2001:db8:8000::", 2, "2001:db8:8000::/34"],
    ["2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", 3, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128"],
    ["192.0.2.255", 4, "192.0.2.0/24"],
  ];
  for (const recordSize of [24, 28, 32] as const) {
    test.each(rows)(`with records of ${recordSize} bits: %s is in %d, %s`, (ip, asn, prefix) => {
      expect(find(asnFile(BLOCKS, { recordSize }), ip)).toMatchObject({ asn, prefix });
    });
  }

  test.each(["2001:db7::", "2001:db9::", "192.0.3.0", "::192.0.2.1", "::1"])(
    "does not have %s",
    (ip) => expect(find(asnFile(BLOCKS), ip)).toBeNull(),
  );

  test("of IPv4 alone has no IPv6 address, also if the first bits are the same", () => {
    const table = asnFile([["32.1.0.0/16", { asn: 1 }]], { ipVersion: 4 });
    expect(find(table, "32.1.13.184")).toMatchObject({ asn: 1, prefix: "32.1.0.0/16" });
    expect(find(table, "2001:db8::1")).toBeNull();
  });

  test("says what it is", () => {
    const { summary } = asnFile(BLOCKS, { databaseType: "GeoLite2-ASN" });
    expect(summary).toBe("GeoLite2-ASN of 2026-11-01");
  });

  const whole = encodeMmdb(BLOCKS);
  const epoch = whole.indexOf("build_epoch") + "build_epoch".length;
  test.each([
    ["is empty", Buffer.alloc(0)],
    ["is a text", Buffer.from("prefix,name\n".repeat(100))],
    ["lacks its end", whole.subarray(0, -150)],
    ["lacks its begin", whole.subarray(100)],
    [
      "has a text for the time of its build",
      Buffer.concat([
        whole.subarray(0, epoch),
        Buffer.from([0x44]),
        Buffer.from("none"),
        whole.subarray(epoch + 5),
      ]),
    ],
    ["is of zeros", Buffer.alloc(100_000)],
  ])("is refused if it %s", (_, content) => {
    const path = file(content);
    expect(() => readAsnFile(path)).toThrow(`cannot read the ASN file ${path}: `);
    expect(() => readAsnFile(path)).toThrow(`cannot read the ASN file ${path}: `);
  });

  test("is refused if it is missing", () => {
    const path = join(folder, "none");
    expect(() => readAsnFile(path)).toThrow(/cannot read the ASN file .*none: ENOENT/);
  });

  test("is refused if it is a FIFO, without waiting for a writer", async () => {
    const path = join(folder, "fifo");
    await run(["mkfifo", path]);
    expect(() => readAsnFile(path)).toThrow("not a regular file");
    expect(() => readNetworksFile(path)).toThrow("not a regular file");
  });
});

/** Forty maps at an offset of a part of a file, each with two pointers to the next one: 2^40 values. */
function doublingMaps(offset: number): Buffer {
  const MAP_BYTES = 9;
  return Buffer.concat(
    Array.from({ length: 40 }, (_, index) => {
      const next = offset + MAP_BYTES * (index < 39 ? index + 1 : index);
      const pointer = [0x20 | (next >> 8), next & 0xff];
      return Buffer.from([0xe2, 0x41, 0x61, ...pointer, 0x41, 0x62, ...pointer]);
    }),
  );
}

describe("an ASN file whose pointers never end", () => {
  const whole = encodeMmdb([["2000::/3", { asn: 1 }]]);
  const marker = whole.indexOf("MaxMind.com") - 3;
  const [before, metadata] = [whole.subarray(0, marker), whole.subarray(marker + 14)];
  const MARKER = whole.subarray(marker, marker + 14);
  const inRecord = (block: string) => {
    const file = encodeMmdb([[block, "x"]]);
    const end = file.indexOf("MaxMind.com") - 3;
    // The record is a text of one letter.
    return Buffer.concat([file.subarray(0, end - 2), doublingMaps(0), file.subarray(end)]);
  };
  const inMetadata = Buffer.concat([
    ...[before, MARKER, Buffer.of((metadata[0] ?? 0) + 1), metadata.subarray(1)],
    ...[Buffer.from("Ax"), doublingMaps(metadata.length + 2)],
  ]);

  test.each([
    ["in its metadata", inMetadata],
    ["in the record of a large block", inRecord("2000::/3")],
    ["in the record of IPv4", inRecord("0.0.0.0/1")],
  ])("%s is refused when it is read", (_, bytes) => {
    expect(() => readAsnFile(file(bytes))).toThrow(/: a record has more than 1000 values; it must/);
  });

  test("in the record of an address is no longer used", async () => {
    const table = readAsnFile(file(inRecord("2001:db8::1/128")));
    expect(find(table, "2001:db8::2")).toBeNull();
    expect(() => find(table, "2001:db8::1")).toThrow("a record has more than 1000 values");
  });

  test("or with any other damage: it is refused, or its addresses are looked up", () => {
    const random = randomFrom(22);
    const files = [inRecord("2001:db8::1/128"), whole];
    for (let run = 0; run < 300; run++) {
      const bytes = Buffer.from(files[run % 2] ?? whole);
      for (let flip = 0; flip < 3; flip++) {
        bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
      }
      try {
        find(readAsnFile(file(bytes)), "2001:db8::1");
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
    }
  });
});

describe("a networks file", () => {
  const CSV = `\ufeffprefix,name\r
# the offices
2001:db8::/32 , Everything\r
2001:db8:1::/48,"Berlin, 2nd floor ""west"""

2001:db8:1:1::1,Printer
10.0.0.0/8,Intranet
::ffff:192.0.2.0/120,Written as IPv6
0.0.0.0/0,IPv4`;
  const rows: [string, string | null, string][] = [
    ["2001:db8::1", "Everything", "2001:db8::/32"],
    ["2001:db8:1::1", 'Berlin, 2nd floor "west"', "2001:db8:1::/48"],
    ["2001:db8:1:1::1", "Printer", "2001:db8:1:1::1/128"],
    ["10.1.2.3", "Intranet", "10.0.0.0/8"],
    ["192.0.2.7", "Written as IPv6", "192.0.2.0/24"],
    ["192.0.3.7", "IPv4", "0.0.0.0/0"],
    ["2001:db9::1", null, ""],
  ];
  test.each(rows)("%s is in %p", (ip, name, prefix) => {
    const network = name === null ? null : { asn: null, name, prefix, source: "networks-file" };
    expect(find(readNetworksFile(file(CSV)), ip) as unknown).toEqual(network);
  });

  test("says how many networks it has", () => {
    expect(readNetworksFile(file(CSV)).summary).toBe("networks: 6");
    expect(readNetworksFile(file("")).summary).toBe("networks: 0");
  });

  test.each([
    ["without a name", "2001:db8::/32", "it must be a prefix, a comma and a name"],
    ["with an empty name", '2001:db8::/32,""', "it must be a prefix, a comma and a name"],
    ["with a host in its prefix", "2001:db8::1/32,a", "did you mean 2001:db8::/32?"],
    ["that begins with a number", "1,2001:db8::/32,a", "fewer than four decimals"],
    ["with a header that is not first", "#\nprefix,name", 'line 3, "prefix,name"'],
    ["that is listed twice", "::/0,a\n::/0,b", 'line 3, "::/0,b": ::/0 is listed twice'],
  ])("is refused with a line %s", (_, line, reason) => {
    const path = file(`2001:db8:1::/48,first\n${line}\n`);
    expect(() => readNetworksFile(path)).toThrow(`cannot use the networks file ${path}: `);
    expect(() => readNetworksFile(path)).toThrow(reason);
    expect(() => readNetworksFile(path)).toThrow(`cannot use the networks file ${path}: line `);
  });
});

describe("networks", () => {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const log = createLog({ level: "info", format: "text", priorities: false, write });
  beforeEach(() => void lines.splice(0));

  const open = async (networksFile: string | null, asnFile: string | null) => {
    const networks = await openNetworks({ networksFile, asnFile }, log);
    if (networks === null) throw new Error("no file is named");
    return networks;
  };

  test("are null without files", async () => {
    expect(await openNetworks({ networksFile: null, asnFile: null }, log)).toBeNull();
  });

  test("are first those of the networks file", async () => {
    const asn = file(encodeMmdb([["2001:db8::/32", { asn: 1 }]]), "asn");
    const networks = await open(file("2001:db8:1::/48,ours"), asn);
    expect(find(networks, "2001:db8:1::1")).toMatchObject({ name: "ours", asn: null });
    expect(find(networks, "2001:db8:2::1")).toMatchObject({ asn: 1, source: "asn-file" });
    expect(lines).toEqual([]);
  });

  test("are read again; a broken file is logged, and what it contained stays", async () => {
    const own = file("::/0,old", "own");
    const asn = file(encodeMmdb([["192.0.2.0/24", { asn: 1 }]]), "asn");
    const networks = await open(own, asn);
    file("nonsense", "own");
    file("nonsense", "asn");
    networks.reload();
    expect(lines).toEqual([
      expect.stringMatching(/level=error .*line 1, .*; the old networks stay in use"/),
      expect.stringMatching(/level=error .*ASN file.*; the old networks stay in use"/),
    ]);
    expect(find(networks, "::1")?.name).toBe("old");
    expect(find(networks, "192.0.2.1")?.asn).toBe(1);
    lines.length = 0;
    file("::/0,new", "own");
    file(encodeMmdb([["192.0.2.0/24", { asn: 2 }]]), "asn");
    networks.reload();
    await Bun.sleep(0);
    expect(lines).toEqual([
      expect.stringMatching(/level=info .*msg="networks read again" .*content="networks: 1"/),
      expect.stringMatching(/level=info .*content="Test-ASN of 2026-11-01"/),
    ]);
    expect(find(networks, "::1")?.name).toBe("new");
    expect(find(networks, "192.0.2.1")?.asn).toBe(2);
    expect(networks?.reads).toEqual({ done: 2, failed: 2 });
  });

  test("are read again after a change, also if the file was missing at the start", async () => {
    const path = join(folder, "later");
    const networks = await open(path, null);
    expect(lines).toEqual([
      expect.stringMatching(/ENOENT.*; until it can be used, no network is found in it"/),
    ]);
    networks.watch();
    writeFileSync(join(folder, "new"), "::/0,here");
    renameSync(join(folder, "new"), path);
    while (find(networks, "::1") === null) await Bun.sleep(10);
    expect(find(networks, "::1")?.name).toBe("here");
  });

  test("are no longer looked up in a file that proves to be damaged, until it changes", async () => {
    const bytes = encodeMmdb([["2001:db8::/32", { asn: 1 }]]);
    const good = Buffer.from(bytes);
    // The type of the record's first field becomes one that does not exist.
    bytes.set([0x00, 0xff], bytes.indexOf("asn") - 1);
    const networks = await open(null, file(bytes));
    expect(find(networks, "2001:db9::1")).toBeNull();
    expect(find(networks, "2001:db8::1")).toBeNull();
    expect(find(networks, "2001:db8::1")).toBeNull();
    expect(lines).toEqual([expect.stringContaining("is damaged: ")]);
    file(good);
    networks.reload();
    expect(find(networks, "2001:db8::1")?.asn).toBe(1);
  });
});
