import { describe, expect, test } from "bun:test";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient, DnsOutcome, Resolution } from "../../src/dns/client.ts";
import type { DnsRecord } from "../../src/dns/record.ts";
import { ApiError } from "../../src/http/errors.ts";
import { ProbeSlots } from "../../src/limits/probe-slots.ts";
import { requireAnswer } from "../../src/routes/dns.ts";
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

/** What a caller gets who asked for the name. */
function errorOf(hostname: string, resolution: Resolution): ApiError {
  try {
    requireAnswer({ ...resolution, queryTimeMs: 1 }, hostname, "resolver_a");
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error("no error");
}

function nameError(...records: DnsRecord[]): Resolution {
  return { ...FROM, kind: "name-error", rcode: "NXDOMAIN", records };
}

describe("the message", () => {
  // biome-ignore format: a table
  test.each<[string, string, Resolution, string, string]>([
    ["a name that does not exist", "missing.example", nameError(), "HOSTNAME_NOT_FOUND",
      '"missing.example" does not exist according to resolver_a (NXDOMAIN); check its spelling.'],
    ["a CNAME chain that ends at a missing name", "www.example", nameError(cname("www.example.", "a.example."), cname("a.example.", "gone.example.")), "HOSTNAME_NOT_FOUND",
      '"www.example" is an alias of "gone.example", which does not exist according to resolver_a (NXDOMAIN); its owner must correct the CNAME record.'],
    ["the same chain in presentation form", "www.example", nameError(SHOWN_LINK), "HOSTNAME_NOT_FOUND",
      '"www.example" is an alias of "gone.example", which does not exist according to resolver_a (NXDOMAIN); its owner must correct the CNAME record.'],
    ["an IPv6 address without a name", "2001:db8::1", nameError(), "HOSTNAME_NOT_FOUND",
      'The reverse name of "2001:db8::1" does not exist according to resolver_a (NXDOMAIN); its owner can add a PTR record.'],
    ["an IPv4 address without a name", "192.0.2.1", nameError(), "HOSTNAME_NOT_FOUND",
      'The reverse name of "192.0.2.1" does not exist according to resolver_a (NXDOMAIN); its owner can add a PTR record.'],
    ["an address whose chain ends at a missing name (RFC 2317)", "192.0.2.1", nameError(SHOWN_LINK), "HOSTNAME_NOT_FOUND",
      'The reverse name of "192.0.2.1" is an alias of "gone.example", which does not exist according to resolver_a (NXDOMAIN); its owner must correct the CNAME record.'],
    ["no answer in time", "www.example", { kind: "timeout" }, "RESOLVER_TIMEOUT",
      'resolver_a did not answer in time for "www.example"; try again, or try another resolver.'],
    ["a refusal", "www.example", { ...FROM, kind: "failure", rcode: "REFUSED" }, "RESOLVER_FAILURE",
      'resolver_a failed with REFUSED for "www.example"; try again, or try another resolver.'],
    ["a referral", "www.example", { ...FROM, kind: "failure", rcode: "REFERRAL" }, "RESOLVER_FAILURE",
      'resolver_a only referred to other servers for "www.example"; try again, or try another resolver.'],
    ["an answer that is too large", "www.example", { ...FROM, kind: "failure", rcode: "TOO_LARGE" }, "RESOLVER_FAILURE",
      'resolver_a sent an answer that is too large to show for "www.example"; ask for another name or type.'],
    ["a malformed answer", "www.example", { ...FROM, kind: "malformed", rcode: "MALFORMED" }, "RESOLVER_FAILURE",
      'resolver_a sent a malformed answer, such as a loop of CNAME records, for "www.example"; try again, or try another resolver.'],
    ["a closed port", "www.example", { ...FROM, kind: "unreachable", rcode: "UNREACHABLE", reason: "ECONNREFUSED" }, "RESOLVER_FAILURE",
      'resolver_a could not be reached for "www.example" (ECONNREFUSED); try again, or try another resolver.'],
    ["no socket left", "www.example", { ...FROM, kind: "unreachable", rcode: "UNREACHABLE", reason: "EMFILE" }, "RESOLVER_FAILURE",
      'resolver_a could not be reached for "www.example" (EMFILE); try again, or try another resolver.'],
  ])("%s", (_, hostname, resolution, code, message) => {
    const error = errorOf(hostname, resolution);
    expect([error.code as string, error.message]).toEqual([code, message]);
    expect(error.details).toMatchObject({ hostname, resolver: "resolver_a" });
  });

  test("the details have the code and the resolver's extended errors", () => {
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
      query: async () => ({ ...FROM, kind: "no-data", records: [], queryTimeMs: 1 }),
    };
    const resolved = resolveTarget(
      parseTarget("ipv4only.example"),
      {
        config: parseConfig({}),
        resolvers: { resolver_a: resolver, resolver_b: resolver, resolver_c: resolver },
        icmp: { unavailable: "no socket" },
        probeSlots: new ProbeSlots(1),
      },
      new AbortController().signal,
    );
    await expect(resolved).rejects.toMatchObject({
      code: "NO_IPV6_ADDRESS",
      message:
        '"ipv4only.example" exists but has no AAAA record, so it cannot be reached over IPv6; choose another target.',
    });
  });
});

test.each(["answer", "no-data"] as const)("%s passes through", (kind) => {
  const outcome: DnsOutcome = { ...FROM, kind, records: [SHOWN_LINK], queryTimeMs: 1 };
  expect(requireAnswer(outcome, "www.example", "resolver_a")).toBe(outcome);
});

test("a client that has disconnected gets no response", () => {
  const left = () => requireAnswer({ kind: "aborted", queryTimeMs: 1 }, "a", "resolver_a");
  expect(left).toThrow(expect.objectContaining({ name: "AbortError" }));
});
