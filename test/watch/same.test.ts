import { expect, test } from "bun:test";
import { pathOf, sameParts } from "../../src/watch/same.ts";

const hops = (...ips: (string | null)[]) =>
  ips.map((ip, index) => ({ hop: index + 1, ip, hostname: null }));
const step = (ip: string, sha256?: string) => ({ ip, ...(sha256 && { certificate: { sha256 } }) });

test.each<[about: string, before: object, after: object, same: string[]]>([
  ["nothing is known", {}, {}, []],
  [
    "a verdict",
    { details: { verdict: { code: "works" } } },
    { details: { verdict: { code: "works" } } },
    ["verdict"],
  ],
  [
    "another one",
    { details: { verdict: { code: "works" } } },
    { details: { verdict: { code: "no" } } },
    [],
  ],
  [
    "addresses in another order",
    { details: { addresses: [{ ip: "::1" }, { ip: "::2" }] } },
    { details: { addresses: [{ ip: "::2" }, { ip: "::1" }] } },
    ["addresses"],
  ],
  ["one address more", { ip: "::1" }, { ip: "::1", details: { addresses: [{ ip: "::2" }] } }, []],
  ["the path", { hops: hops("::1", null, "::2") }, { hops: hops("::1", null, "::2") }, ["path"]],
  ["silence", { hops: hops(null, null) }, { hops: hops(null, null) }, []],
  ["a router elsewhere", { hops: hops(null, "::1") }, { hops: hops("::1", null) }, []],
  [
    "the path of a check",
    { details: { path: { hops: hops("::1") } } },
    { details: { path: { hops: hops("::1") } } },
    ["path"],
  ],
  ["the path MTU", { mtu: 1500 }, { mtu: 1500 }, ["path MTU of 1500 bytes"]],
  ["another MTU", { mtu: 1500 }, { mtu: 1400 }, []],
  ["no MTU", { mtu: null }, { mtu: null }, []],
  [
    "a certificate",
    { steps: [step("::1", "ab")] },
    { steps: [step("::1", "ab")] },
    ["addresses", "certificate"],
  ],
  [
    "another certificate",
    { steps: [step("::1", "ab")] },
    { steps: [step("::1", "cd")] },
    ["addresses"],
  ],
  ["no certificate", { steps: [step("::1")] }, { steps: [step("::1")] }, ["addresses"]],
])("what is the same: %s", (_, before, after, same) => {
  expect(sameParts(before, after)).toEqual(same);
});

const hop = { hop: 1, ip: "::1", hostname: null };

test.each<[about: string, document: object, path: object]>([
  ["nothing", {}, { hops: [] }],
  [
    "a trace",
    { ip: "::2", hops: [{ ...hop, rtt: 4 }], details: { reached: true } },
    { ip: "::2", reached: true, hops: [{ ...hop, rtt: 4 }] },
  ],
  ["an mtr", { hops: [{ ...hop, p50: 5 }] }, { hops: [{ ...hop, p50: 5, rtt: 5 }] }],
  [
    "a check",
    { details: { path: { ip: "::2", reached: false, hops: [{ ...hop, rtt: null }] } } },
    { ip: "::2", reached: false, hops: [{ ...hop, rtt: null }] },
  ],
])("the path of %s", (_, document, path) => {
  expect<object>(pathOf(document)).toEqual(path);
});
