import { describe, expect, test } from "bun:test";
import { compareReplies } from "../../src/tools/dns/comparison.ts";
import type { DnsReply } from "../../src/tools/dns/result.ts";

const NAMES = ["resolver_a", "resolver_b", "resolver_c"] as const;

const BASE = {
  ...{ records: [], queryTime: 1, authenticated: false, extendedErrors: [], attempts: [] },
  server: "[2001:db8::53]:53",
  transport: "udp",
  question: { name: "www.example.", type: "AAAA" },
} satisfies Partial<DnsReply>;

type Said = Omit<DnsReply, "resolver">;

const has = (...values: string[]): Said => ({
  ...{ ...BASE, outcome: "answer", rcode: "NOERROR" },
  records: values.map((value) => ({ type: "AAAA", value, ttl: 300 })),
});
const one = has("2001:db8::1");
const other = has("2001:db8::2");
const none: Said = { ...BASE, outcome: "no-data", rcode: "NOERROR" };
const absent: Said = { ...BASE, outcome: "name-error", rcode: "NXDOMAIN" };
const failing: Said = { ...BASE, outcome: "failure", rcode: "SERVFAIL" };
const silent: Said = { ...BASE, outcome: "timeout" };
const withEde = (said: Said, code: number): Said => ({ ...said, extendedErrors: [{ code }] });
const proven = (said: Said, verdict: "secure" | "insecure" | "indeterminate" | "bogus"): Said => ({
  ...said,
  dnssec: {
    ...{ verdict, text: "", chain: [] },
    resolver: { name: "resolver_a", claim: "none", validates: null, extendedErrors: [] },
  } as unknown as NonNullable<DnsReply["dnssec"]>,
});
const madeBy = (said: Said): Said => ({
  ...said,
  dns64: said.records.map(({ value: ip }) => ({ ip, prefix: "64:ff9b::/96", ipv4: "192.0.2.1" })),
});

const compare = (said: readonly Said[]) =>
  compareReplies(
    said.map((each, at) => ({ ...each, resolver: NAMES[at] as (typeof NAMES)[number] })),
  );

const named = (value: string): Said => ({
  ...{ ...BASE, outcome: "answer", rcode: "NOERROR", question: { name: "ntp.", type: "CNAME" } },
  records: [{ type: "CNAME", value, ttl: 300 }],
});

/** `b rewritten` for each finding. */
const findingsOf = (said: readonly Said[]) =>
  compare(said).findings.map(({ resolver, code }) => `${resolver?.slice(-1)} ${code}`);

describe("findings name", () => {
  // biome-ignore format: a table
  test.each<[string, Said[], string[]]>([
    ["nobody where all agree", [one, one, one], []],
    ["one that says the name does not exist", [one, absent, one], ["b perhaps-filtered"]],
    ["one without records", [none, one, one], ["a perhaps-filtered"]],
    ["one without records beside different ones", [none, one, other], ["a perhaps-filtered"]],
    ["one that answers ::", [one, has("::"), one], ["b perhaps-filtered"]],
    ["one that answers ::1", [one, has("::1"), one], ["b perhaps-filtered"]],
    ["one that answers 0.0.0.0", [has("192.0.2.1"), has("0.0.0.0"), has("192.0.2.1")], ["b perhaps-filtered"]],
    ["one that answers 127.0.0.2", [has("192.0.2.1"), has("127.0.0.2"), has("192.0.2.1")], ["b perhaps-filtered"]],
    ["no sinkhole in names that begin with 0 or 127", [named("1.pool.example."), named("0.pool.example."), named("127.pool.example.")], []],
    ["nobody where all answer ::1", [has("::1"), has("::1"), has("::1")], []],
    ["the one that rewrites NXDOMAIN, not the honest", [absent, absent, one], ["c rewritten"]],
    ["the one that rewrites NXDOMAIN to itself", [absent, has("::1"), absent], ["b rewritten"]],
    ["the one with records that others do not have", [none, one, none], ["b rewritten"]],
    ["the one with records beside two blocks", [has("::"), has("::"), one], ["c rewritten"]],
    ["the one with other records than those that agree", [one, one, other], ["c rewritten"]],
    ["nobody for a record more", [one, one, has("2001:db8::1", "2001:db8::2")], []],
    ["nobody for three different records", [one, other, has("2001:db8::3")], []],
    ["nobody for three different answers", [one, none, absent], []],
    ["nobody for three different ones, one of them of no host", [one, has("::"), absent], []],
    ["nobody of two", [one, absent, silent], []],
    ["nobody for denials of two kinds", [absent, none, none], []],
    ["a block that is said, and nobody else", [withEde(absent, 15), one, one], ["a filtered"]],
    ["two blocks that are said, and not the third", [withEde(absent, 15), withEde(has("::"), 17), one], ["a filtered", "b filtered"]],
    ["a block that is said by a failure", [withEde(failing, 16), one, one], ["a filtered"]],
    ["an old answer", [withEde(one, 3), one, one], ["a stale"]],
    ["a refusal for DNSSEC", [withEde(failing, 6), one, one], ["a dnssec-failure"]],
    ["two refusals for DNSSEC", [withEde(failing, 7), withEde(failing, 6), one], ["a dnssec-failure", "b dnssec-failure"]],
    ["no refusal where nobody has an answer", [withEde(failing, 6), withEde(failing, 6), silent], []],
    ["an answer that DNSSEC proves wrong", [proven(one, "secure"), proven(other, "bogus"), proven(one, "secure")], ["b dnssec-failure"]],
    ["two answers that DNSSEC proves wrong", [proven(other, "bogus"), proven(other, "bogus"), proven(one, "secure")], ["a dnssec-failure", "b dnssec-failure"]],
    ["nobody where all are bogus", [proven(one, "bogus"), proven(one, "bogus"), proven(one, "bogus")], []],
    ["those that deny what is proven", [absent, absent, proven(one, "secure")], ["a perhaps-filtered", "b perhaps-filtered"]],
    ["the one of two that denies what is proven", [absent, proven(one, "secure"), silent], ["a perhaps-filtered"]],
    ["those that have what is proven not to exist", [one, one, proven(absent, "secure")], ["a rewritten", "b rewritten"]],
    ["those that have other records than the proven", [one, one, proven(other, "secure")], ["a rewritten", "b rewritten"]],
    ["nobody for addresses that a resolver makes (DNS64)", [none, madeBy(has("64:ff9b::c000:201")), none], []],
    ["the place, which explains other records", [{ ...one, clientSubnet: "2001:db8::/56/48" }, other, other], ["a place"]],
    ["no place for a scope of 0", [{ ...one, clientSubnet: "2001:db8::/56/0" }, other, other], ["a rewritten"]],
    ["no place without a difference", [{ ...one, clientSubnet: "2001:db8::/56/48" }, one, one], []],
  ])("%s", (_, said, findings) => {
    expect(findingsOf(said)).toEqual(findings);
  });

  test("both explanations", () => {
    const texts = [
      [
        [absent, absent, one],
        "resolver_c has records, unlike resolver_a and resolver_b: it may rewrite the answer, or the others may filter the name, or not know of a change yet.",
      ],
      [
        [one, absent, one],
        "resolver_b says that the name does not exist, unlike resolver_a and resolver_c: it may filter the name, or not know of a change yet.",
      ],
      [
        [one, one, other],
        "resolver_c has other records, unlike resolver_a and resolver_b: it may rewrite the answer, or records may depend on the place.",
      ],
      [
        [absent, proven(one, "secure"), silent],
        "resolver_a says that the name does not exist, unlike resolver_b, as DNSSEC proves: it may filter the name, or not know of a change yet.",
      ],
      [
        [withEde(failing, 6), one, one],
        "resolver_a refuses the answer as bogus (SERVFAIL), unlike resolver_b and resolver_c: they may not validate, or its clock or its trust anchor may be wrong.",
      ],
    ] as const;
    for (const [said, text] of texts) expect(compare(said).findings[0]?.text).toBe(text);
  });
});

describe("differences", () => {
  const signed = (said: Said): Said => ({ ...said, authenticated: true });
  // biome-ignore format: a table
  test.each<[string, Said[], boolean | undefined, string[]]>([
    ["no data beside data", [one, none, one], false, ["records"]],
    ["the AD bit alone is none", [signed(one), one, one], true, []],
    ["verdicts of our own", [proven(one, "secure"), proven(one, "insecure"), proven(one, "secure")], false, ["dnssec"]],
    ["the same verdicts", [proven(signed(one), "secure"), proven(one, "secure"), silent], true, []],
  ])("%s", (_, said, agree, differences) => {
    expect(compare(said)).toMatchObject({ agree, differences } as object);
  });
});

/** A generator of numbers below a bound, from a seed. */
function randomFrom(seed: number) {
  let state = seed;
  return (bound: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

/** The kinds of answers, and what may be said of one where the two others are of another kind. */
const POOL = { records: one, absent, none, nowhere: has("::1"), failing, silent } as const;
type Kind = keyof typeof POOL;
const LACKING: readonly `${Kind} ${Kind}`[] = [
  ...(["absent records", "none records", "nowhere records"] as const),
  // As resolvers that protect against rebinding do.
  ...(["absent nowhere", "none nowhere"] as const),
];
const HAVING: readonly `${Kind} ${Kind}`[] = [
  ...([
    "records absent",
    "records none",
    "records nowhere",
    "nowhere absent",
    "nowhere none",
  ] as const),
];

test("a thousand random tables: only a minority of one is named, as a table of its kinds says, and never the order", () => {
  const random = randomFrom(7);
  const kinds = Object.keys(POOL) as Kind[];
  const isAnswer = (kind: Kind) => kind !== "failing" && kind !== "silent";
  for (let turn = 0; turn < 1_000; turn++) {
    const table = NAMES.map(() => kinds[random(kinds.length)] as Kind);
    const expected = table.flatMap((kind, at) => {
      const others = table.filter((_, place) => place !== at);
      const [first, second] = others;
      if (first === undefined || first !== second || !isAnswer(first) || first === kind) return [];
      const pair = `${kind} ${first}` as const;
      const code = LACKING.includes(pair) ? "perhaps-filtered" : "rewritten";
      const isNamed = LACKING.includes(pair) || HAVING.includes(pair);
      return isNamed ? [`${NAMES[at]?.slice(-1)} ${code}`] : [];
    });
    expect([table.join(), findingsOf(table.map((kind) => POOL[kind]))]).toEqual([
      table.join(),
      expected,
    ]);
  }
});
