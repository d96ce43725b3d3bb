import { afterAll, beforeAll, describe, expect } from "bun:test";
import { createDnsClient, type DnsClient } from "../../src/dns/client.ts";
import { parseTrustAnchors, type ROOT_ANCHORS } from "../../src/dns/dnssec/anchors.ts";
import type { DnsOutcome } from "../../src/dns/outcome.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { dns } from "../../src/tools/dns/endpoint.ts";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { programMissing, testWith } from "../lab/lab.ts";
import { startUnbound, type Unbound } from "../lab/unbound.ts";

/* A validating resolver before a signed zone, one that is signed with another key, and one that is not signed. */

const missing = programMissing("knotd") ?? programMissing("unbound") ?? programMissing("dig");
const testWithUnbound = testWith(missing);

const zone = (name: string) => `
$ORIGIN ${name}.
$TTL 300
@ SOA ns hostmaster 1 2 3 4 5
@ NS ns
ns AAAA ::1
www AAAA 2001:db8::1
alias CNAME www
`;
const NAMES = ["secure.example", "bogus.example", "insecure.example"] as const;
/** Answers, but nothing listens where the zone is. */
const DEAD = "dead.example";

let knot: KnotServer;
let unbound: Unbound;
let client: DnsClient;
/** The keys that unbound trusts, and a closed network with all zones. */
let trustAnchors: typeof ROOT_ANCHORS;

beforeAll(async () => {
  if (missing !== null) return;
  const signed = ["secure.example", "bogus.example"];
  const zones = Object.fromEntries(NAMES.map((name) => [name, zone(name)]));
  knot = await startKnot({ zones, signed });
  const direct = createDnsClient({ servers: [knot.endpoint] });
  const keysOf = async (name: string) => {
    const outcome = await direct.query(name, "DNSKEY");
    return "records" in outcome ? outcome.records.map(({ value }) => value) : [];
  };
  const keys = await keysOf("secure.example");
  const anchors = signed.flatMap((name) => keys.map((key) => `${name}. DNSKEY ${key}`));
  trustAnchors = parseTrustAnchors(anchors.join("\n"));
  unbound = await startUnbound({
    zones: [...NAMES].reverse(),
    server: knot.endpoint,
    // The keys of one zone for both, so that the other one is bogus.
    trustAnchors: anchors,
  });
  client = createDnsClient({ servers: [unbound.endpoint] });
});

afterAll(async () => {
  await unbound?.stop();
  await knot?.stop();
});

function textOf(outcome: DnsOutcome): string[] {
  return "records" in outcome ? outcome.records.map(({ type, value }) => `${type} ${value}`) : [];
}

describe("records with their signatures", () => {
  testWithUnbound.each(["www", "alias"])("%s: what dig shows with +dnssec", async (label) => {
    const name = `${label}.secure.example`;
    const dig = Bun.spawn([
      ...["dig", "@::1", "-p", String(unbound.endpoint.port), name, "AAAA"],
      ...["+dnssec", "+noall", "+answer"],
    ]);
    const lines = (await new Response(dig.stdout).text()).trim().split("\n");
    const expected = lines.map((line) => line.replace(/^\S+\s+\d+\s+IN\s+(\S+)\s+/, "$1 "));
    const shown = textOf(await client.query(name, "AAAA", { dnssec: true }));
    expect(shown).toEqual(expected);
    expect(shown.filter((text) => text.startsWith("RRSIG"))).toHaveLength(expected.length / 2);
    expect(textOf(await client.query(name, "AAAA")).some((text) => /^RRSIG/.test(text))).toBe(
      false,
    );
  });
});

describe("the verdict", () => {
  /** The answer of the endpoint, or its error. */
  async function ask(hostname: string): Promise<{ details: object; records?: object[] }> {
    const resolvers = { resolver_a: client };
    const { signal } = new AbortController();
    const parameters = { hostname, type: "AAAA", resolver: "resolver_a", dnssec: "yes" };
    try {
      return (await dns.handle(
        parameters,
        { signal, client: "", allowSeconds() {} } as never,
        { resolvers, querySlots: new FairSlots(1), config: { trustAnchors } } as never,
      )) as { details: object };
    } catch (error) {
      return (error as { body: { error: { details: object } } }).body.error;
    }
  }

  // biome-ignore format: a table
  testWithUnbound.each([
    ["www.secure.example", "secure", { claim: "secure", validates: true }, { rcode: "NOERROR", authenticated: true }],
    ["missing.secure.example", "secure", { claim: "secure", validates: true }, { rcode: "NXDOMAIN", authenticated: true }],
    ["www.insecure.example", "indeterminate", { claim: "none", validates: null }, { rcode: "NOERROR", authenticated: false }],
    ["www.bogus.example", "bogus", { claim: "bogus", validates: true }, { rcode: "SERVFAIL", authenticated: false }],
    [`www.${DEAD}`, "indeterminate", { claim: "no-answer", validates: null }, { rcode: "SERVFAIL" }],
  ])("%s is %s", async (name, verdict, claim, details) => {
    expect(await ask(name)).toMatchObject({
      details: { ...details, dnssec: { verdict, resolver: { name: "resolver_a", ...claim } } },
    });
  });

  testWithUnbound(
    "an error about a bogus name says why, and what the resolver claims",
    async () => {
      expect(await ask("www.bogus.example")).toMatchObject({
        code: "RESOLVER_FAILURE",
        message: expect.stringMatching(
          /^resolver_a does not answer for "www.bogus.example" \(SERVFAIL, .*\)\. DNSSEC: bogus\. No key of bogus\.example matches its trust anchor \(key tag \d+, \d+\)\. If the network has a root of its own, SIXSCOPE_TRUST_ANCHORS must have the keys of that\. The resolver refuses the answer, too\.$/,
        ),
        details: { attempts: [{ outcome: "SERVFAIL" }] },
      });
    },
  );
});
