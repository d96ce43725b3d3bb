/** What the page says over the results of several places. */
import { expect, test } from "bun:test";
import {
  answerOfPlaces,
  differenceOfPlaces,
  likenessOf,
  type Place,
} from "../../src/page/browser/places.ts";

const hopsBy = (...names: string[]) =>
  names.map((name) => ({ details: { network: { asn: 64_500, name } } }));

/** A place whose trace ended with a code, and went by some networks. */
const at = (location: string, code: string, ...names: string[]): Place => ({
  ...{ location, problem: null },
  document: {
    hops: hopsBy(...names),
    details: { verdict: { code, text: `It is ${code}. More.` } },
  },
});

const failed: Place = { location: "sin", document: null, problem: "It did not answer in time." };

test.each<[what: string, places: Place[], answer: object | null]>([
  [
    "all alike",
    [at("ams", "reached"), at("fra", "reached")],
    { tone: "good", word: "From both places.", headline: "It is reached." },
  ],
  [
    "one that differs",
    [at("ams", "reached"), at("fra", "reached"), at("lax", "gap-limit")],
    { tone: "warn", word: "From two of three places.", headline: "From lax: It is gap-limit." },
  ],
  [
    "an error",
    [at("ams", "reached"), failed],
    {
      tone: "warn",
      word: "From one of two places.",
      headline: "From sin: It did not answer in time.",
    },
  ],
  [
    "none",
    [at("ams", "unreachable"), failed],
    { tone: "bad", word: "From neither place.", headline: "From ams: It is unreachable." },
  ],
  [
    "none that all say alike",
    [at("ams", "unreachable"), at("fra", "unreachable")],
    { tone: "bad", word: "From neither place.", headline: "It is unreachable." },
  ],
  [
    "some that work in part",
    [at("ams", "sometimes"), at("fra", "partly"), at("lax", "unreachable")],
    { tone: "warn", word: "Partly.", headline: "From lax: It is unreachable." },
  ],
  ["one that has not ended", [at("ams", "reached"), { ...failed, problem: null }], null],
  ["one place", [at("ams", "reached")], null],
])("the answer of %s", (_, places, answer) => {
  const { about, ...shown } = answerOfPlaces(places) ?? { about: null };
  expect(answer === null ? null : shown).toEqual(answer as never);
  expect(about).toBe(places.find((place) => place.document === about)?.document ?? null);
});

test.each<[what: string, places: Place[], text: string]>([
  ["nothing", [at("ams", "reached", "A", "B"), at("fra", "reached", "A", "B")], ""],
  [
    "one network",
    [
      at("ams", "reached", "A", "B"),
      at("fra", "reached", "A", "B"),
      at("lax", "reached", "A", "C"),
    ],
    "What differs: ams and fra go by B; lax goes by C.",
  ],
  [
    "three networks",
    [at("ams", "reached", "A"), at("fra", "reached", "B"), at("lax", "reached", "C")],
    "What differs: ams goes by A; fra goes by B; lax goes by C.",
  ],
  [
    "a network more",
    [at("ams", "reached", "A"), at("fra", "reached", "A", "B")],
    "What differs: fra goes by B; ams goes by none of these.",
  ],
  ["an error", [at("ams", "reached", "A"), failed], ""],
  ["no networks", [at("ams", "reached"), at("fra", "reached")], ""],
  ["a place that knows no networks", [at("ams", "reached", "A"), at("fra", "reached")], ""],
  [
    "the path MTU",
    [
      { location: "ams", problem: null, document: { mtu: 1500 } },
      { location: "fra", problem: null, document: { mtu: 1420 } },
      { location: "lax", problem: null, document: { mtu: 1500 } },
    ],
    "What differs: the path MTU is 1500 bytes from ams and lax, 1420 bytes from fra.",
  ],
])("what differs: %s", (_, places, text) => {
  expect(differenceOfPlaces(places)).toBe(text);
});

/** A place that reached the site by some networks, after so many milliseconds. */
const after = (location: string, ms: number, code: string, ...names: string[]): Place => ({
  ...{ location, problem: null },
  document: {
    hops: [...hopsBy(...names), { rtt: ms }],
    details: { verdict: { code, text: "It is." } },
  },
});

test.each<[what: string, places: Place[], text: string | null]>([
  ["two", [after("ams", 20, "reached", "A"), after("fra", 21.9, "reached", "A")], "both"],
  ["near ones", [after("ams", 0.2, "reached", "A"), after("fra", 1, "reached", "A")], "both"],
  [
    "three",
    ["ams", "fra", "lax"].map((location) => after(location, 9, "reached", "A", "B")),
    "all three",
  ],
  [
    "one that is slower",
    [after("ams", 20, "reached", "A"), after("fra", 24, "reached", "A")],
    null,
  ],
  [
    "one by another network",
    [after("ams", 20, "reached", "A"), after("fra", 20, "reached", "B")],
    null,
  ],
  [
    "one by a network more",
    [after("ams", 20, "reached", "A"), after("fra", 20, "reached", "A", "A")],
    null,
  ],
  ["another answer", [after("ams", 20, "reached", "A"), after("fra", 20, "gap-limit", "A")], null],
  ["an error", [after("ams", 20, "reached", "A"), failed], null],
  ["errors alone", [failed, failed], null],
  ["no hops", [at("ams", "reached"), at("fra", "reached")], null],
  ["one place", [after("ams", 20, "reached", "A")], null],
])("whether ways are alike: %s", (_, places, text) => {
  expect(likenessOf(places)).toBe(text && `the same from ${text}`);
});
