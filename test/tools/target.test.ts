/** Names with several addresses, and zones as a URI has them. */
import { describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../src/addr/format.ts";
import type { Ipv6Address } from "../../src/addr/ipv6.ts";
import { preferenceOf } from "../../src/addr/selection.ts";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { interfaceName } from "../../src/icmp/socket/interfaces.ts";
import type { Services } from "../../src/tools/services.ts";
import { parseTarget, resolveTarget } from "../../src/tools/target.ts";
import { parseIpv6 } from "../addr/parse.ts";

/** A machine with the sources given by the first group of the targets; it has no route to others. */
function machine(sources: Readonly<Record<string, string>>) {
  const asked: string[] = [];
  const route = (target: Ipv6Address) => {
    const text = formatIpv6(target);
    asked.push(text);
    const source = sources[text.split(":")[0] ?? ""];
    return source === undefined ? "ENETUNREACH" : { source: parseIpv6(source), flowLabel: 0 };
  };
  return { asked, route };
}

async function resolve(
  addresses: readonly string[],
  sources: Readonly<Record<string, string>>,
  settings: Readonly<Record<string, string>> = {},
) {
  const records = addresses.map((value) => ({ type: "AAAA", value }));
  const dns = {
    query: async () => ({ kind: "answer", rcode: "NOERROR", records, question: {}, attempts: [] }),
  } as unknown as DnsClient;
  const services = {
    config: parseConfig(settings),
    resolvers: { resolver_a: dns, resolver_b: dns, resolver_c: dns },
    icmp: { unavailable: "" },
    probeSlots: new FairSlots(1),
  } as Services;
  const { asked, route } = machine(sources);
  const signal = new AbortController().signal;
  const resolved = await resolveTarget(
    parseTarget("name.example"),
    services,
    { signal, client: "" },
    { route },
  );
  const list = resolved.addresses?.map(({ ip, use }) => `${ip} ${use}`);
  return { ip: formatIpv6(resolved.destination.target), list, asked };
}

const GLOBAL = { "2001": "2001:db8::1", "2a00": "2001:db8::1" };
const BOTH = { ...GLOBAL, fd00: "fd00::1" };

describe("of a name with several addresses", () => {
  // biome-ignore format: a table
  test.each<[string, string[], Record<string, string>, Record<string, string>, string, string[]]>([
    ["the first that can be reached is probed", ["2a00::1", "2a00::2"], GLOBAL, {}, "2a00::1", ["2a00::1 probed", "2a00::2 spare"]],
    ["one without a route is passed over", ["2c00::1", "2a00::2"], GLOBAL, {}, "2a00::2", ["2a00::2 probed", "2c00::1 no-route"]],
    ["a global one goes before a unique local one", ["fd00::5", "2a00::2"], BOTH, {}, "2a00::2", ["2a00::2 probed", "fd00::5 spare"]],
    ["a unique local one is probed where there is no other way", ["2a00::2", "fd00::5"], { fd00: "fd00::1" }, {}, "fd00::5", ["fd00::5 probed", "2a00::2 no-route"]],
    ["one that the operator forbids is passed over", ["2a00::1", "2a00::2"], GLOBAL, { SIXSCOPE_TARGETS_DENY: "2a00::1/128" }, "2a00::2", ["2a00::1 not-allowed", "2a00::2 probed"]],
    ["a link-local one is passed over", ["fe80::1", "2a00::2"], GLOBAL, {}, "2a00::2", ["2a00::2 probed", "fe80::1 no-interface"]],
    ["the most bits in common with the source decide at last", ["2a00::1", "2001:db8::2"], GLOBAL, {}, "2001:db8::2", ["2001:db8::2 probed", "2a00::1 spare"]],
    ["without any route, the first is tried", ["2a00::1", "2a00::2"], {}, {}, "2a00::1", ["2a00::1 probed", "2a00::2 no-route"]],
  ])("%s", async (_name, addresses, sources, settings, ip, uses) => {
    const { ip: chosen, list } = await resolve(addresses, sources, settings);
    expect(chosen).toBe(ip);
    expect(list?.toSorted()).toEqual(uses.toSorted());
  });

  test("forbidden ones only are refused, and none is routed", async () => {
    const refused = resolve(["10::1", "10::2"], GLOBAL, { SIXSCOPE_TARGETS_DENY: "10::/16" });
    await expect(refused).rejects.toMatchObject({ code: "TARGET_NOT_ALLOWED" });
    const { asked } = await resolve(["2a00::1", "2a00::2"], GLOBAL, {
      SIXSCOPE_TARGETS_DENY: "2a00::1/128",
    });
    expect(asked).toEqual(["2a00::2"]);
  });

  test("at most 32 are considered; one alone needs no list and no route", async () => {
    const many = Array.from({ length: 100 }, (_, at) => `2a00::${at + 1}`);
    expect((await resolve(many, GLOBAL)).list).toHaveLength(32);
    expect(await resolve(["2a00::1"], {})).toEqual({ ip: "2a00::1", list: undefined, asked: [] });
  });
});

/** Each pair in the order of RFC 6724 section 10.2, as far as its rules apply. */
test.each([
  ["2001:db8:1::1", "2001:db8:1::2", "2002:c633:6401::1", "2001:db8:1::2"],
  ["2002:c633:6401::1", "2002:c633:6401::2", "2001:db8:1::1", "2002:c633:6401::2"],
  ["2001:db8:1::1", "2001:db8:1::2", "fd11:1::1", "fd11:1::2"],
  ["2001:db8:1::1", "2001:db8:1::2", "2001::1", "2001::2"],
  ["2001:db8:3ffe::1", "2001:db8:3f44::2", "2001:db8:1::1", "2001:db8:3ffe::2"],
])("%s from %s goes before %s from %s", (address, source, other, otherSource) => {
  const preference = (to: string, from: string) => preferenceOf(parseIpv6(to), parseIpv6(from));
  expect(preference(address, source)).toBeGreaterThan(preference(other, otherSource));
  expect(preference(other, otherSource)).toBeGreaterThan(preferenceOf(parseIpv6(address), null));
});

describe("a zone as a URI has it", () => {
  const [index, name] = [1, interfaceName(1)];
  test.each([
    [`fe80::1%${name}`, index],
    [`fe80::1%25${name}`, index],
    ["fe80::1%1", index],
    ["fe80::1%251", index],
    ["fe80::1%25", null],
    ["fe80::1%25nonesuch", null],
    [`fe80::1%25${name}x`, null],
  ])("%s", async (text, scopeId) => {
    const services = { config: parseConfig({}) } as Services;
    const signal = new AbortController().signal;
    const { route } = machine({});
    const resolved = resolveTarget(parseTarget(text), services, { signal, client: "" }, { route });
    if (scopeId === null)
      await expect(resolved).rejects.toMatchObject({ code: "INVALID_PARAMETER" });
    else expect((await resolved).destination.scopeId).toBe(scopeId);
  });
});

test("a target of IPv4 is told what can be done with it", () => {
  const message =
    "192.0.2.1 is an IPv4 address; sixscope probes IPv6 only. Check a name to compare both.";
  expect(() => parseTarget("192.0.2.1")).toThrow(message);
});

test.each(["https://www.example.com/", "www.example.com:443", "192.0.2.1."])(
  "a target that is neither a name nor an address says how to write it: %s",
  (text) => {
    expect(() => parseTarget(text)).toThrow(
      expect.objectContaining({
        code: "INVALID_ADDRESS",
        message: expect.stringMatching(
          /^".*; write it like .*, or a name without scheme, port and path\.$/,
        ),
      }),
    );
  },
);
