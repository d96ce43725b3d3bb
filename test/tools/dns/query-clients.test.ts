/** Every question that a call asks of a resolver is one of its client, so that nobody holds the places of others. */
import { describe, expect, test } from "bun:test";
import { type SocketAddress, tryParseSocketAddress } from "../../../src/addr/socket-address.ts";
import { parseConfig } from "../../../src/config/settings.ts";
import { createDnsClient, type DnsClient, MAX_QUESTIONS } from "../../../src/dns/client.ts";
import { FairSlots } from "../../../src/gate/fair-slots.ts";
import { dns } from "../../../src/tools/dns/endpoint.ts";
import { hopNames } from "../../../src/tools/hop-names.ts";
import { parseTarget, resolveTarget } from "../../../src/tools/target.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { FakeNetwork } from "../../dns/fake-network.ts";
import { aaaa, askedName, replyTo } from "../../dns/messages.ts";
import { FakeClock } from "../../util/fake-clock.ts";

const SERVER = tryParseSocketAddress("192.0.2.1", 53) as SocketAddress;

/** A resolver that answers every name, and the questions and their clients. */
function start(rcode = 0) {
  const clock = new FakeClock();
  const udp = (query: Uint8Array) =>
    replyTo(query, rcode === 0 ? { answers: [aaaa(askedName(query), "::1")] } : { rcode });
  const network = new FakeNetwork({ "192.0.2.1:53": { udp } }, clock);
  const client = createDnsClient({ servers: [SERVER], sockets: network, clock });
  const clients: string[] = [];
  const recorded: DnsClient = {
    query(name, type, options = {}) {
      // An AAAA question asks this on the side, for all who ask, once an hour.
      if (name !== "ipv4only.arpa") clients.push(`${options.client}`);
      return client.query(name, type, options);
    },
  };
  const resolvers = { resolver_a: recorded, resolver_b: recorded, resolver_c: recorded };
  const call = {
    ...{ signal: new AbortController().signal, client: "me", address: null },
    allowSeconds() {},
  };
  return { clock, resolvers, recorded, clients, call };
}

describe("the client of", () => {
  test.each([
    ["a look-up", {}, 1],
    ["three look-ups", { resolver: "all" }, 3],
    ["a look-up that is validated", { dnssec: "yes" }, 2],
  ])("%s", async (_, parameters, atLeast) => {
    const { resolvers, clients, call } = start();
    const values = {
      ...{ hostname: "www.test", type: "AAAA", resolver: "resolver_a", dnssec: "no" },
      ...parameters,
    };
    const services = { resolvers, querySlots: new FairSlots(1), config: parseConfig({}) };
    await dns.handle(values, call, services as never);
    expect(clients.length).toBeGreaterThanOrEqual(atLeast);
    expect(new Set(clients)).toEqual(new Set(["me"]));
  });

  test("a look-up that failed and is asked again without validation", async () => {
    const { resolvers, clients, call } = start(2);
    const values = { hostname: "www.test", type: "AAAA", resolver: "resolver_a", dnssec: "yes" };
    const services = { resolvers, querySlots: new FairSlots(1), config: parseConfig({}) };
    await expect(dns.handle(values, call, services as never)).rejects.toThrow("SERVFAIL");
    expect(clients.length).toBeGreaterThan(1);
    expect(new Set(clients)).toEqual(new Set(["me"]));
  });

  test("a target's name", async () => {
    const { resolvers, clients, call } = start();
    const services = { config: parseConfig({}), resolvers } as never;
    const route = () => ({ source: parseIpv6("::1"), flowLabel: 0 });
    await resolveTarget(parseTarget("www.test"), services, call, { route }).catch(() => null);
    expect(clients).toEqual(["me"]);
  });

  test("the names of hops", async () => {
    const { recorded, clients, call, clock } = start();
    const names = hopNames(recorded, [SERVER], call, () => {}, clock);
    for (const ip of ["2001:4860::1", "2001:4860::2"]) names.ask(ip);
    await clock.advance(10);
    expect(clients.length).toBeGreaterThanOrEqual(2);
    expect(new Set(clients)).toEqual(new Set(["me"]));
  });
});

test("a flood of one client at a silent resolver leaves half of the places, and others are asked at once", async () => {
  const clock = new FakeClock();
  const isFlood = (query: Uint8Array) => askedName(query).startsWith("1");
  const udp = (query: Uint8Array) => (isFlood(query) ? null : replyTo(query, {}));
  const network = new FakeNetwork({ "192.0.2.1:53": { udp } }, clock);
  const client = createDnsClient({ servers: [SERVER], sockets: network, clock });
  const flood = Array.from({ length: 1_000 }, (_, nth) =>
    client.query(`1${nth}`, "A", { client: "flood" }),
  );
  await clock.advance(1);
  expect(network.openCount).toBe(MAX_QUESTIONS / 2);
  const others = Array.from({ length: 60 }, (_, nth) =>
    client.query(`2${nth}`, "A", { client: `${nth % 20}` }),
  );
  await clock.advance(0);
  expect((await Promise.all(others)).map(({ queryTimeMs }) => queryTimeMs)).toEqual(
    Array(60).fill(0),
  );
  await clock.advance(60_000);
  expect(new Set((await Promise.all(flood)).map(({ kind }) => kind))).toEqual(new Set(["timeout"]));
});
