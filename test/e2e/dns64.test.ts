/** A real DNS64 resolver, through the whole service. */
import { afterAll, beforeAll, expect } from "bun:test";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { type Service, startService } from "../lab/service.ts";
import { startUnbound, type Unbound } from "../lab/unbound.ts";

const missing = labMissing ?? programMissing("knotd") ?? programMissing("unbound");
const labTest = testWith(missing);

const START = "$TTL 60\n@ SOA ns.example.org. h.example.org. 1 60 60 60 60\n@ NS ns.example.org.\n";

let chain: KernelChain;
let knot: KnotServer;
let translating: Unbound;
let prefix: string;
let settings: Record<string, string>;

beforeAll(async () => {
  if (missing !== null) return;
  chain = await startKernelChain({ routers: 1 });
  // The target's own /96, so that the trace to an address that the resolver makes has a way.
  prefix = chain.target.replace(/::2$/, "::/96");
  knot = await startKnot({
    zones: {
      "example.org.": `${START}ns AAAA ::1\nv4 A 0.0.0.2\nv6 AAAA 2001:db9::1\nalias CNAME v4\n`,
      "ipv4only.arpa.": `${START}@ A 192.0.0.170\n@ A 192.0.0.171\n`,
    },
  });
  const zones = ["example.org.", "ipv4only.arpa."];
  translating = await startUnbound({ zones, server: knot.endpoint, dns64: prefix });
  settings = {
    SIXSCOPE_RESOLVER_A: `[::1]:${translating.endpoint.port}`,
    SIXSCOPE_RESOLVER_B: `[::1]:${knot.endpoint.port}`,
    SIXSCOPE_RESOLVER_C: "[::1]:9",
  };
});

afterAll(async () => {
  if (missing !== null) return;
  await translating.stop();
  await knot.stop();
  await chain.stop();
});

async function details({ url, key }: Service, path: string) {
  const response = await fetch(url + path, { headers: { "X-API-Key": key } });
  return ((await response.json()) as { details: { dns64?: unknown; resolvers?: unknown } }).details;
}

labTest(
  "/dns and /traceroute name the IPv4 address behind an address that a resolver makes",
  async () => {
    await using service = await startService(settings);
    const translation = { ip: chain.target, prefix, ipv4: "0.0.0.2" };
    // The first answer does not wait for the resolver's prefix.
    while ((await details(service, "/dns/v4.example.org")).dns64 === undefined) await Bun.sleep(10);
    for (const name of ["v4", "alias"]) {
      const { dns64 } = await details(service, `/dns/${name}.example.org?dnssec=yes`);
      expect(dns64).toEqual([translation]);
    }
    expect(await details(service, "/dns/v6.example.org")).not.toHaveProperty("dns64");
    expect(await details(service, "/dns/v4.example.org?type=A")).not.toHaveProperty("dns64");
    const compared = await details(service, "/dns/v4.example.org?resolver=all");
    const [first, ...others] = compared.resolvers as { dns64?: unknown }[];
    expect([compared.dns64, first?.dns64]).toEqual([[translation], [translation]]);
    for (const other of others) expect(other).not.toHaveProperty("dns64");
    for (const target of ["v4.example.org", chain.target]) {
      expect(await details(service, `/traceroute/${target}`)).toMatchObject({
        reached: true,
        dns64: translation,
      });
    }
    expect(await details(service, `/traceroute/${chain.hops[0]}`)).not.toHaveProperty("dns64");
  },
);
