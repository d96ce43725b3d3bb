/** The conclusions from measurements of a visitor's connection: a table, and hundreds of seeded ones. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  conclude,
  type Family,
  type Measured,
  type Outcome,
  SAMPLES,
} from "../../src/page/browser/connection.ts";

const seen4 = { ip: "192.0.2.7", version: 4 } as const;
const seen6 = { ip: "2001:db8::7", version: 6 } as const;

const times = (ms: number) => Array.from({ length: SAMPLES }, (_, at) => ms + at / 100);

const up4: Family = { outcome: "answered", seen: seen4, times: times(12) };
const up6: Family = { outcome: "answered", seen: seen6, times: times(10) };
const failed: Family = { outcome: "failed", seen: null, times: [] };
const silent: Family = { ...failed, outcome: "silent" };

const dual: Measured = { page: 6, ipv4: up4, ipv6: up6, large: "answered", direct: "answered" };

describe("a connection", () => {
  test.each<[what: string, part: Partial<Measured>, code: string, sentence: string]>([
    ["with both", {}, "preferred", "IPv6 works and is preferred; it is 2 ms faster."],
    ["that is not asked for DNS64", { direct: null }, "preferred", "it is 2 ms faster"],
    [
      "whose IPv6 is slow",
      { ipv6: { ...up6, times: times(31.4) } },
      "preferred",
      "IPv6 works and is preferred; it is 19 ms slower.",
    ],
    [
      "that is alike",
      { ipv6: { ...up6, times: times(12.02) } },
      "preferred",
      "IPv6 works and is preferred; both are about as fast.",
    ],
    [
      "whose times vary",
      { ipv6: { ...up6, times: [10, 11, 60, 61, 62] } },
      "preferred",
      "IPv6 works and is preferred; their times vary too much to be compared.",
    ],
    [
      "that was refused some requests",
      { ipv6: { ...up6, times: [1, 1] } },
      "preferred",
      "IPv6 works and is preferred; their times were not compared.",
    ],
    ["over which the page came by IPv4", { page: 4 }, "not-preferred", "IPv6 works, although"],
    [
      "whose page has no choice",
      { page: null },
      "both",
      "IPv6 works, as does IPv4; it is 2 ms faster.",
    ],
    ["without IPv6", { page: 4, ipv6: failed, large: null }, "no-ipv6", "does not work"],
    ["without IPv6, by a name", { page: null, ipv6: failed, large: null }, "no-ipv6", "not work"],
    ["whose IPv6 is silent", { page: 4, ipv6: silent, large: null }, "ipv6-silent", "within 5 s"],
    ["without IPv4", { ipv4: failed, direct: null }, "ipv6-only", "IPv6 works; IPv4 does not."],
    ["whose IPv4 is silent", { ipv4: silent, direct: null }, "ipv6-only", "IPv4 does not"],
    ["with a black hole", { page: 4, large: "silent" }, "large-answers", "small answers only"],
    ["that breaks large answers off", { large: "failed" }, "large-answers", "small answers only"],
    ["behind NAT64", { direct: "failed" }, "dns64", "probably"],
    ["behind NAT64 without a refusal", { direct: "silent" }, "dns64", "probably"],
    ["whose resolver has no such names", { ipv6: failed, large: null }, "name-without-ipv4", "not"],
    [
      "of a browser that asks nobody",
      { page: 4, ipv4: failed, ipv6: failed },
      "inconclusive",
      "no",
    ],
    ["whose names all fail", { ipv4: failed, ipv6: silent }, "inconclusive", "Nothing"],
    ["that came over IPv4, which then fails", { page: 4, ipv4: failed }, "inconclusive", "Nothing"],
    ["whose answers are no documents", { ipv4: { ...up4, seen: null } }, "preferred", "2 ms"],
    [
      "to a name with both families",
      { ipv4: { ...up4, seen: seen6 } },
      "not-one-family",
      "Nothing can be said",
    ],
    ["whose large answer was refused", { large: null }, "preferred", "IPv6 works"],
  ])("%s", (_, part, code, sentence) => {
    const said = conclude({ ...dual, ...part });
    expect(said.code as string).toBe(code);
    expect(said.verdict?.text).toContain(sentence);
    // Bad news come with advice.
    expect(said.advice === "").toBe(said.verdict?.tone === "good");
  });

  test("has the measurements beside the sentence", () => {
    const { facts } = conclude({ ...dual, large: "silent", direct: "failed" });
    expect(facts.map(({ name, value, tone }) => [name, value, tone ?? ""])).toEqual([
      ["IPv4", "192.0.2.7, 12 ms", ""],
      ["IPv6, by a name without IPv4", "2001:db8::7, 10 ms", ""],
      ["This page", "came over IPv6", ""],
      ["Large answer over IPv6", "no answer within 5 s", "bad"],
      ["IPv4 without DNS64", "failed", ""],
    ]);
  });
});

const outcome = fc.constantFrom<Outcome>("answered", "failed", "silent");

const family = (seen: Family["seen"]) =>
  outcome.map((outcome): Family => ({ ...(seen === seen4 ? up4 : up6), outcome }));

test("no measurement leads to more than it shows", () => {
  const any: fc.Arbitrary<Measured> = fc.record({
    page: fc.constantFrom(4, 6, null),
    ...{ ipv4: family(seen4), ipv6: family(seen6) },
    ...{ large: fc.option(outcome), direct: fc.option(outcome) },
  });
  const property = fc.property(any, (measured) => {
    const { code, verdict, advice, facts } = conclude(measured);
    const { page, ipv4, ipv6, large, direct } = measured;
    const works = ipv6.outcome === "answered";
    const text = verdict?.text ?? "";
    expect(facts.length).toBeGreaterThan(1);
    expect(`${text} ${advice}`).not.toMatch(/undefined|NaN|Infinity/);
    if (/^IPv6 works/.test(text)) expect(works || page === 6).toBe(true);
    if (text.includes("does not work") || text.includes("broken")) expect(works).toBe(false);
    if (verdict?.tone === "good") {
      expect([ipv4.outcome, ipv6.outcome, large ?? "answered"]).toEqual(Array(3).fill("answered"));
    }
    if (text.includes("is preferred")) expect(page).toBe(6);
    if (code === "dns64") expect([ipv4.outcome, direct]).not.toContain(null);
    if (code === "dns64") expect(direct).not.toBe("answered");
  });
  fc.assert(property, { seed: 28, numRuns: 2000 });
});

/** A seeded source of numbers from 0 to 1. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The share of connections, of 500, whose sentence has a text; times are drawn in turns, as the page takes them. */
function shareThatSay(text: string, timeOf: (random: number, at: number, is6: boolean) => number) {
  const random = randomFrom(28);
  const draw = () => Array.from({ length: SAMPLES }, (_, at) => at);
  let said = 0;
  for (let run = 0; run < 500; run++) {
    const both = draw().map((at) => [timeOf(random(), at, false), timeOf(random(), at, true)]);
    const [old = [], now = []] = [0, 1].map((which) => both.map((pair) => pair[which] ?? 0));
    const measured = { ...dual, ipv4: { ...up4, times: old }, ipv6: { ...up6, times: now } };
    if (conclude(measured).verdict?.text.includes(text)) said++;
  }
  return said / 500;
}

test.each<[what: string, text: string, [number, number], Parameters<typeof shareThatSay>[1]]>([
  ["equal times are seldom called faster", "faster", [0, 0.02], (random) => 20 + 10 * random],
  ["or slower", "slower", [0, 0.02], (random) => 20 + 10 * random],
  ["nor with rare long times", "faster", [0, 0.02], (random) => 20 + 0.1 / (random + 0.001)],
  [
    "a difference beyond the jitter is seen",
    "ms faster",
    [1, 1],
    (random, _, is6) => (is6 ? 18 : 20) + random,
  ],
  ["and the other way round", "ms slower", [1, 1], (random, _, is6) => (is6 ? 20 : 18) + random],
  [
    "a path that gets slower under way is no difference",
    "faster",
    [0, 0.02],
    (random, at) => 20 + 15 * at + random,
  ],
  ["not even if it jumps", "slower", [0, 0.02], (random, at) => (at > 2 ? 90 : 20) + random],
])("%s", (_, text, [least, most], timeOf) => {
  const share = shareThatSay(text, timeOf);
  expect(share).toBeGreaterThanOrEqual(least);
  expect(share).toBeLessThanOrEqual(most);
});
