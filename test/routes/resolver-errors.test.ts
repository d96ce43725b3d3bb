import { describe, expect, test } from "bun:test";
import type { DnsClient } from "../../src/dns/client.ts";
import type { DnsOutcome, Resolution } from "../../src/dns/outcome.ts";
import type { DnsRecord, ResourceRecord } from "../../src/dns/record.ts";
import { ApiError } from "../../src/http/errors.ts";
import { requireAnswer } from "../../src/routes/resolver-errors.ts";
import { parseTarget, resolveTarget } from "../../src/routes/target.ts";
import { cname } from "../dns/messages.ts";

const FROM = {
  server: "[2001:db8::53]:53",
  transport: "udp",
  rcode: "NOERROR",
  authenticated: false,
  extendedErrors: [],
} as const;

const SHOWN_LINK: DnsRecord = { type: "CNAME", value: "gone.example.", ttl: 300 };

type Shown = DnsRecord | ResourceRecord;

/** What a caller gets who asked for the name. */
function errorOf(hostname: string, resolution: Resolution<Shown>): ApiError {
  const outcome: DnsOutcome<Shown> = { ...resolution, queryTimeMs: 1 };
  try {
    requireAnswer(outcome, hostname, "resolver_a");
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error("no error");
}

function nameError(...records: Shown[]): Resolution<Shown> {
  return { ...FROM, kind: "name-error", rcode: "NXDOMAIN", records };
}

describe("what a caller is told", () => {
  // biome-ignore format: a table
  test.each<[string, string, Resolution<Shown>, string, string]>([
    ["a name that does not exist", "nobody.example", nameError(), "HOSTNAME_NOT_FOUND",
      '"nobody.example" does not exist, says resolver_a (NXDOMAIN); check its spelling.'],
    ["a chain that leads nowhere", "www.example", nameError(cname("www.example.", "a.example."), cname("a.example.", "gone.example.")), "HOSTNAME_NOT_FOUND",
      '"www.example" exists, but its CNAME records lead to "gone.example", which does not exist, says resolver_a (NXDOMAIN); ask its owner to correct them, or try another name.'],
    ["the same chain in presentation form", "www.example", nameError(SHOWN_LINK), "HOSTNAME_NOT_FOUND",
      '"www.example" exists, but its CNAME records lead to "gone.example", which does not exist, says resolver_a (NXDOMAIN); ask its owner to correct them, or try another name.'],
    ["an IPv6 address without a name", "2001:db8::1", nameError(), "HOSTNAME_NOT_FOUND",
      '"2001:db8::1" has no reverse name, says resolver_a (NXDOMAIN); check the address, or ask its holder for a PTR record.'],
    ["an IPv4 address without a name", "192.0.2.1", nameError(), "HOSTNAME_NOT_FOUND",
      '"192.0.2.1" has no reverse name, says resolver_a (NXDOMAIN); check the address, or ask its holder for a PTR record.'],
    ["an address whose chain leads nowhere (RFC 2317)", "192.0.2.1", nameError(SHOWN_LINK), "HOSTNAME_NOT_FOUND",
      '"192.0.2.1" has no reverse name, for its CNAME records lead to "gone.example", which does not exist, says resolver_a (NXDOMAIN); check the address, or ask its holder for a PTR record.'],
    ["no answer in time", "www.example", { kind: "timeout" }, "RESOLVER_TIMEOUT",
      'resolver_a did not answer in time for "www.example"; try again or another resolver.'],
    ["a refusal", "www.example", { ...FROM, kind: "failure", rcode: "REFUSED" }, "RESOLVER_FAILURE",
      'resolver_a failed with REFUSED for "www.example"; try again or another resolver.'],
    ["a referral", "www.example", { ...FROM, kind: "failure", rcode: "REFERRAL" }, "RESOLVER_FAILURE",
      'resolver_a does not ask other servers for "www.example", it only names some; try another resolver.'],
    ["an answer that is too large", "www.example", { ...FROM, kind: "failure", rcode: "TOO_LARGE" }, "RESOLVER_FAILURE",
      'resolver_a gave an answer for "www.example" that is too large to show; ask for another type or name.'],
    ["a malformed answer", "www.example", { ...FROM, kind: "malformed", rcode: "MALFORMED" }, "RESOLVER_FAILURE",
      'resolver_a gave a malformed answer for "www.example", such as a loop of CNAME records; try again or another resolver.'],
    ["nobody there", "www.example", { ...FROM, kind: "unreachable", rcode: "UNREACHABLE", reason: "ECONNREFUSED" }, "RESOLVER_FAILURE",
      'resolver_a could not be reached for "www.example" (ECONNREFUSED); try again or another resolver.'],
    ["no socket left", "www.example", { ...FROM, kind: "unreachable", rcode: "UNREACHABLE", reason: "EMFILE" }, "RESOLVER_FAILURE",
      'resolver_a could not be reached for "www.example" (EMFILE); try again or another resolver.'],
  ])("%s", (_, hostname, resolution, code, message) => {
    const error = errorOf(hostname, resolution);
    expect([error.code as string, error.message]).toEqual([code, message]);
    expect(error.details).toMatchObject({ hostname, resolver: "resolver_a" });
  });

  test("the code and the resolver's own words stand in the details", () => {
    const extendedErrors = [{ code: 20, name: "Not Authoritative" }];
    const error = errorOf("a.example", {
      ...FROM,
      kind: "failure",
      rcode: "REFUSED",
      extendedErrors,
    });
    expect(error.details as object).toEqual({
      hostname: "a.example",
      resolver: "resolver_a",
      rcode: "REFUSED",
      extendedErrors,
    });
  });

  test("a target without an IPv6 address", async () => {
    const resolver: DnsClient = {
      query: () => Promise.reject(new Error("nobody shows records here")),
      resolve: async () => ({ ...FROM, kind: "no-data", records: [], queryTimeMs: 1 }),
      openSockets: 0,
    };
    const resolved = resolveTarget(
      parseTarget("ipv4only.example"),
      {
        config: { targetResolver: "resolver_a", targets: { mode: "any", allow: [], deny: [] } },
        resolvers: { resolver_a: resolver, resolver_b: resolver, resolver_c: resolver },
      },
      new AbortController().signal,
    );
    await expect(resolved).rejects.toMatchObject({
      code: "NO_IPV6_ADDRESS",
      message:
        '"ipv4only.example" exists and has no AAAA record, so it cannot be reached over IPv6; choose a target that has one.',
    });
  });
});

test.each(["answer", "no-data"] as const)("%s passes through", (kind) => {
  const outcome: DnsOutcome = { ...FROM, kind, records: [SHOWN_LINK], queryTimeMs: 1 };
  expect(requireAnswer(outcome, "www.example", "resolver_a")).toBe(outcome);
});

test("nobody is told anything who has left", () => {
  const left = () => requireAnswer({ kind: "aborted", queryTimeMs: 1 }, "a", "resolver_a");
  expect(left).toThrow(expect.objectContaining({ name: "AbortError" }));
});
