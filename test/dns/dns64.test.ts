/** The prefixes remembered for a resolver that makes IPv6 addresses of IPv4 addresses. */
import { describe, expect, test } from "bun:test";
import type { DnsClient } from "../../src/dns/client.ts";
import { learnTranslators, translationOf } from "../../src/dns/dns64.ts";
import type { DnsOutcome } from "../../src/dns/outcome.ts";
import { FakeClock } from "../util/fake-clock.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** A resolver that a test answers for, and the names that it was asked for. */
function resolverOf(...answers: (readonly string[] | "timeout" | "fault")[]) {
  const asked: string[] = [];
  const client = {
    query: async (name: string) => {
      asked.push(name);
      const answer = answers.shift() ?? "timeout";
      if (answer === "fault") throw new Error("unforeseen");
      if (answer === "timeout") return { kind: "timeout" };
      const records = answer.map((value) => ({ type: "AAAA", value, ttl: 60 }));
      return { kind: records.length > 0 ? "answer" : "no-data", records } as unknown as DnsOutcome;
    },
  } as unknown as DnsClient;
  return { client, asked };
}

const DNS64 = ["2001:db8:64::c000:aa", "2001:db8:64::c000:ab"];
const INSIDE = "2001:db8:64::c000:221";
const TRANSLATION = { ip: INSIDE, prefix: "2001:db8:64::/96", ipv4: "192.0.2.33" };

/** Until promises that need no timer are settled. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a resolver's prefix", () => {
  test("is known once the resolver has answered, and it is asked once an hour", async () => {
    const clock = new FakeClock();
    const { client, asked } = resolverOf(DNS64, DNS64);
    expect(translationOf(client, INSIDE)).toBeNull();
    learnTranslators(client, clock);
    learnTranslators(client, clock);
    expect(translationOf(client, INSIDE)).toBeNull();
    await settled();
    learnTranslators(client, clock);
    expect(asked).toEqual(["ipv4only.arpa"]);
    expect(translationOf(client, INSIDE)).toEqual(TRANSLATION);
    await clock.advance(HOUR_MS);
    learnTranslators(client, clock);
    expect(asked).toHaveLength(2);
  });

  test.each(["timeout", "fault"] as const)(
    "is asked for again a minute after a %s, and the old one stays valid",
    async (failure) => {
      const clock = new FakeClock();
      const { client, asked } = resolverOf(DNS64, failure, []);
      learnTranslators(client, clock);
      await settled();
      await clock.advance(HOUR_MS);
      learnTranslators(client, clock);
      await settled();
      expect(translationOf(client, INSIDE)).toEqual(TRANSLATION);
      await clock.advance(MINUTE_MS - 1);
      learnTranslators(client, clock);
      expect(asked).toHaveLength(2);
      await clock.advance(1);
      learnTranslators(client, clock);
      expect(asked).toHaveLength(3);
      await settled();
      expect(translationOf(client, INSIDE)).toBeNull();
    },
  );

  test("belongs to this resolver alone", async () => {
    const { client } = resolverOf(DNS64);
    learnTranslators(client);
    await settled();
    expect(translationOf(resolverOf().client, INSIDE)).toBeNull();
  });
});

test("the well-known prefix needs no answer", () => {
  const { client, asked } = resolverOf();
  const expected = { ip: "64:ff9b::c000:221", prefix: "64:ff9b::/96", ipv4: "192.0.2.33" };
  expect(translationOf(client, "64:ff9b::c000:221")).toEqual(expected);
  expect(translationOf(client, "64:ff9b:1::c000:221")).toBeNull();
  expect(asked).toEqual([]);
});
