import { describe, expect, test } from "bun:test";
import { ApiError } from "../../../src/api/errors.ts";
import { parseConfig } from "../../../src/config/settings.ts";
import type { DnsClient } from "../../../src/dns/client.ts";
import type { DnsRecord } from "../../../src/dns/message/record.ts";
import { type DnsOutcome, NO_SERVER, type Resolution } from "../../../src/dns/outcome.ts";
import { FairSlots } from "../../../src/gate/fair-slots.ts";
import { Gate } from "../../../src/gate/gate.ts";
import { noAddressText, requireAnswer } from "../../../src/tools/dns/failure.ts";
import { replyOf } from "../../../src/tools/dns/reply.ts";
import { parseTarget, resolveTarget } from "../../../src/tools/target.ts";
import { cname } from "../../dns/messages.ts";

const FROM = {
  server: "[2001:db8::53]:53",
  transport: "udp",
  rcode: "NOERROR",
  authenticated: false,
  extendedErrors: [],
  records: [],
} as const;

const QUESTION = { name: "www.example.", type: "AAAA" } as const;
const ATTEMPTS = [{ server: FROM.server, transport: "udp", ms: 1, outcome: "x" }] as const;

const SHOWN_LINK: DnsRecord = { type: "CNAME", value: "gone.example.", ttl: 300 };

function outcomeOf(resolution: Resolution): DnsOutcome {
  const { reason = "x" } = resolution as { readonly reason?: string };
  const attempts = ATTEMPTS.map((attempt) => ({ ...attempt, outcome: reason }));
  return { ...resolution, queryTimeMs: 1, question: QUESTION, attempts };
}

/** The error that a request for the name returns. */
function errorOf(hostname: string, resolution: Resolution): ApiError {
  try {
    requireAnswer(replyOf("resolver_a", outcomeOf(resolution)), hostname);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error("no error");
}

function nameError(...records: DnsRecord[]) {
  return { ...FROM, kind: "name-error", rcode: "NXDOMAIN", records } as const;
}

describe("the message", () => {
  // biome-ignore format: a table
  test.each<[string, string, Resolution, string, string]>([
    ["a name that does not exist", "missing.example", nameError(), "HOSTNAME_NOT_FOUND",
      '"missing.example" does not exist (NXDOMAIN from resolver_a); check the spelling.'],
    ["a CNAME chain that ends at a missing name", "www.example", nameError(cname("www.example.", "a.example."), cname("a.example.", "gone.example.")), "HOSTNAME_NOT_FOUND",
      '"www.example" is an alias of "gone.example", which does not exist (NXDOMAIN from resolver_a); its owner must correct the CNAME record.'],
    ["the same chain in presentation form", "www.example", nameError(SHOWN_LINK), "HOSTNAME_NOT_FOUND",
      '"www.example" is an alias of "gone.example", which does not exist (NXDOMAIN from resolver_a); its owner must correct the CNAME record.'],
    ["an IPv6 address without a name", "2001:db8::1", nameError(), "HOSTNAME_NOT_FOUND",
      'The reverse name of "2001:db8::1" does not exist (NXDOMAIN from resolver_a); its owner can add a PTR record.'],
    ["an IPv4 address without a name", "192.0.2.1", nameError(), "HOSTNAME_NOT_FOUND",
      'The reverse name of "192.0.2.1" does not exist (NXDOMAIN from resolver_a); its owner can add a PTR record.'],
    ["an address whose chain ends at a missing name (RFC 2317)", "192.0.2.1", nameError(SHOWN_LINK), "HOSTNAME_NOT_FOUND",
      'The reverse name of "192.0.2.1" is an alias of "gone.example", which does not exist (NXDOMAIN from resolver_a); its owner must correct the CNAME record.'],
    ["no answer in time", "www.example", { kind: "timeout" }, "RESOLVER_TIMEOUT",
      'resolver_a did not answer in time for "www.example" ([2001:db8::53]:53: x); try again, or see whether the zone\'s own servers answer (resolver=zone; at the command line, @zone).'],
    ["a refusal", "www.example", { ...FROM, kind: "failure", rcode: "REFUSED" }, "RESOLVER_FAILURE",
      'resolver_a refused to answer for "www.example"; ask its operator if it serves you, or ask another resolver.'],
    ["a refusal of this client", "www.example", { ...FROM, kind: "failure", rcode: "REFUSED", extendedErrors: [{ code: 18, name: "Prohibited" }] }, "RESOLVER_FAILURE",
      'resolver_a refused to answer for "www.example" (Prohibited); ask its operator if it serves you, or ask another resolver.'],
    ["a referral", "www.example", { ...FROM, kind: "failure", rcode: "REFERRAL" }, "RESOLVER_FAILURE",
      'resolver_a only referred to other servers for "www.example"; try again, or see whether the zone\'s own servers answer (resolver=zone; at the command line, @zone).'],
    ["an answer that is too large", "www.example", { ...FROM, kind: "failure", rcode: "TOO_LARGE" }, "RESOLVER_FAILURE",
      'resolver_a sent an answer that is too large to show for "www.example"; ask for another name or type.'],
    ["a malformed answer", "www.example", { ...FROM, kind: "malformed", rcode: "MALFORMED" }, "RESOLVER_FAILURE",
      'resolver_a sent a malformed answer for "www.example"; try again, or see whether the zone\'s own servers answer (resolver=zone; at the command line, @zone).'],
    ["a loop", "www.example", { ...FROM, kind: "malformed", rcode: "CNAME_LOOP", records: [SHOWN_LINK] }, "RESOLVER_FAILURE",
      'resolver_a sent a loop of CNAME records for "www.example"; its owner must correct the CNAME records.'],
    ["a bogus answer", "www.example", { ...FROM, kind: "failure", rcode: "SERVFAIL", extendedErrors: [{ code: 22 }, { code: 7, name: "Signature Expired" }] }, "RESOLVER_FAILURE",
      'resolver_a says that the DNSSEC data for "www.example" is bogus (Signature Expired); the owner of its zone must repair the signatures.'],
    ["a closed port", "www.example", { ...FROM, kind: "unreachable", rcode: "UNREACHABLE", reason: "ECONNREFUSED" }, "RESOLVER_FAILURE",
      'resolver_a could not be reached for "www.example" ([2001:db8::53]:53: ECONNREFUSED); try another resolver.'],
    ["a blocked name", "www.example", { ...nameError(), extendedErrors: [{ code: 15, name: "Blocked", text: "ads" }] }, "HOSTNAME_NOT_FOUND",
      'resolver_a blocks "www.example", as it says (Blocked: ads); ask another resolver, or its operator.'],
    ["a censored name", "www.example", { ...nameError(), extendedErrors: [{ code: 29, name: "Synthesized" }, { code: 16, name: "Censored" }] }, "HOSTNAME_NOT_FOUND",
      'resolver_a blocks "www.example", as it says (Censored); ask another resolver, or its operator.'],
    ["a forged absence", "www.example", { ...nameError(), extendedErrors: [{ code: 4, name: "Forged Answer" }] }, "HOSTNAME_NOT_FOUND",
      'resolver_a blocks "www.example", as it says (Forged Answer); ask another resolver, or its operator.'],
    ["a refusal by a filter", "www.example", { ...FROM, kind: "failure", rcode: "REFUSED", extendedErrors: [{ code: 17, name: "Filtered" }] }, "RESOLVER_FAILURE",
      'resolver_a blocks "www.example", as it says (Filtered); ask another resolver, or its operator.'],
    ["a lame zone", "www.example", { ...FROM, kind: "failure", rcode: "SERVFAIL", extendedErrors: [{ code: 22, name: "No Reachable Authority", text: "at delegation example." }, { code: 23, name: "Network Error" }] }, "RESOLVER_FAILURE",
      'resolver_a failed with SERVFAIL for "www.example" (No Reachable Authority: at delegation example., Network Error); try again, or see whether the zone\'s own servers answer (resolver=zone; at the command line, @zone).'],
    ["a lame zone that should be signed", "www.example", { ...FROM, kind: "failure", rcode: "SERVFAIL", extendedErrors: [{ code: 9, name: "DNSKEY Missing" }, { code: 22, name: "No Reachable Authority" }] }, "RESOLVER_FAILURE",
      'resolver_a failed with SERVFAIL for "www.example" (DNSKEY Missing, No Reachable Authority); try again, or see whether the zone\'s own servers answer (resolver=zone; at the command line, @zone).'],
    ["a server of a signed zone that is not reached", "www.example", { ...FROM, kind: "failure", rcode: "SERVFAIL", extendedErrors: [{ code: 6, name: "DNSSEC Bogus" }, { code: 23, name: "Network Error", text: "[2001:db8::1]:53 timed out" }] }, "RESOLVER_FAILURE",
      'resolver_a failed with SERVFAIL for "www.example" (DNSSEC Bogus, Network Error: [2001:db8::1]:53 timed out); try again, or see whether the zone\'s own servers answer (resolver=zone; at the command line, @zone).'],
    ["a missing key, without its cause", "www.example", { ...FROM, kind: "failure", rcode: "SERVFAIL", extendedErrors: [{ code: 9, name: "DNSKEY Missing" }] }, "RESOLVER_FAILURE",
      'resolver_a says that the DNSSEC data for "www.example" is bogus (DNSKEY Missing); validate DNSSEC to see what is wrong.'],
    ["no socket left", "www.example", { ...FROM, kind: "unreachable", rcode: "SHORTAGE", reason: "EMFILE" }, "RESOLVER_FAILURE",
      'This service had no socket left (EMFILE) to ask resolver_a for "www.example"; try again later, or tell its operator.'],
  ])("%s", (_, hostname, resolution, code, message) => {
    const error = errorOf(hostname, resolution);
    expect([error.code as string, error.message]).toEqual([code, message]);
    expect(error.details).toMatchObject({ hostname, resolver: "resolver_a" });
  });

  test("the details have everything that the resolver said, and the attempts", () => {
    const extendedErrors = [{ code: 20, name: "Not Authoritative" }];
    const resolution = { ...FROM, kind: "failure", rcode: "REFUSED", extendedErrors } as const;
    const said = {
      hostname: "a.example",
      resolver: "resolver_a",
      question: QUESTION,
      server: "[2001:db8::53]:53",
      transport: "udp",
      rcode: "REFUSED",
      authenticated: false,
      extendedErrors,
      attempts: ATTEMPTS,
    };
    expect(errorOf("a.example", resolution).details as object).toEqual(said);
    const withChain = errorOf("a.example", { ...resolution, records: [SHOWN_LINK] });
    expect(withChain.details as object).toEqual({ ...said, records: [SHOWN_LINK] });
  });

  test("the details of a name that does not exist have the SOA record and the chain", () => {
    const soa = { name: "example.", value: "ns. host. 1 2 3 4 5", ttl: 60 };
    expect(errorOf("www.example", { ...nameError(SHOWN_LINK), soa }).details).toMatchObject({
      rcode: "NXDOMAIN",
      records: [SHOWN_LINK],
      soa,
      attempts: ATTEMPTS,
    });
  });

  test("a machine without a resolver", () => {
    const outcome = { ...NO_SERVER, queryTimeMs: 0, question: QUESTION, attempts: [] };
    const failed = () => requireAnswer(replyOf("resolver_a", outcome), "www.example");
    expect(failed).toThrow(
      '/etc/resolv.conf of this machine names no resolver, so "www.example" cannot be looked up; name one there, set SIXSCOPE_RESOLVER_A, or ask one with sixscope dns NAME @SERVER.',
    );
  });

  test("the details of a timeout have the attempts", () => {
    expect(errorOf("www.example", { kind: "timeout" }).details as object).toEqual({
      hostname: "www.example",
      resolver: "resolver_a",
      question: QUESTION,
      attempts: ATTEMPTS,
    });
  });

  test("a target without an IPv6 address", async () => {
    const resolver: DnsClient = {
      query: async () => outcomeOf({ ...FROM, kind: "no-data" }),
    };
    const resolved = resolveTarget(
      parseTarget("ipv4only.example"),
      {
        config: parseConfig({}),
        resolvers: { resolver_a: resolver, resolver_b: resolver, resolver_c: resolver },
        icmp: { unavailable: "no socket" },
        gate: new Gate(),
        probeSlots: new FairSlots(1),
        querySlots: new FairSlots(1),
      },
      { signal: new AbortController().signal, client: "" },
      { route: () => "ENETUNREACH" },
    );
    await expect(resolved).rejects.toMatchObject({
      code: "NO_IPV6_ADDRESS",
      message:
        '"ipv4only.example" exists but has no AAAA record, so it cannot be reached over IPv6; choose another target.',
    });
  });
});

test.each(["answer", "no-data"] as const)("%s passes through", (kind) => {
  const outcome = outcomeOf({ ...FROM, kind, records: [SHOWN_LINK] });
  expect(() => requireAnswer(replyOf("resolver_a", outcome), "www.example")).not.toThrow();
});

test("a client that has disconnected gets no response", () => {
  const outcome = outcomeOf({ kind: "aborted" });
  const left = () => replyOf("resolver_a", outcome);
  expect(left).toThrow(expect.objectContaining({ name: "AbortError" }));
});

test("a target without an address says if the resolver blocks its name", () => {
  const details = { hostname: "www.example", resolver: "resolver_a", question: QUESTION } as const;
  const asked = { ...details, attempts: [] };
  expect(noAddressText(asked)).toMatch(/^"www.example" exists but has no/);
  const extendedErrors = [{ code: 15, name: "Blocked" }];
  expect(noAddressText({ ...asked, extendedErrors })).toBe(
    'resolver_a blocks "www.example", as it says (Blocked); ask another resolver, or its operator.',
  );
});
