import { describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import type { Ipv6Address } from "../../../src/addr/ipv6.ts";
import type { Response } from "../../../src/icmp/prober/response.ts";
import { describeTrace } from "../../../src/tools/trace/responses.ts";
import { parseIpv6 } from "../../addr/parse.ts";

const SOURCE = parseIpv6("2001:db8::1");
const TARGET = parseIpv6("2001:db8::80");
const ROUTER = parseIpv6("2001:db8:1::1");
const FIREWALL = parseIpv6("2001:db8:1::2");

const LABEL = { label: 7, trafficClass: 0, bottomOfStack: true, ttl: 1 };

const hop: Response = {
  kind: "error",
  type: 3,
  code: 0,
  from: ROUTER,
  rttMs: 1,
  hopLimit: 64,
  scopeId: 0,
  parameter: 0,
  extensions: { mpls: [LABEL], interfaces: [] },
};
const prohibited: Response = {
  ...hop,
  type: 1,
  code: 1,
  from: FIREWALL,
  rttMs: 2,
  extensions: { mpls: [], interfaces: [] },
};
const reply: Response = {
  kind: "reply",
  from: TARGET,
  scopeId: 0,
  rttMs: 3,
  hopLimit: 64,
  isOtherSource: false,
};

describe("of several responses at one hop, the one that ends the path comes first", () => {
  const rows: [string, Response[], [rtts: number[], addresses: Ipv6Address[], mpls: object[]]][] = [
    [
      "a reply before errors",
      [hop, prohibited, reply],
      [[3, 2, 1], [TARGET, FIREWALL, ROUTER], []],
    ],
    [
      "an error that ends the path before one that does not",
      [hop, prohibited],
      [[2, 1], [FIREWALL, ROUTER], []],
    ],
    [
      "equals in the order in which they came, each address once",
      [hop, { ...hop, from: FIREWALL, rttMs: 9 }, { ...hop, rttMs: 5 }],
      [[1, 9, 5], [ROUTER, FIREWALL], [LABEL]],
    ],
  ];
  test.each(rows)("%s", (_, responses, [rtts, senders, mpls]) => {
    const addresses = senders.map(formatIpv6);
    expect(describeTrace([responses], [], SOURCE, TARGET).hops).toMatchObject([
      {
        ip: addresses[0] as string,
        rtt: rtts[0] as number,
        details: { rtts, addresses, ...(mpls.length > 0 && { mpls }) },
      },
    ]);
  });

  test("and so are the reason and the error of the trace", () => {
    expect(describeTrace([[hop, prohibited, reply]], [], SOURCE, TARGET)).toMatchObject({
      reached: true,
      reason: "reached",
      error: null,
    });
    expect(describeTrace([[hop, prohibited]], [], SOURCE, TARGET)).toMatchObject({
      reached: false,
      reason: "prohibited",
      error: { type: 1, code: 1, from: formatIpv6(FIREWALL), fromTarget: false },
    });
  });
});
