/**
 * Nanoseconds for an operation on an IPv6 address, beside node:net, ipaddr.js and ip-address in the
 * same run: `bun run bench addr`. Rounds of all rows are interleaved, so that a busy moment of the
 * machine affects every row, and each row shows the median of its rounds.
 */
import { isIPv6 } from "node:net";
import { Address6 } from "ip-address";
import ipaddr from "ipaddr.js";
import { classifyIpv6 } from "../src/addr/classify.ts";
import { formatIpv6, formatIpv6Expanded } from "../src/addr/format.ts";
import { tryParseIpv6 } from "../src/addr/ipv6.ts";
import { describeIpv6 } from "../src/routes/address-details.ts";
import { parseIpv6 } from "../test/addr/parse.ts";
import { median } from "./measure.ts";

const ROUNDS = 31;
/** A round of one row takes at least this long. */
const ROUND_MS = 4;

const INPUTS = {
  valid: [
    "2001:db8::1",
    "2001:db8:85a3:8d3:1319:8a2e:370:7348",
    "fe80::1ff:fe23:4567:890a",
    "2a00:1450:4001:82a::200e",
    "2606:4700:4700::1111",
    "::1",
    "ff02::1:ff00:1",
    "FD12:3456:789A:1::1",
  ],
  "valid, dotted tail": [
    "::ffff:192.0.2.1",
    "64:ff9b::198.51.100.7",
    "::13.1.68.3",
    "0:0:0:0:0:ffff:129.144.52.38",
  ],
  invalid: [
    "2001:db8::1::2",
    "2001:db8:85a3:8d3:1319:8a2e:370:7348:1",
    "fe80::1%eth0",
    "2001:db8::/32",
    "192.0.2.1",
    "localhost",
    "12345::",
    "::1.2.3.256",
  ],
};

interface Row {
  readonly name: string;
  readonly run: (text: string) => unknown;
}

const PARSERS: readonly Row[] = [
  { name: "sixscope tryParseIpv6", run: tryParseIpv6 },
  { name: "node:net isIPv6", run: isIPv6 },
  { name: "ipaddr.js IPv6.isValid", run: (text) => ipaddr.IPv6.isValid(text) },
  { name: "ipaddr.js IPv6.parse", run: orNull((text) => ipaddr.IPv6.parse(text)) },
  { name: "ip-address Address6.isValid", run: (text) => Address6.isValid(text) },
  { name: "ip-address new Address6", run: orNull((text) => new Address6(text)) },
];

const WHOLE: readonly Row[] = [
  { name: "sixscope parse, classify, both forms", run: sixscopeValidate },
  {
    name: "ipaddr.js parse, range, both forms",
    run: (text) => {
      const address = ipaddr.IPv6.parse(text);
      // Its expanded form lacks the leading zeros; the padded one is not in its type declarations.
      const forms = [address.toRFC5952String(), address.toNormalizedString()];
      return weigh(address.range(), ...forms);
    },
  },
  {
    name: "ip-address parse, type, both forms",
    run: (text) => {
      const address = new Address6(text);
      return weigh(address.getType(), address.correctForm(), address.canonicalForm());
    },
  },
  {
    name: "sixscope, with all details as JSON",
    run: (text) => sixscopeValidate(text) + weigh(JSON.stringify(describeIpv6(parseIpv6(text)))),
  },
];

function sixscopeValidate(text: string): number {
  const address = parseIpv6(text);
  return weigh(classifyIpv6(address), formatIpv6(address), formatIpv6Expanded(address));
}

/** Reads a character of each text, because the runtime joins strings only when they are read. */
function weigh(...texts: string[]): number {
  return texts.reduce((sum, text) => sum + text.charCodeAt(text.length - 1), 0);
}

/** Turns a parser that throws into one that returns null. */
function orNull(parse: (text: string) => unknown): (text: string) => unknown {
  return (text) => {
    try {
      return parse(text);
    } catch {
      return null;
    }
  };
}

/** Keeps results alive, so that the compiler cannot remove a row. */
const kept: unknown[] = [null];

/** Nanoseconds per operation, over so many passes through the texts. */
function time(run: Row["run"], texts: readonly string[], passes: number): number {
  const start = Bun.nanoseconds();
  for (let pass = 0; pass < passes; pass++) {
    for (const text of texts) kept[0] = run(text);
  }
  return (Bun.nanoseconds() - start) / (passes * texts.length);
}

/** Passes that fill a round, found after a warm-up that lets the compiler finish. */
function passesFor(run: Row["run"], texts: readonly string[]): number {
  for (let pass = 0; pass < 20; pass++) time(run, texts, 500);
  return Math.ceil((ROUND_MS * 1e6) / (time(run, texts, 200) * texts.length));
}

function compare(title: string, rows: readonly Row[], texts: readonly string[]): void {
  const tasks = rows.map((row) => ({ ...row, passes: passesFor(row.run, texts), ns: [0] }));
  for (const task of tasks) task.ns.length = 0;
  for (let round = 0; round < ROUNDS; round++) {
    for (const { run, passes, ns } of tasks) ns.push(time(run, texts, passes));
  }
  console.log(`\n${title}`);
  const own = median(tasks[0]?.ns ?? []);
  for (const { name, ns } of tasks) {
    const each = median(ns);
    const ratio = (each / own).toFixed(2);
    console.log(`  ${name.padEnd(44)}${each.toFixed(1).padStart(10)} ns${ratio.padStart(9)}×`);
  }
}

console.log(`Bun ${Bun.version}, ${process.platform} ${process.arch}, median of ${ROUNDS} rounds`);
for (const [kind, texts] of Object.entries(INPUTS)) compare(`Parse: ${kind}`, PARSERS, texts);
compare("The whole of /validate: valid", WHOLE, INPUTS.valid);
