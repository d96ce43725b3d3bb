/** What the page says over the results of several places. */
import { expect, test } from "bun:test";
import { answerOfPlaces, differenceOfPlaces, type Place } from "../../src/page/browser/places.ts";

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
    { tone: "bad", word: "From neither place.", headline: "It is unreachable." },
  ],
  ["one that has not ended", [at("ams", "reached"), { ...failed, problem: null }], null],
  ["one place", [at("ams", "reached")], null],
])("the answer of %s", (_, places, answer) => {
  expect(answerOfPlaces(places)).toEqual(answer as never);
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
