/** How pings and traces are presented, and how long they keep their connections open. */
import { describe, expect, test } from "bun:test";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import type { Call, Endpoint, Tools } from "../../src/http/endpoint.ts";
import type { IcmpEngine } from "../../src/icmp/engine.ts";
import type { InterfaceInformation, MplsLabel } from "../../src/icmp/icmp-error.ts";
import type { LostSample, PingOutcome } from "../../src/icmp/ping.ts";
import type { TraceHop } from "../../src/icmp/trace-report.ts";
import type { TraceOptions, TraceOutcome, TraceRequest } from "../../src/icmp/traceroute.ts";
import { ProbeSlots } from "../../src/limits/probe-slots.ts";
import { ping } from "../../src/routes/ping.ts";
import { traceroute } from "../../src/routes/traceroute.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { interfaceDocument, mismatches } from "../lab/conformance.ts";

/** Seconds before a run: for a slot, for the resolver, and for the target's /64 twice. */
const WAIT = 5 + 5 + 2 * 3;

/** Seconds after the last probe for which a run listens that has heard nothing. */
const SILENCE = 3.2;

const SOURCE = parseIpv6("2001:db8::1");
const FAR = parseIpv6("2001:db8::80");
const ROUTER = parseIpv6("2001:db8:1::1");
const OTHER_ROUTER = parseIpv6("2001:db8:1::2");

/** No address has a name. */
const namelessDns = {
  query: async () => ({ kind: "timeout" }),
} as unknown as DnsClient;

const CALL: Call = {
  signal: new AbortController().signal,
  address: null,
  owner: "",
  allowSeconds: () => {},
};

function toolsWith(
  engine: IcmpEngine,
  dns: DnsClient,
  settings: Record<string, string> = {},
): Tools {
  return {
    config: parseConfig({ SIXSCOPE_PROBE_TIMEOUT_MS: "1500", ...settings }),
    resolvers: { resolver_a: dns, resolver_b: dns, resolver_c: dns },
    icmp: engine,
    probeSlots: new ProbeSlots(1),
  };
}

/** The answer of an endpoint over an engine with given outcomes, and the seconds that it was allowed. */
async function ask(
  endpoint: Endpoint,
  parameters: Readonly<Record<string, number>>,
  outcomes: { readonly ping?: PingOutcome; readonly trace?: TraceOutcome },
) {
  const engine = {
    ping: async () => outcomes.ping,
    traceroute: async () => outcomes.trace,
  } as unknown as IcmpEngine;
  const allowedSeconds: number[] = [];
  const body = (await endpoint.handle(
    { target: "2001:db8::80", ...parameters },
    { ...CALL, allowSeconds: (seconds) => allowedSeconds.push(seconds) },
    toolsWith(engine, namelessDns),
  )) as Record<string, unknown>;
  const documented = interfaceDocument.paths[endpoint.path]?.get.responses["200"];
  const schema = documented?.content["application/json"].schema ?? {};
  expect(mismatches(schema, body)).toEqual([]);
  return { body, allowedSeconds };
}

const PINGED: PingOutcome = {
  kind: "done",
  source: SOURCE,
  timeoutMs: 1500,
  samples: [
    { seq: 1, hopLimit: 57, rttMs: 1.23456 },
    { seq: 3, hopLimit: 57, rttMs: 3.6 },
  ],
  lost: [{ seq: 2, reason: "no-route", type: 1, code: 0, from: ROUTER, rttMs: 9.8765 }],
  duplicates: 4,
};

const HOP: TraceHop = {
  hop: 1,
  address: ROUTER,
  scopeId: 0,
  rttMs: 1.23456,
  rttsMs: [1.23456],
  addresses: [ROUTER],
  mpls: [],
  interfaces: [],
  mtuBytes: null,
  end: null,
};

const TRACED: TraceOutcome = {
  kind: "done",
  source: SOURCE,
  flowLabel: 0xabcde,
  reached: true,
  reason: "reached",
  error: null,
  otherSource: null,
  refused: [],
  hops: [HOP],
};

const LABEL: MplsLabel = { label: 24_001, trafficClass: 5, bottomOfStack: true, ttl: 1 };

const INTERFACE: InterfaceInformation = {
  role: "incoming",
  index: 7,
  address: OTHER_ROUTER,
  name: "eth0",
  mtuBytes: 9000,
};

describe("an answer", () => {
  test("of a ping has every sample, loss and count", async () => {
    const { body } = await ask(ping, { count: 3 }, { ping: PINGED });
    expect(body).toEqual({
      target: "2001:db8::80",
      ip: "2001:db8::80",
      results: [
        { seq: 1, ttl: 57, rtt: 1.235 },
        { seq: 3, ttl: 57, rtt: 3.6 },
      ],
      stats: { transmitted: 3, received: 2, loss: 33.33, min: 1.235, avg: 2.417, max: 3.6 },
      details: {
        source: "2001:db8::1",
        timeout: 1500,
        lost: [{ seq: 2, reason: "no-route", type: 1, code: 0, from: "2001:db8:1::1", rtt: 9.877 }],
        duplicates: 4,
        late: 0,
      },
    });
  });

  // biome-ignore format: a table
  test.each<[string, LostSample, object, number, number]>([
    ["no answer", { seq: 1, reason: "timeout" }, { seq: 1, reason: "timeout" }, 100, 0],
    ["a late reply", { seq: 1, reason: "timeout", rttMs: 2000.5 }, { seq: 1, reason: "timeout", rtt: 2000.5 }, 100, 1],
    ["packets that the kernel dropped: not lost", { seq: 1, reason: "unknown" }, { seq: 1, reason: "unknown" }, 0, 0],
    ["a refusal", { seq: 1, reason: "not-sent", errno: "EPERM" }, { seq: 1, reason: "not-sent", errno: "EPERM" }, 100, 0],
  ])("of a ping describes a sample with %s", async (_, sample, expected, loss, late) => {
    const pinged: PingOutcome = { ...PINGED, samples: [], lost: [sample], duplicates: 0 };
    const { body } = await ask(ping, { count: 1 }, { ping: pinged });
    expect(body).toMatchObject({
      stats: { transmitted: 1, received: 0, loss, min: null },
      details: { lost: [expected], late },
    });
  });

  test("of a ping counts requests that could not be sent as lost", async () => {
    const lost: LostSample = { seq: 2, reason: "not-sent", errno: "EPERM" };
    const { body } = await ask(ping, { count: 3 }, { ping: { ...PINGED, lost: [lost] } });
    expect(body["stats"]).toMatchObject({ transmitted: 3, received: 2, loss: 33.33 });
  });

  test("of a ping says which other address replied", async () => {
    const samples = [{ seq: 1, hopLimit: 57, rttMs: 1, otherSource: FAR }];
    const { body } = await ask(ping, { count: 1 }, { ping: { ...PINGED, samples, lost: [] } });
    const details = { reason: "other-source", from: "2001:db8::80" };
    expect(body["results"]).toEqual([{ seq: 1, ttl: 57, rtt: 1, details }]);
    expect(body["stats"]).toMatchObject({ received: 1, loss: 0 });
  });

  const plain = { hop: 1, ip: "2001:db8:1::1", hostname: null, rtt: 1.235 };
  // biome-ignore format: a table
  test.each<[string, Partial<TraceHop>, object]>([
    ["an address and a time", {}, plain],
    ["an interface to a link-local address", { scopeId: 1 }, { ...plain, details: { zone: "lo" } }],
    ["nothing", { address: null, rttMs: null, rttsMs: [], addresses: [] }, { hop: 1, ip: null, hostname: null, rtt: null }],
    ["more than one time", { rttsMs: [1.23456, 2.5] }, { ...plain, details: { rtts: [1.235, 2.5] } }],
    ["more than one address", { addresses: [ROUTER, OTHER_ROUTER] }, { ...plain, details: { addresses: ["2001:db8:1::1", "2001:db8:1::2"] } }],
    ["an MPLS label", { mpls: [LABEL] }, { ...plain, details: { mpls: [LABEL] } }],
    ["an interface", { interfaces: [INTERFACE] }, { ...plain, details: { interfaces: [{ role: "incoming", index: 7, address: "2001:db8:1::2", name: "eth0", mtu: 9000 }] } }],
    ["an interface without information", { interfaces: [{ role: "outgoing", index: null, address: null, name: null, mtuBytes: null }] }, { ...plain, details: { interfaces: [{ role: "outgoing", index: null, address: null, name: null, mtu: null }] } }],
    ["an MTU", { mtuBytes: 1280 }, { ...plain, details: { mtu: 1280 } }],
  ])("of a trace describes a hop with %s", async (_, hop, expected) => {
    const { body } = await ask(traceroute, { maxHops: 30 }, { trace: { ...TRACED, hops: [{ ...HOP, ...hop }] } });
    expect(body).toEqual({
      target: "2001:db8::80",
      ip: "2001:db8::80",
      hops: [expected],
      details: { reached: true, reason: "reached", source: "2001:db8::1", flowLabel: 0xabcde },
    });
  });

  test("of a trace has the error that ended it, and its sender", async () => {
    const error = { type: 1, code: 1, name: "prohibited", from: FAR, fromTarget: true };
    const trace: TraceOutcome = { ...TRACED, reached: false, reason: "prohibited", error };
    const { body } = await ask(traceroute, { maxHops: 30 }, { trace });
    expect(body["details"]).toEqual({
      reached: false,
      reason: "prohibited",
      error: { type: 1, code: 1, name: "prohibited", from: "2001:db8::80", fromTarget: true },
      source: "2001:db8::1",
      flowLabel: 0xabcde,
    });
  });
});

test("an answer of a trace says what reached the target in its place, and what was refused", async () => {
  const refused = [{ hop: 2, errno: "EPERM" }];
  const trace: TraceOutcome = { ...TRACED, otherSource: FAR, refused };
  const { body } = await ask(traceroute, { maxHops: 30 }, { trace });
  expect(body["details"]).toMatchObject({ otherSource: "2001:db8::80", refused });
});

test("a trace to a name says that its target leads to a translator of the resolver", async () => {
  const asked: string[] = [];
  const dns = {
    query: async (name: string) => {
      asked.push(name);
      const ends = name === "ipv4only.arpa" ? ["c000:aa", "c000:ab"] : ["c000:221"];
      const records = ends.map((end) => ({ type: "AAAA", value: `2001:db8:64::${end}`, ttl: 60 }));
      return { kind: "answer", rcode: "NOERROR", records };
    },
  } as unknown as DnsClient;
  const engine = { traceroute: async () => TRACED } as unknown as IcmpEngine;
  const trace = async (target: string) => {
    const parameters = { target, maxHops: 30, names: "no" };
    const tools = toolsWith(engine, dns);
    const { details } = (await traceroute.handle(parameters, CALL, tools)) as { details: object };
    return details;
  };
  const ip = "2001:db8:64::c000:221";
  expect(await trace(ip)).not.toHaveProperty("dns64");
  expect(asked).toEqual([]);
  const dns64 = { ip, prefix: "2001:db8:64::/96", ipv4: "192.0.2.33" };
  expect(await trace("www.example.test")).toMatchObject({ dns64 });
  expect(asked.toSorted()).toEqual(["ipv4only.arpa", "www.example.test"]);
  expect(await trace(ip)).toMatchObject({ dns64 });
  expect(await trace("2001:db8:65::1")).not.toHaveProperty("dns64");
});

test("a target's name is looked up before a slot is taken", async () => {
  const running: number[] = [];
  const tools = toolsWith(
    {} as IcmpEngine,
    {
      query: async () => {
        running.push(tools.probeSlots.running);
        return { kind: "timeout" };
      },
    } as unknown as DnsClient,
  );
  const pending = ping.handle({ target: "www.example.test", count: 1 }, CALL, tools);
  await expect(pending).rejects.toMatchObject({ code: "RESOLVER_TIMEOUT" });
  // The resolver's DNS64 prefix and the name.
  expect(running).toEqual([0, 0]);
});

test.each([
  ["yes", 1],
  ["no", 0],
])("names=%s asks for %p names", async (names, count) => {
  const asked: string[] = [];
  const engine = {
    traceroute: async (_request: TraceRequest, { onHop }: TraceOptions) => {
      onHop?.(HOP);
      return TRACED;
    },
  } as unknown as IcmpEngine;
  const dns = {
    query: async (name: string, type: string) => {
      asked.push(name);
      return { kind: "answer", records: [{ type, value: "router.example." }] };
    },
  } as unknown as DnsClient;
  const tools = toolsWith(engine, dns, { SIXSCOPE_RESOLVER_A: "::1" });
  const parameters = { target: "2001:db8::80", maxHops: 30, names };
  const { hops } = (await traceroute.handle(parameters, CALL, tools)) as { hops: unknown };
  expect(asked).toHaveLength(count);
  expect(hops).toMatchObject([{ hostname: names === "yes" ? "router.example" : null }]);
});

describe("a connection may be silent", () => {
  test("until the last sample of a ping is decided", async () => {
    const { allowedSeconds } = await ask(ping, { count: 3 }, { ping: PINGED });
    expect(allowedSeconds[0]).toBeCloseTo(WAIT + 2 * 0.2 + SILENCE);
  });

  test("for two timeouts of a trace and the time for which it persists", async () => {
    const { allowedSeconds } = await ask(traceroute, { maxHops: 30 }, { trace: TRACED });
    const [persistence, names] = [10, 0.25];
    expect(allowedSeconds[0]).toBeCloseTo(WAIT + 2 * 1.5 + persistence + SILENCE + names);
  });
});
