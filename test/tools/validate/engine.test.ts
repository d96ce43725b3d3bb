import { describe, expect, test } from "bun:test";
import { classifyIpv6, TYPE_TABLE } from "../../../src/addr/classify.ts";
import { describeAddress } from "../../../src/tools/validate/engine.ts";
import { addressDetails } from "../../../src/tools/validate/result.ts";
import { parseIpv6 } from "../../addr/parse.ts";

/** The keys that every address has are checked once, below. */
function derived(text: string) {
  const { reverseName, integer, binary, registrySnapshot, ...rest } = describeAddress(
    parseIpv6(text),
  ).details;
  return rest;
}

describe("describeAddress", () => {
  test("of the contract's example, whole", () => {
    expect(describeAddress(parseIpv6("2001:db8::1")).details).toEqual({
      definedBy: { block: "2001:db8::/32", rfc: "RFC 3849" },
      scope: "Global",
      specialPurpose: {
        block: "2001:db8::/32",
        name: "Documentation",
        rfcs: ["RFC 3849"],
        allocated: "2004-07",
        source: false,
        destination: false,
        forwardable: false,
        globallyReachable: false,
        reservedByProtocol: false,
      },
      interfaceId: { value: "0000:0000:0000:0001", kind: "low-byte" },
      solicitedNode: "ff02::1:ff00:1",
      reverseName: "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
      integer: "42540766411282592856903984951653826561",
      binary: `0010000000000001:0000110110111000:${"0000000000000000:".repeat(5)}0000000000000001`,
      registrySnapshot: "2025-10",
    });
  });

  test("of an ordinary address", () => {
    expect(derived("2a00:1450:4001:82a::200e")).toEqual({
      definedBy: { block: "2000::/3", rfc: "RFC 4291" },
      scope: "Global",
      allocation: { status: "allocated", registry: "RIPE NCC", block: "2a00::/12" },
      interfaceId: { value: "0000:0000:0000:200e", kind: "low-byte" },
      solicitedNode: "ff02::1:ff00:200e",
    });
  });

  test("of Teredo", () => {
    expect(derived("2001:0:4136:e378:8000:63bf:3fff:fdd2")).toMatchObject({
      definedBy: { block: "2001::/32", rfc: "RFC 4380" },
      specialPurpose: { name: "TEREDO", globallyReachable: null },
      embeddedIPv4: [
        {
          mechanism: "teredo",
          client: "192.0.2.45",
          server: "65.54.227.120",
          port: 40000,
          flags: "0x8000",
          cone: true,
        },
      ],
    });
  });

  test("of the first ORCHID, whose row has no flags", () => {
    expect(derived("2001:10::1")).toEqual({
      definedBy: { block: "2001:10::/28", rfc: "RFC 4843", status: "deprecated" },
      specialPurpose: {
        block: "2001:10::/28",
        name: "Deprecated (previously ORCHID)",
        rfcs: ["RFC 4843"],
        allocated: "2007-03",
        terminated: "2014-03",
      },
    });
  });

  test("of ISATAP over 6to4", () => {
    expect(derived("2002:c000:201:1:0:5efe:10.0.0.1")).toMatchObject({
      embeddedIPv4: [
        { mechanism: "6to4", address: "192.0.2.1" },
        { mechanism: "isatap", address: "10.0.0.1" },
      ],
      interfaceId: { value: "0000:5efe:0a00:0001", kind: "isatap" },
    });
  });

  test("of multicast", () => {
    expect(derived("ff02::fb")).toEqual({
      definedBy: { block: "ff00::/8", rfc: "RFC 4291" },
      scope: "Link-Local",
      multicast: {
        flags: { transient: false, prefixBased: false, rendezvousPoint: false },
        group: { name: "mDNSv6", rfc: "RFC 6762" },
      },
    });
  });

  test.each([
    ["2001:db8::1", "not APNIC, in whose block documentation lies", undefined],
    ["2001:dff::1", "APNIC", { status: "allocated", registry: "APNIC", block: "2001:c00::/23" }],
    ["3ffe::1", "once 6bone", { status: "reserved", block: "3ffe::/16" }],
    ["2d00::1", "reserved by IANA", { status: "reserved", block: "2d00::/8" }],
    ["2640::1", "not allocated", { status: "unallocated" }],
    ["2001::1", "Teredo", undefined],
    ["2002::1", "6to4", undefined],
    ["fd00::1", "unique-local", undefined],
  ])("the allocation of %s: %s", (text, _, allocation) => {
    expect(describeAddress(parseIpv6(text)).details.allocation as unknown).toEqual(allocation);
  });

  test.each([
    ["::", undefined],
    ["::1", "Link-Local"],
    ["fe80::1", "Link-Local"],
    ["fec0::1", "Site-Local"],
    ["fd00::1", "Global"],
    ["2600::1", "Global"],
    ["::ffff:10.0.0.1", undefined],
    ["4000::", undefined],
    ["ff05::1", "Site-Local"],
  ])("the scope of %s is %p", (text, scope) => {
    expect(describeAddress(parseIpv6(text)).details.scope).toBe(scope);
  });

  test("names the block and the RFC of every type", () => {
    for (const { type, prefix, block, rfc } of TYPE_TABLE.rows) {
      const { network } = prefix;
      if (network.version !== 6 || classifyIpv6(network) !== type) continue;
      expect(describeAddress(network).details.definedBy).toMatchObject({
        block,
        rfc: `RFC ${rfc}`,
      });
    }
  });

  test("is plain JSON and matches the schema", () => {
    for (const { prefix } of TYPE_TABLE.rows) {
      if (prefix.network.version !== 6) continue;
      const details = describeAddress(prefix.network).details;
      expect(addressDetails().parse(JSON.parse(JSON.stringify(details)))).toEqual(details);
      expect(Object.values(details)).not.toContain(undefined);
    }
  });
});
