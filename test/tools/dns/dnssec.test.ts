/** The endpoint's DNSSEC verdict behind resolvers that lie, fail for a moment, or have other trust anchors. */
import { afterEach, beforeEach, describe, expect, setSystemTime, test } from "bun:test";
import type { QueryOptions } from "../../../src/dns/client.ts";
import { decodeMessage } from "../../../src/dns/message/message.ts";
import { encodeName } from "../../../src/dns/message/name.ts";
import type { RecordType } from "../../../src/dns/message/record.ts";
import type { DnsOutcome } from "../../../src/dns/outcome.ts";
import { FairSlots } from "../../../src/gate/fair-slots.ts";
import { isZoneAtFault } from "../../../src/tools/dns/dnssec.ts";
import { dns } from "../../../src/tools/dns/endpoint.ts";
import { dnsReport } from "../../../src/tools/dns/report.ts";
import { type TestRecord, type TestReply, World } from "../../dns/dnssec/signed-world.ts";
import { encodeData } from "../../dns/messages.ts";

const ZONES = [
  { name: ".", expires: 1e6 },
  { name: "com.", expires: 1e6 },
  {
    name: "good.com.",
    expires: 1e6,
    records: [
      "www A 192.0.2.1",
      "gone CNAME nothing.good.com.",
      "near CNAME www.good.com.",
      "moved DNAME good.com.",
    ],
  },
  { name: "expired.com.", expires: -60, records: ["www A 192.0.2.2", "six AAAA 64:ff9b::1"] },
  { name: "plain.com.", algorithm: null, records: ["www A 192.0.2.3"] },
];

/** A resolver before these zones. */
interface Resolver {
  /** The AD bit of its answers to plain questions. */
  readonly ad?: boolean;
  /** The response code with which it fails; undefined if it answers. @param turn of the questions about the name, from 0 */
  fails?(isUnchecked: boolean, turn: number): string | undefined;
  tamper?(question: string, reply: TestReply): TestReply;
  /** True if it gives no answer in time to questions, of any name, with or without CD. */
  isSilent?(isUnchecked: boolean, type: RecordType): boolean;
}

interface Answer {
  readonly records?: readonly { readonly value: string; readonly ttl: number }[];
  readonly message?: string;
  readonly details: { readonly authenticated: boolean; readonly attempts: readonly unknown[] } & {
    readonly dnssec: {
      readonly verdict: string;
      readonly text: string;
      readonly resolver: { readonly claim: string; readonly validates: boolean | null };
    };
  };
}

// So that what expired 60 seconds ago still does when it is validated.
let reference = 0;
beforeEach(() => {
  reference = Date.now();
  setSystemTime(new Date(reference));
});
afterEach(() => void setSystemTime());

/** The endpoint's answer or error, and the CD bit of each question about the name itself. */
async function ask(
  hostname: string,
  { ad = false, fails, tamper, isSilent }: Resolver,
  asked: "A" | "AAAA" = "A",
) {
  const world = new World(ZONES, Math.floor(Date.now() / 1000));
  world.tamper = (question, reply) => tamper?.(question, reply) ?? reply;
  const unchecked: boolean[] = [];
  const client = {
    async query(name: string, type: RecordType, flags: QueryOptions): Promise<DnsOutcome> {
      const isUnchecked = flags.checkingDisabled === true;
      const isInner = type === "DS" || type === "DNSKEY";
      if (isInner !== (flags.isUnread === true)) throw new Error(`${type} is read by the client`);
      if (type === asked) unchecked.push(isUnchecked);
      if (isSilent?.(isUnchecked, type)) {
        return { kind: "timeout", question: { name, type }, queryTimeMs: 5000, attempts: [] };
      }
      const failure = type === asked ? fails?.(isUnchecked, unchecked.length - 1) : undefined;
      const reply = world.reply(name.endsWith(".") ? name : `${name}.`, type);
      if (typeof reply === "string") throw new Error(reply);
      const { answers, soa } = decodeMessage(reply.message);
      const said = {
        ...{ server: "[::1]:53", transport: "udp" as const },
        ...{ authenticated: ad && !isUnchecked },
        ...{ extendedErrors: [], message: reply.message },
        ...{ question: { name: `${name}.`, type }, queryTimeMs: 1 },
        ...(soa && { soa: { name: soa.owner, value: soa.value, ttl: soa.ttl } }),
        attempts: [
          { server: "[::1]:53", transport: "udp", ms: 1, outcome: failure ?? reply.rcode },
        ],
      } as const;
      if (failure !== undefined) return { ...said, kind: "failure", rcode: failure, records: [] };
      const isThere = answers.some((each) => each.type === type);
      const kind = reply.rcode === "NXDOMAIN" ? "name-error" : isThere ? "answer" : "no-data";
      return { ...said, kind, rcode: reply.rcode, records: answers };
    },
  };
  const parameters = { hostname, type: asked, resolver: "resolver_a", dnssec: "yes" };
  const call = { signal: new AbortController().signal, client: "", allowSeconds() {} };
  const services = {
    ...{ resolvers: { resolver_a: client }, querySlots: new FairSlots(1) },
    config: { trustAnchors: world.anchors() },
  };
  try {
    const answer = await dns.handle(parameters as never, call as never, services as never);
    return { answer: answer as unknown as Answer, unchecked };
  } catch (error) {
    const { body } = error as { body?: { error: Answer } };
    if (body === undefined) throw error;
    return { answer: body.error, unchecked };
  }
}

const once = (rcode: string) => (_: boolean, turn: number) => (turn === 0 ? rcode : undefined);
const ifUnchecked = (isUnchecked: boolean) => isUnchecked;
const unlessUnchecked = (isUnchecked: boolean) => (isUnchecked ? undefined : "SERVFAIL");
const withoutSignatures = (question: string, { rcode, answers }: TestReply): TestReply => ({
  ...{
    rcode,
    answers: question.startsWith("www") ? answers.filter(({ type }) => type === 1) : answers,
  },
  authority: [],
});
const ifKeys = (_: boolean, type: RecordType) => type === "DNSKEY";
/** Other data in the first answer. */
const oldOnce = () => {
  let turns = 0;
  return (question: string, reply: TestReply): TestReply => {
    if (!question.startsWith("www") || turns++ > 0) return reply;
    const old = (record: TestRecord) =>
      record.type === 1 ? { ...record, data: Buffer.from([192, 0, 2, 99]) } : record;
    return { ...reply, answers: reply.answers.map(old) };
  };
};
/** The keys of another zone as those of the root. */
const otherRoot = (question: string, reply: TestReply): TestReply => {
  if (question !== ". DNSKEY") return reply;
  const zone = new World([{ name: ".", algorithm: 15 }], Math.floor(Date.now() / 1000)).zone(".");
  return { ...reply, answers: zone.signed(zone.set(".", 48)) };
};
/** The clock of this machine is 30 days ahead. */
const ahead = (_: string, reply: TestReply): TestReply => {
  setSystemTime(new Date(reference + 30 * 86_400_000));
  return reply;
};
const liesFrom = (turn: number) => {
  let turns = 0;
  return (question: string, reply: TestReply) =>
    question.startsWith("www") && turns++ >= turn ? withoutSignatures(question, reply) : reply;
};

describe("the resolver", () => {
  // biome-ignore format: a table
  test.each<[string, string, Resolver, verdict: string, claim: string, validates: boolean | null, text: RegExp, records: number, questions: string]>([
    ["tells the truth", "www.good.com", { ad: true }, "secure", "secure", true, /UTC\)\.$/, 2, "-"],
    ["does not validate", "www.good.com", {}, "secure", "none", null, /does not claim that it is valid/, 2, "-"],
    ["passes an expired answer on", "www.expired.com", {}, "bogus", "none", false, /expired 60 seconds ago .* The owner of the zone must sign it again, .* passes the answer on/, 2, "-C"],
    ["forges AD of an expired answer", "www.expired.com", { ad: true }, "bogus", "secure", null, /expired 60 seconds ago .* do not rely on that/, 2, "-C"],
    ["forges AD of an answer without signatures", "www.good.com", { ad: true, tamper: withoutSignatures }, "indeterminate", "secure", null, /has no signature, .*\. Ask another resolver: .* claims that it has validated/, 1, "-"],
    ["forges AD of a zone that is not signed", "www.plain.com", { ad: true }, "insecure", "secure", null, /claims that it has validated the answer: it accepts more than is accepted here, or has not done so/, 1, "-"],
    ["fails once", "www.good.com", { ad: true, fails: once("SERVFAIL") }, "secure", "secure", true, /failed at first, and answered when it was asked again/, 2, "-C-"],
    ["fails once, and then lies unless it must not check", "www.good.com", { fails: once("SERVFAIL"), tamper: liesFrom(2) }, "indeterminate", "none", null, /has no signature, .* failed at first/, 1, "-C-"],
    ["refuses once", "www.good.com", { fails: once("REFUSED") }, "secure", "none", null, /failed at first/, 2, "-C-"],
    ["fails once for a zone that is not signed", "www.plain.com", { fails: once("SERVFAIL") }, "insecure", "none", null, /counts as not signed.* failed at first/, 1, "-C-"],
    ["fails unless it must not check", "www.good.com", { fails: unlessUnchecked }, "secure", "bogus", true, /its clock or its trust anchors may be wrong/, 0, "-C-"],
    ["fails so for an expired answer", "www.expired.com", { fails: unlessUnchecked }, "bogus", "bogus", true, /expired 60 seconds ago .* refuses the answer, too/, 0, "-C-C"],
    ["fails so for a zone that is not signed", "www.plain.com", { fails: unlessUnchecked }, "insecure", "bogus", true, /refuses the answer, though, as if it were bogus/, 0, "-C-"],
    ["refuses what has no signature", "www.good.com", { fails: unlessUnchecked, tamper: withoutSignatures }, "bogus", "bogus", true, /has no signature, .* The owner of the zone must sign it, or withdraw its DS record; .* refuses the answer, too/, 0, "-C-"],
    ["refuses what has no signature, and fails for the keys", "www.good.com", { fails: unlessUnchecked, tamper: withoutSignatures, isSilent: ifKeys }, "indeterminate", "bogus", true, /over before .* DNSKEY/, 0, "-C-"],
    ["has an old answer at first", "www.good.com", { tamper: oldOnce() }, "secure", "none", null, /^good\.com signs www\.good\.com A, .* Its first answer was bogus: .* does not match the records/, 2, "-C"],
    ["has an old answer, and none if it must not check", "www.good.com", { tamper: oldOnce(), fails: (isUnchecked) => (isUnchecked ? "SERVFAIL" : undefined) }, "indeterminate", "none", null, /^The resolver has no answer: SERVFAIL\. Its first answer was bogus/, 2, "-C"],
    ["fails always", "www.good.com", { fails: () => "SERVFAIL" }, "indeterminate", "no-answer", null, /no answer: SERVFAIL/, 0, "-C"],
    ["is silent if it must not check", "www.good.com", { ad: true, isSilent: ifUnchecked }, "indeterminate", "secure", null, /^The time was over before there was an answer for good\.com DS when asked not to check \(CD\)\. Try again, or ask another resolver\. The resolver claims that it has validated/, 2, "-"],
    ["fails, and is silent if it must not check", "www.good.com", { fails: unlessUnchecked, isSilent: ifUnchecked }, "indeterminate", "no-answer", null, /no answer: SERVFAIL, and timeout when asked not to check \(CD\)\.$/, 0, "-C"],
    ["fails always, with CD and without", "www.good.com", { fails: () => "SERVFAIL" }, "indeterminate", "no-answer", null, /no answer: SERVFAIL, also when asked not to check \(CD\)\.$/, 0, "-C"],
    ["refuses always", "www.plain.com", { fails: () => "REFUSED" }, "indeterminate", "no-answer", null, /no answer: REFUSED/, 0, "-C"],
  ])("%s", async (_, hostname, resolver, verdict, claim, validates, text, records, questions) => {
    const { answer, unchecked } = await ask(hostname, resolver);
    const { dnssec, authenticated, attempts } = answer.details;
    expect(dnssec).toMatchObject({
      ...{ verdict, text: expect.stringMatching(text) },
      resolver: { name: "resolver_a", claim, validates, extendedErrors: [] },
    });
    expect(authenticated).toBe(claim === "secure");
    expect(answer.records ?? []).toHaveLength(records);
    expect(unchecked.map((each) => (each ? "C" : "-")).join("")).toBe(questions);
    const isSecond = questions === "-C-" || (verdict === "secure" && questions === "-C");
    // An answer that came the second time has the attempts of both.
    expect(attempts).toHaveLength(records > 0 && isSecond ? 2 : 1);
  });

  test("that fails at random is never the zone's fault", async () => {
    let seed = 1;
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    const seen = new Set<string>();
    for (let run = 0; run < 200; run++) {
      const failed: boolean[] = [];
      const fails = () => {
        failed.push(random() < 0.4);
        return failed.at(-1) ? "SERVFAIL" : undefined;
      };
      const isSigned = run % 2 === 0;
      const { answer } = await ask(isSigned ? "www.good.com" : "www.plain.com", { fails });
      const { verdict, resolver } = answer.details.dnssec;
      const truth = isSigned ? "secure" : "insecure";
      const [first, unchecked, again] = failed;
      expect(verdict).toBe(first && unchecked ? "indeterminate" : truth);
      const claim = again ? "bogus" : "none";
      expect(resolver.claim).toBe(first && unchecked ? "no-answer" : claim);
      expect(answer.records !== undefined).toBe(!first || (!unchecked && !again));
      seen.add(resolver.claim);
    }
    expect(seen.size).toBe(3);
  });
});

// biome-ignore format: a table
test.each<[string, string, Resolver, boolean]>([
  ["an expired answer", "www.expired.com", {}, true],
  ["an answer without signatures", "www.good.com", { tamper: withoutSignatures }, false],
  ["an answer without signatures, which is refused", "www.good.com", { tamper: withoutSignatures, fails: unlessUnchecked }, false],
  ["a root of which the keys are not configured", "www.good.com", { tamper: otherRoot }, false],
  ["what expired by a clock by which the root's keys have, too", "www.good.com", { tamper: ahead }, false],
])("of %s, the zone's fault", async (_, hostname, resolver, isFault) => {
  const { answer } = await ask(hostname, resolver);
  expect(isZoneAtFault(answer.details.dnssec as never)).toBe(isFault);
});

test("by a clock by which the root's keys have expired, no owner of a zone is to sign again", async () => {
  const { answer } = await ask("www.good.com", { tamper: ahead });
  expect(answer.details.dnssec.text).toMatch(
    /^The signature of the root DNSKEY by key \d+ expired .* the clock of this machine is wrong\. The resolver passes/,
  );
});

test("a name without any record is not said to exist where its zone proves the opposite (RFC 9824)", async () => {
  // RRSIG, NSEC and NXNAME.
  const types = [0, 17, ...[0, 0, 0, 0, 0, 3, 0, 0], ...[0, 0, 0, 0, 0, 0, 0, 0], 0x80];
  const tamper = (question: string, reply: TestReply): TestReply => {
    if (question !== "nx.good.com. A") return reply;
    const zone = new World(ZONES, Math.floor(Date.now() / 1000)).zone("good.com.");
    const next = encodeName("\\000.nx.good.com.");
    const nsec = {
      owner: "nx.good.com.",
      type: 47,
      data: Buffer.concat([next, Buffer.from(types)]),
    };
    const authority = [...zone.signed(zone.set("good.com.", 6)), ...zone.signed([nsec])];
    return { rcode: "NOERROR", answers: [], authority };
  };
  const { answer } = await ask("nx.good.com", { tamper });
  expect(answer.details).toMatchObject({
    dnssec: { verdict: "secure" },
    verdict: {
      code: "no-data",
      text: "resolver_a has no A record for nx.good.com, which does not exist, as its zone proves (NXNAME). DNSSEC: secure.",
    },
  });
});

test("of a root of which the keys are not configured, the text names the setting", async () => {
  const { answer } = await ask("www.good.com", { tamper: otherRoot });
  expect(answer.details.dnssec).toMatchObject({
    verdict: "bogus",
    text: expect.stringMatching(/^No key of the root matches .* SIXSCOPE_TRUST_ANCHORS must have/),
  });
});

test.each([
  ["www.good.com", true],
  ["www.plain.com", true],
  ["www.expired.com", false],
])("of an answer for %s, the command's exit status says success: %p", async (hostname, isDone) => {
  const { answer } = await ask(hostname, {});
  expect(dnsReport.report(answer as never).isAnswered).toBe(isDone);
});

describe("behind a resolver that says that all may be kept for long, TTLs", () => {
  const tamper = (_: string, { rcode, answers, authority }: TestReply): TestReply => {
    const longer = (record: TestRecord) => ({ ...record, ttl: 4000 });
    return { rcode, answers: answers.map(longer), authority: authority.map(longer) };
  };

  test.each([
    ["of records and signatures", "www.good.com", "A", [300, 300]],
    ["of an alias", "near.good.com", "A", [300, 300, 300, 300]],
    ["of an alias that a DNAME record makes", "www.moved.good.com", "A", [300, 300, 300, 300, 300]],
    ["in a zone that is not signed", "www.plain.com", "A", [4000]],
    ["beside an expired signature", "www.expired.com", "A", [4000, 4000]],
  ] as const)("%s", async (_, hostname, type, ttls) => {
    const { answer } = await ask(hostname, { tamper }, type);
    expect(answer.records?.map(({ ttl }) => ttl)).toEqual([...ttls]);
  });

  test("of the SOA record of a denial", async () => {
    const { answer } = await ask("www.good.com", { tamper }, "AAAA");
    expect(answer.details).toMatchObject({ dnssec: { verdict: "secure" }, soa: { ttl: 300 } });
  });
});

// biome-ignore format: a table
test.each<[string, string, string, string, RegExp]>([
  ["made of IPv4", "www.good.com", "64:ff9b::192.0.2.1", "indeterminate", /makes the IPv6 addresses of IPv4 addresses \(DNS64\)/],
  ["of a host", "www.good.com", "2001:db8::1", "indeterminate", /has no signature/],
  ["made of IPv4, of a zone that is not signed", "www.plain.com", "64:ff9b::192.0.2.3", "insecure", /counts as not signed/],
  ["made of IPv4, and signed", "six.expired.com", "", "bogus", /expired 60 seconds ago/],
])("an address %s", async (_, hostname, value, verdict, text) => {
  const tamper: Resolver["tamper"] = (question, reply) =>
    value && question.endsWith(" AAAA")
      ? { rcode: "NOERROR", answers: [{ owner: `${hostname}.`, type: 28, data: encodeData("AAAA", value) }], authority: [] }
      : reply;
  const { answer } = await ask(hostname, { tamper }, "AAAA");
  expect(answer.details.dnssec).toMatchObject({ verdict, text: expect.stringMatching(text) });
});

test("the message about a resolver that fails has what was seen", async () => {
  const resolver: Resolver = { fails: unlessUnchecked, isSilent: ifUnchecked };
  const { answer } = await ask("www.good.com", resolver);
  expect(answer.message).toBe(
    'resolver_a failed with SERVFAIL for "www.good.com"; try again, or see whether the zone\'s own servers answer (resolver=zone; at the command line, @zone). DNSSEC: indeterminate. The resolver has no answer: SERVFAIL, and timeout when asked not to check (CD).',
  );
});

describe("the message about a name that does not exist", () => {
  const says = (zone: string) => `"nothing.${zone}" does not exist (NXDOMAIN from resolver_a)`;
  const cut = (_: string, { rcode, answers }: TestReply) => ({ rcode, answers, authority: [] });

  // biome-ignore format: a table
  test.each<[string, string, Resolver, string]>([
    ["proven", "nothing.good.com", {}, `${says("good.com")}. DNSSEC: secure. good.com proves that nothing.good.com does not exist, and every signature`],
    ["not signed", "nothing.plain.com", {}, `${says("plain.com")}; check the spelling. DNSSEC: insecure. plain.com counts as not signed`],
    ["expired", "nothing.expired.com", {}, `${says("expired.com")}. DNSSEC: bogus. The signature of expired.com`],
    ["without a proof", "nothing.good.com", { tamper: cut }, `${says("good.com")}; check the spelling. DNSSEC: indeterminate. The answer that nothing.good.com does not exist has no signature`],
    ["an alias, proven", "gone.good.com", {}, `"gone.good.com" is an alias of "nothing.good.com", which does not exist (NXDOMAIN from resolver_a); its owner must correct the CNAME record. DNSSEC: secure. good.com proves`],
  ])("%s", async (_, hostname, resolver, message) => {
    const { answer } = await ask(hostname, resolver);
    expect(answer.message).toStartWith(message);
  });
});
