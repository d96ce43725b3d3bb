/** The conclusions from measurements of a visitor's connection: a table, and two thousand that are drawn. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  conclude,
  type Family,
  type Measured,
  type Outcome,
} from "../../src/page/browser/connection.ts";

const seen4 = { ip: "192.0.2.7", version: 4 } as const;
const seen6 = { ip: "2001:db8::7", version: 6 } as const;

const up4: Family = { outcome: "answered", seen: seen4 };
const up6: Family = { outcome: "answered", seen: seen6 };
const failed: Family = { outcome: "failed", seen: null };
const silent: Family = { ...failed, outcome: "silent" };

const dual: Measured = { page: 6, ipv4: up4, ipv6: up6, large: "answered", direct: "answered" };

describe("a connection", () => {
  test.each<[what: string, part: Partial<Measured>, code: string, sentence: string]>([
    ["with both", {}, "preferred", "IPv6 works and is preferred."],
    ["that is not asked for DNS64", { direct: null }, "preferred", "IPv6 works"],
    ["over which the page came by IPv4", { page: 4 }, "not-preferred", "chose IPv4 for this page."],
    ["whose page has no choice", { page: null }, "both", "IPv6 works, as does IPv4."],
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
    ["whose answers are no documents", { ipv4: { ...up4, seen: null } }, "preferred", "IPv6 works"],
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
      ["IPv4", "192.0.2.7", ""],
      ["IPv6, by a name without IPv4", "2001:db8::7", ""],
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
