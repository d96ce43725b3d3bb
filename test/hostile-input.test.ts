/**
 * The largest and worst input of each parser, in processor time: who sends it must not hold up everybody else.
 * Streams get what one read of a socket brings, as 65,536 pieces too; files of the operator get a line as long.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkServerIdentity } from "node:tls";
import { tryParseIp } from "../src/addr/ip.ts";
import { parseForeign } from "../src/api/foreign.ts";
import { priceOf, readTexts } from "../src/api/parameters.ts";
import { parseShownEnvironment } from "../src/cli/installed.ts";
import { parseEnvironmentFile } from "../src/config/environment-file.ts";
import { isSecret } from "../src/config/settings.ts";
import { parseTrustAnchors } from "../src/dns/dnssec/anchors.ts";
import { labelsOf } from "../src/dns/dnssec/names.ts";
import { parseHostname } from "../src/dns/hostname.ts";
import { decodeMessage } from "../src/dns/message/message.ts";
import { comparableValue } from "../src/dns/message/record.ts";
import { tryParseDnsServer } from "../src/dns/server.ts";
import { identifyCaller } from "../src/http/client-address.ts";
import { sentKey } from "../src/http/middleware.ts";
import { prefers } from "../src/http/request.ts";
import { parseRecords, readKeyFile } from "../src/keys/key-file.ts";
import { createDirectory } from "../src/locations/directory.ts";
import { MAX_QUESTION_BYTES, MESSAGE_VERSION, readQuestion } from "../src/locations/protocol.ts";
import { replyReader } from "../src/locations/replies.ts";
import { readAsnFile } from "../src/networks/asn-file.ts";
import { readNetworksFile } from "../src/networks/networks-file.ts";
import { bookmarkFor, parseBookmark } from "../src/page/browser/bookmark.ts";
import { targetIn } from "../src/page/browser/target-text.ts";
import { bodyCounter, headReader, MAX_HEAD_BYTES } from "../src/tools/check/http1.ts";
import { mtr } from "../src/tools/mtr/endpoint.ts";
import { TOOLS } from "../src/tools/table.ts";
import { traceroute } from "../src/tools/trace/endpoint.ts";
import { readEvents } from "../src/util/event-stream.ts";
import { median } from "../src/util/numbers.ts";
import { printable, quote, safeText } from "../src/util/text.ts";
import { programMissing, testWith } from "./lab/lab.ts";
import { encodeMmdb } from "./lab/mmdb.ts";
import { run } from "./lab/run.ts";

/** Milliseconds of processor time of one input, and of the largest message of an agent, on a machine of 2024. */
const [MOST_MS, MOST_OF_AGENT_MS] = [10, 45];

/** What takes such a machine a millisecond to read. */
const YARDSTICK = JSON.stringify(Array(11_000).fill({ ip: "2001:db8::1", hops: [1, 2.5, null] }));

/** What one read of a socket brings, and a line of a file. */
const READ_BYTES = 65_536;

/** Headers and paths of a request; `--max-http-header-size` allows a quarter. */
const HEADER_BYTES = 16_384;

const REPLY_BYTES = 384 * 1024;

/** Tries, of which the first ones compile, and the others share the processor with other tests. */
const TRIES = 40;

/** The processor time of one try, in milliseconds; whatever an input makes a parser throw is right. */
async function triedMs(parse: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  try {
    await parse();
  } catch {}
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** The least of several tries until one is quick enough, in milliseconds of a machine that is as fast as one of 2024. */
async function leastMs(parse: () => unknown, mostMs: number = MOST_MS): Promise<number> {
  let least = Infinity;
  const yardsticks: number[] = [];
  for (let attempt = 0; attempt < TRIES && least >= mostMs; attempt++) {
    least = Math.min(least, await triedMs(parse));
    yardsticks.push(await triedMs(() => JSON.parse(YARDSTICK)));
  }
  // Not the least: a short task has a lucky moment more often than a long one.
  return least / Math.max(1, median(yardsticks) ?? 1);
}

/** A text of a size with the same in the middle again and again. */
function filled(bytes: number, middle: string, before = "", behind = ""): string {
  const left = bytes - Buffer.byteLength(before + behind);
  return before + middle.repeat(Math.floor(left / Buffer.byteLength(middle))) + behind;
}

/** What people write to make a parser slow, at a size. */
const WORST: Readonly<Record<string, (bytes: number) => string>> = {
  ...Object.fromEntries(
    [..." \t\n\r,;:=\"'\\/@%.-#[({<>0a\u00ad\u200b\u{1f600}"].map((character) => [
      `only ${JSON.stringify(character)}`,
      (bytes: number) => filled(bytes, character),
    ]),
  ),
  "blanks with an end": (bytes) => filled(bytes, " ", "a", "b"),
  "commas and blanks": (bytes) => filled(bytes, ", ", "a"),
  "quotation marks with escapes": (bytes) => filled(bytes, '\\"', '"'),
  "an assignment of blanks": (bytes) => filled(bytes, " ", "A=", "\\"),
  "an assignment of words": (bytes) => filled(bytes, "a ", "A=", "\\"),
  "a URL of slashes": (bytes) => filled(bytes, "://", "https:"),
  "names with dots": (bytes) => filled(bytes, "a."),
  "escapes of a name": (bytes) => filled(bytes, "\\000"),
  "addresses with commas": (bytes) => filled(bytes, "2001:db8::1,"),
  "media ranges": (bytes) => filled(bytes, "text/html;q=0.1,"),
  "lines of fields": (bytes) => filled(bytes, "a: b\n"),
  "lines of values": (bytes) => filled(bytes, "A=b\n"),
  "empty lines that end as in Windows": (bytes) => filled(bytes, "\r\n"),
  brackets: (bytes) => filled(bytes / 2, "[") + filled(bytes / 2, "]"),
  "objects in each other": (bytes) => filled(bytes, '{"a":'),
  "combining marks": (bytes) => filled(bytes, "\u0301", "a"),
};

let folder: string;
const inFile = <T>(read: (path: string) => T) => {
  return (content: string | Uint8Array) => {
    const path = join(folder, "file");
    writeFileSync(path, content);
    return read(path);
  };
};

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-hostile-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

const headersOf = (name: string, text: string) =>
  new Headers([[name, text.replace(/[^ -~]/g, "")]]);

const PROXY = { peer: "::1", encrypted: false };
const TRUST = {
  trustedProxies: { unix: true, prefixes: [] },
  plainHttpFrom: [],
  keylessFrom: [],
} as never;

const pieces = async function* (text: string, size: number) {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
};

/** Reads a head in pieces. */
function readHead(text: string, size: number) {
  const read = headReader();
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) read(bytes.subarray(at, at + size));
}

/** Counts a body in chunks in pieces. */
function countBody(text: string, size: number) {
  const count = bodyCounter(true);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) count(bytes.subarray(at, at + size));
}

const inHead = (text: string) => `HTTP/1.1 301 M\r\nLocation: ${text}\r\n\r\n`;

const readAll = (text: string, size: number) => Array.fromAsync(readEvents(pieces(text, size)));

/** The parsers of texts, with the most that each gets. */
const PARSERS: readonly [name: string, bytes: number, parse: (text: string) => unknown][] = [
  ["a head of HTTP", MAX_HEAD_BYTES, (text) => readHead(text, READ_BYTES)],
  ["a redirect", MAX_HEAD_BYTES - 50, (text) => readHead(inHead(text), READ_BYTES)],
  ["a status line", MAX_HEAD_BYTES, (text) => readHead(`HTTP/1.1 ${text}`, READ_BYTES)],
  ["a redirect in single bytes", MAX_HEAD_BYTES / 4, (text) => readHead(inHead(text), 1)],
  ["a body in chunks", READ_BYTES, (text) => countBody(text, READ_BYTES)],
  ["a body in chunks in single bytes", MAX_HEAD_BYTES / 4, (text) => countBody(text, 1)],
  ["events of a service", READ_BYTES, (text) => readAll(text, READ_BYTES)],
  ["an event of a service", READ_BYTES, (text) => readAll(`event: a\ndata: ${text}\n\n`, 1024)],
  ["an answer of a service", READ_BYTES, (text) => parseForeign(text, READ_BYTES)],
  ["Accept", HEADER_BYTES, (text) => prefers(text, "text/html", "text/plain")],
  ["Authorization", HEADER_BYTES, (text) => sentKey(headersOf("authorization", `Bearer ${text}`))],
  ["X-API-Key", HEADER_BYTES, (text) => sentKey(headersOf("x-api-key", text))],
  [
    "X-Forwarded-For",
    HEADER_BYTES,
    (text) => identifyCaller({ ...PROXY, peer: null }, headersOf("x-forwarded-for", text), TRUST),
  ],
  [
    "X-Forwarded-Proto",
    HEADER_BYTES,
    (text) => identifyCaller({ ...PROXY, peer: null }, headersOf("x-forwarded-proto", text), TRUST),
  ],
  ...TOOLS.flatMap(({ name, endpoint: { parameters } }) =>
    Object.keys(parameters).map((parameter): (typeof PARSERS)[number] => [
      `the parameter ${parameter} of ${name}`,
      HEADER_BYTES,
      (text) => {
        priceOf({ parameters }, { [parameter]: [text] }, () => new Map());
        readTexts(parameters, { [parameter]: text });
      },
    ]),
  ),
  ["a host name", HEADER_BYTES, (text) => parseHostname(text, "AAAA")],
  ["a name for PTR", HEADER_BYTES, (text) => parseHostname(text, "PTR")],
  ["a DNS server", HEADER_BYTES, (text) => tryParseDnsServer(text)],
  ["a zone of a DNS server", HEADER_BYTES, (text) => tryParseDnsServer(`fe80::1%${text}`)],
  ["a value of DNS", READ_BYTES, (text) => comparableValue("NAPTR", text)],
  ["labels of a name", 1024, (text) => labelsOf(text)],
  ["trust anchors", READ_BYTES, (text) => parseTrustAnchors(text)],
  ["a networks file", READ_BYTES, inFile(readNetworksFile)],
  ["a name in a networks file", READ_BYTES, inFile((path) => readNetworksFile(path))],
  ["a keys file", READ_BYTES, inFile(readKeyFile)],
  ["a key of Valkey", 1024, (text) => parseRecords([text], "Valkey")],
  ["an environment file", READ_BYTES, (text) => parseEnvironmentFile("file", text)],
  ["the environment of a unit", READ_BYTES, (text) => parseShownEnvironment(text)],
  ["a setting", READ_BYTES, (text) => isSecret(text)],
  ["a link", READ_BYTES, (text) => parseBookmark(`#/ping/${text}`, ["ping"] as never)],
  ["a subject of a link", READ_BYTES, (text) => bookmarkFor("validate", text)],
  ["a pasted target", READ_BYTES, (text) => targetIn(text)],
  ["a text for people", READ_BYTES, (text) => [printable(text), quote(text)]],
  ["bytes for people", READ_BYTES, (text) => safeText(Buffer.from(text), 255)],
];

/** The inputs of `WORST` that take too long, with their milliseconds. */
async function slowInputs(bytes: number, parse: (text: string) => unknown) {
  const slow: string[] = [];
  for (const [what, make] of Object.entries(WORST)) {
    const text = make(bytes);
    const ms = await leastMs(() => parse(text));
    if (ms >= MOST_MS) slow.push(`${what}: ${ms} ms`);
  }
  return slow;
}

test.each(PARSERS)("%s takes little time", async (_, bytes, parse) => {
  expect(await slowInputs(bytes, parse)).toEqual([]);
});

/** A record of DNS with the name in bytes. */
function record(name: readonly number[], type: number, data: Uint8Array): Uint8Array {
  const { length } = data;
  const fields = [type >> 8, type & 255, 0, 1, 0, 0, 0, 0, length >> 8, length & 255];
  return Buffer.concat([Uint8Array.from([...name, ...fields]), data]);
}

/** A response of DNS with as many records as there is room for, in the answer or the additional section. */
function response(
  make: (index: number) => Uint8Array,
  begin: Uint8Array = new Uint8Array(),
  isAdditional = false,
) {
  const records: Uint8Array[] = begin.length > 0 ? [begin] : [];
  let bytes = 12 + begin.length;
  for (let index = 0; bytes + make(index).length < READ_BYTES; index++) {
    records.push(make(index));
    bytes += make(index).length;
  }
  const { length } = records;
  const counts = isAdditional
    ? [0, 0, 0, 0, length >> 8, length & 255]
    : [length >> 8, length & 255, 0, 0, 0, 0];
  return Buffer.concat([Uint8Array.from([0, 0, 0x81, 0x80, 0, 0, ...counts]), ...records]);
}

/** The largest data of a record. */
const DATA_BYTES = 65_500;

/** A record whose name has 127 labels, to which others point. */
const LONG_NAME = record([...Array(127).fill([1, 0]).flat(), 0], 2, Uint8Array.of(0xc0, 12));

const pointer = (index: number) => [0xc0, 12 + 2 * (index % 120)];

test.each<[string, () => Uint8Array]>([
  ["empty texts", () => response(() => record([0], 16, new Uint8Array(DATA_BYTES)))],
  [
    "texts of control characters",
    () => response(() => record([0], 16, Buffer.alloc(DATA_BYTES, "\x0f"))),
  ],
  ["addresses", () => response(() => record([0], 1, new Uint8Array(4)))],
  ["records without data", () => response(() => record([0], 999, new Uint8Array()))],
  [
    "a record of an unknown type",
    () => response(() => record([0], 999, new Uint8Array(DATA_BYTES))),
  ],
  ["a large key", () => response(() => record([0], 48, Buffer.alloc(DATA_BYTES, 255)))],
  [
    "pointers to a long name",
    () =>
      response(
        (index) => record(pointer(index), 5, Uint8Array.from(pointer(7 * index))),
        LONG_NAME,
      ),
  ],
  [
    "parameters of a service",
    () =>
      response(() =>
        record(
          [0],
          64,
          Buffer.concat([
            Uint8Array.of(0, 1, 0),
            ...Array.from({ length: 16_000 }, (_, key) => Uint8Array.of(key >> 8, key & 255, 0, 0)),
          ]),
        ),
      ),
  ],
  [
    "protocols of a service",
    () =>
      response(() =>
        record(
          [0],
          64,
          Buffer.concat([Uint8Array.of(0, 1, 0, 0, 1, 0xfe, 0), Buffer.alloc(0xfe00, 1)]),
        ),
      ),
  ],
  [
    "types of a denial",
    () =>
      response(() =>
        record(
          [0],
          47,
          Buffer.concat([
            Uint8Array.of(0),
            ...Array.from({ length: 256 }, (_, window) =>
              Buffer.concat([Uint8Array.of(window, 32), Buffer.alloc(32, 255)]),
            ),
          ]),
        ),
      ),
  ],
  ["address prefixes", () => response(() => record([0], 42, new Uint8Array(DATA_BYTES)))],
  ["options", () => response(() => record([0], 41, new Uint8Array(DATA_BYTES)), undefined, true)],
  [
    "errors without a text",
    () =>
      response(
        () => record([0], 41, Buffer.concat(Array(10_000).fill(Uint8Array.of(0, 15, 0, 2, 0, 0)))),
        undefined,
        true,
      ),
  ],
])("a response of DNS with %s takes little time", async (_, make) => {
  const bytes = make();
  expect(await leastMs(() => decodeMessage(bytes))).toBeLessThan(MOST_MS);
});

test("a file of autonomous systems with the largest record takes little time at each look-up", async () => {
  const part = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`f${at}`, "x".repeat(20)]),
  );
  const fields = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`part${at}`, part]));
  const table = inFile(readAsnFile)(encodeMmdb([["2001:db8::/32", { ...fields, asn: 64_496 }]]));
  const ip = tryParseIp("2001:db8::1");
  if (ip === null) throw new Error("an address");
  expect(table.find(ip)?.asn).toBe(64_496);
  expect(await leastMs(() => table.find(ip))).toBeLessThan(MOST_MS);
});

/** Names of a certificate, of which a chain of 100 KB, the most that TLS takes, has as many. */
const NAMES = 4000;

testWith(programMissing("openssl"))(
  "a certificate of the largest size takes little time",
  async () => {
    const file = join(folder, "key.pem");
    const names = Array.from(
      { length: NAMES },
      (_, at) => `DNS:a${at}.${"x".repeat(12)}.example`,
    ).join();
    const config = join(folder, "openssl.cnf");
    writeFileSync(
      config,
      `[req]\ndistinguished_name=d\nx509_extensions=e\n[d]\n[e]\nsubjectAltName=${names}\n`,
    );
    const pem = await run([
      "openssl",
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      file,
      "-subj",
      "/CN=x",
      "-config",
      config,
    ]);
    const judge = () =>
      checkServerIdentity("www.example.com", new X509Certificate(pem).toLegacyObject() as never);
    expect(await leastMs(judge)).toBeLessThan(MOST_MS);
  },
);

describe("agents", () => {
  /** As many values as a message of a size may have. */
  const values = (bytes: number) => bytes / 16 - 64;
  const result = (fields: object) =>
    JSON.stringify({ result: { ...mtr.example, target: "::1", ip: "::1", ...fields } });
  const hop = { ...(mtr.example as { hops: object[] }).hops[0] };
  const address = { ip: "2001:db8::1", hostname: "x".repeat(200), received: 1, share: 1 };
  const keys = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${at}`, 0]));
  const many = <T>(value: T, count: number) => Array<T>(Math.floor(count)).fill(value);
  const COUNT = values(REPLY_BYTES);

  test("a run of 100 rounds over 30 hops with names has a tenth of a message, and one with 1,024 addresses fits", () => {
    const hopWith = (count: number, name: number) => ({
      ...hop,
      addresses: many({ ...address, hostname: "x".repeat(name) }, count),
    });
    expect(result({ hops: many(hopWith(4, 40), 30) }).length).toBeLessThan(REPLY_BYTES / 10);
    const largest = result({ target: "::1", hops: many(hopWith(16, 200), 64) });
    const read = replyReader("ams", {
      endpoint: mtr as never,
      parameters: { target: "::1", maxHops: "64", rounds: "10" },
    });
    expect(read(null, { data: Buffer.from(largest) } as never)).toHaveProperty("result");
  });

  test.each<[string, () => string]>([
    ["hops", () => result({ hops: many(hop, COUNT / 26) })],
    ["hops with other fields", () => result({ hops: many({ ...hop, ...keys(20) }, COUNT / 50) })],
    ["hops without fields", () => result({ hops: many({}, COUNT / 2.1) })],
    [
      "hops of a few addresses",
      () => result({ hops: many({ ...hop, addresses: many(address, 40) }, 30) }),
    ],
    [
      "addresses without fields",
      () => result({ hops: [{ ...hop, addresses: many({}, COUNT / 2.1) }] }),
    ],
    [
      "addresses without fields of many hops",
      () => result({ hops: many({ addresses: many({}, COUNT / 70) }, 30) }),
    ],
    [
      "paths of silence",
      () =>
        result({
          details: { paths: many({ rounds: 1, reached: false, addresses: [null] }, COUNT / 5.1) },
        }),
    ],
    ["other fields", () => result(keys(COUNT - 100))],
    ["other fields beside the result", () => JSON.stringify({ result: {}, ...keys(COUNT - 100) })],
    ["texts", () => result({ more: many("\u0000", COUNT - 100) })],
    ["a text of control characters", () => result({ more: "\u0000".repeat(REPLY_BYTES / 6.1) })],
    ["a text of invisible characters", () => result({ more: "\u00ad".repeat(REPLY_BYTES / 2.1) })],
    ["a text of both", () => result({ more: "a\u00ad".repeat(REPLY_BYTES / 3.1) })],
    ["a long name", () => result({ target: "a".repeat(REPLY_BYTES - 2000) })],
    ["a long number", () => `{"result":${"9".repeat(REPLY_BYTES - 100)}}`],
    [
      "an event of hops without fields",
      () => JSON.stringify({ event: "round", data: { hops: many({}, COUNT / 2.1) } }),
    ],
    [
      "an error with other fields",
      () =>
        JSON.stringify({
          error: { code: "INVALID_ADDRESS", message: "m", details: keys(COUNT - 100) },
        }),
    ],
    ...Object.entries(WORST).map(([what, make]): [string, () => string] => [
      what,
      () => make(REPLY_BYTES),
    ]),
  ])("a message with %s takes little time", async (_, make) => {
    const data = Buffer.from(make());
    expect(data.length).toBeLessThanOrEqual(REPLY_BYTES);
    const question = { endpoint: mtr as never, parameters: { target: "::1" } };
    const read = () => replyReader("ams", question)(null, { data } as never);
    expect(await leastMs(read, MOST_OF_AGENT_MS)).toBeLessThan(MOST_OF_AGENT_MS);
  });

  test.each<[string, () => string]>([
    [
      "many nodes",
      () =>
        JSON.stringify({
          result: {
            ...traceroute.example,
            details: { paths: { nodes: many({}, COUNT / 2.1), edges: [] } },
          },
        }),
    ],
    [
      "many edges",
      () =>
        JSON.stringify({
          result: {
            ...traceroute.example,
            details: {
              paths: { nodes: [], edges: many({ from: 1, to: 2, labels: 1 }, COUNT / 4.1) },
            },
          },
        }),
    ],
  ])("a search for paths with %s takes little time", async (_, make) => {
    const data = Buffer.from(make());
    const question = { endpoint: traceroute as never, parameters: { target: "::1" } };
    const read = () => replyReader("ams", question)(null, { data } as never);
    expect(await leastMs(read, MOST_OF_AGENT_MS)).toBeLessThan(MOST_OF_AGENT_MS);
  });

  test("headers of a message are not read, for which the client would take minutes", () => {
    const message = {
      data: new Uint8Array(),
      size: () => 1e6,
      get headers() {
        throw new Error("read");
      },
    };
    const read = replyReader("ams", { endpoint: mtr as never, parameters: { target: "::1" } });
    expect(() => read(null, message as never)).toThrow("not valid");
  });

  test("questions and announcements take little time", async () => {
    const directory = createDirectory([], { info() {}, warn() {} });
    const read = (text: string) => readQuestion(Buffer.from(text));
    const note = (text: string) => directory.note("ams", "00000000", Buffer.from(text), 0);
    expect(await slowInputs(MAX_QUESTION_BYTES, read)).toEqual([]);
    expect(await slowInputs(2048, note)).toEqual([]);
  });

  test("a question with as many prefixes as it may have takes little time", async () => {
    const targets = {
      mode: "any",
      allow: many("2001:db8:ffff:ffff::/64", 1500),
      deny: many("2001:db8::/32", 1000),
    };
    const question = {
      version: MESSAGE_VERSION,
      endpoint: "mtr",
      parameters: {},
      owner: "0123456789abcdef",
      token: crypto.randomUUID(),
      targets,
      events: true,
    };
    const data = Buffer.from(JSON.stringify(question));
    expect(readQuestion(data)?.targets.allow.length).toBe(1500);
    expect(await leastMs(() => readQuestion(data))).toBeLessThan(MOST_MS);
  });
});
