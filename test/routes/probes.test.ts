/** How pings and traces are presented, and how long they keep their connections open. */
import { describe, expect, test } from "bun:test";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import type { Endpoint, Tools } from "../../src/http/endpoint.ts";
import type { IcmpEngine } from "../../src/icmp/engine.ts";
import type { InterfaceInformation, MplsLabel } from "../../src/icmp/icmp-error.ts";
import type { PingOutcome } from "../../src/icmp/ping.ts";
import type { TraceHop } from "../../src/icmp/trace-report.ts";
import type { TraceOutcome } from "../../src/icmp/traceroute.ts";
import { ProbeSlots } from "../../src/limits/probe-slots.ts";
import { ping } from "../../src/routes/ping.ts";
import { traceroute } from "../../src/routes/traceroute.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { interfaceDocument, mismatches } from "../lab/conformance.ts";

/** Seconds before a run: for a slot, for the resolver, and for the target's /64 twice. */
const WAIT = 5 + 5 + 2 * 3;

const SOURCE = parseIpv6("2001:db8::1");
const FAR = parseIpv6("2001:db8::80");
const ROUTER = parseIpv6("2001:db8:1::1");
const OTHER_ROUTER = parseIpv6("2001:db8:1::2");

/** No address has a name. */
const namelessDns = {
  query: async () => ({ kind: "timeout" }),
} as unknown as DnsClient;

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
  const tools: Tools = {
    config: parseConfig({ SIXSCOPE_PROBE_TIMEOUT_MS: "1500" }),
    resolvers: { resolver_a: namelessDns, resolver_b: namelessDns, resolver_c: namelessDns },
    icmp: engine,
    probeSlots: new ProbeSlots(1),
  };
  const allowedSeconds: number[] = [];
  const body = (await endpoint.handle(
    { target: "2001:db8::80", ...parameters },
    {
      request: new Request("http://localhost/"),
      id: "",
      caller: { address: null, secure: true, viaTrustedProxy: false, untrustedForwarding: false },
      key: null,
      headers: {},
      allowSeconds: (seconds) => allowedSeconds.push(seconds),
      route: null,
    },
    tools,
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
  transmitted: 3,
  samples: [
    { seq: 1, hopLimit: 57, rttMs: 1.23456 },
    { seq: 3, hopLimit: 57, rttMs: 3.6 },
  ],
  lost: [{ seq: 2, reason: "no-route", type: 1, code: 0, from: ROUTER }],
  duplicates: 4,
  late: 5,
};

const HOP: TraceHop = {
  hop: 1,
  address: ROUTER,
  rttMs: 1.23456,
  rttsMs: [1.23456],
  addresses: [ROUTER],
  mpls: [],
  interfaces: [],
  mtuBytes: null,
};

const TRACED: TraceOutcome = {
  kind: "done",
  source: SOURCE,
  flowLabel: 0xabcde,
  reached: true,
  reason: "reached",
  error: null,
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
        lost: [{ seq: 2, reason: "no-route", type: 1, code: 0, from: "2001:db8:1::1" }],
        duplicates: 4,
        late: 5,
      },
    });
  });

  const plain = { hop: 1, ip: "2001:db8:1::1", hostname: null, rtt: 1.235 };
  // biome-ignore format: a table
  test.each<[string, Partial<TraceHop>, object]>([
    ["an address and a time", {}, plain],
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

describe("a connection may be silent", () => {
  test("until the last sample of a ping is decided", async () => {
    const { allowedSeconds } = await ask(ping, { count: 3 }, { ping: PINGED });
    expect(allowedSeconds).toEqual([WAIT + 2 * 0.2 + 1.5]);
  });

  test("for two timeouts of a trace and the time for which it persists", async () => {
    const { allowedSeconds } = await ask(traceroute, { maxHops: 30 }, { trace: TRACED });
    const [persistence, names] = [10, 2];
    expect(allowedSeconds).toEqual([WAIT + 2 * 1.5 + persistence + names]);
  });
});
