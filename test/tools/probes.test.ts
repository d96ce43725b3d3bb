/** How pings and traces are presented, and how long they keep their connections open. */
import { describe, expect, test } from "bun:test";
import type { Call } from "../../src/api/endpoint.ts";
import { readTexts } from "../../src/api/parameters.ts";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { Gate } from "../../src/gate/gate.ts";
import type { Prober } from "../../src/icmp/prober/prober.ts";
import type { ProbeError } from "../../src/icmp/prober/response.ts";
import type { InterfaceInformation, MplsLabel } from "../../src/icmp/wire/icmp-error.ts";
import { mtr } from "../../src/tools/mtr/endpoint.ts";
import { mtu } from "../../src/tools/mtu/endpoint.ts";
import { ping } from "../../src/tools/ping/endpoint.ts";
import type { PingOutcome } from "../../src/tools/ping/engine.ts";
import type { LostSample, PingSample } from "../../src/tools/ping/result.ts";
import { describePing } from "../../src/tools/ping/verdict.ts";
import type { Endpoint, Services } from "../../src/tools/services.ts";
import { traceroute } from "../../src/tools/trace/endpoint.ts";
import type {
  Traced,
  TraceOptions,
  TraceOutcome,
  TraceRequest,
} from "../../src/tools/trace/engine.ts";
import type { PathsOptions, PathsRequest, TracedPaths } from "../../src/tools/trace/path-search.ts";
import { describeHop, type TraceHop } from "../../src/tools/trace/responses.ts";
import type { TracePath } from "../../src/tools/trace/result.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { interfaceDocument, mismatches } from "../lab/conformance.ts";
import "./scripted.ts";
import { STAMP } from "./stamp.ts";

/** Seconds before a run: for the resolver, for a slot, for a port, for the target's /64 twice, and its end. */
const WAIT = 5 + 2 * 20 + 2 * 3 + 2;

/** Seconds after the last probe for which a run listens that has heard nothing. */
const SILENCE = 3.2;

const SOURCE = parseIpv6("2001:db8::1");
const FAR = "2001:db8::80";
const ROUTER = parseIpv6("2001:db8:1::1");
const OTHER_ROUTER = parseIpv6("2001:db8:1::2");

/** No address has a name. */
const namelessDns = {
  query: async () => ({ kind: "timeout" }),
} as unknown as DnsClient;

const CALL: Call = {
  signal: new AbortController().signal,
  address: null,
  client: "",
  allowSeconds: () => {},
};

function toolsWith(
  engine: object,
  dns: DnsClient,
  settings: Record<string, string> = {},
): Services {
  return {
    config: parseConfig({ SIXSCOPE_PROBE_TIMEOUT_MS: "1500", ...settings }),
    resolvers: { resolver_a: dns, resolver_b: dns, resolver_c: dns },
    icmp: engine as Prober,
    gate: new Gate(),
    probeSlots: new FairSlots(1),
    querySlots: new FairSlots(1),
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
  };
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

/** The outcome of a ping with these samples. */
function pinged(
  results: readonly PingSample[],
  lost: readonly LostSample[],
  duplicates = 0,
): PingOutcome {
  const samples = describePing([...results, ...lost]);
  return { kind: "done", source: SOURCE, answers: [], duplicates, ...samples };
}

const REPLIES: readonly PingSample[] = [
  { seq: 1, ttl: 57, rtt: 1.235 },
  { seq: 3, ttl: 57, rtt: 3.6 },
];
const NO_ROUTE = { reason: "no-route", type: 1, code: 0, from: "2001:db8:1::1", rtt: 9.877 };
const PINGED = pinged(REPLIES, [{ seq: 2, ...NO_ROUTE }], 4);

const HOP: TraceHop = { hop: 1, ip: "2001:db8:1::1", hostname: null, rtt: 1.235, end: null };

const TRACED: Traced = {
  kind: "done",
  source: SOURCE,
  flowLabel: 0xabcde,
  sent: 1,
  reached: true,
  reason: "reached",
  error: null,
  loop: null,
  otherSource: null,
  refused: [],
  hops: [HOP],
};

const ANSWER: ProbeError = {
  ...{ kind: "error", type: 3, code: 0, parameter: 0 },
  extensions: { mpls: [], interfaces: [] },
  ...{ from: ROUTER, scopeId: 0, hopLimit: 64, rttMs: 1.23456 },
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
      stats: { transmitted: 3, received: 2, loss: 33.33, min: 1.235, avg: 2.418, max: 3.6 },
      details: {
        ...STAMP,
        verdict: {
          code: "loss",
          text: "The target did not reply to 1 of 3 requests (33.3 %). 2001:db8:1::1 answered 1 of 3 requests with no route.",
        },
        source: "2001:db8::1",
        timeout: 1500,
        lost: [{ seq: 2, reason: "no-route", type: 1, code: 0, from: "2001:db8:1::1", rtt: 9.877 }],
        duplicates: 4,
        late: 0,
      },
    });
  });

  // biome-ignore format: a table
  test.each<[string, LostSample, number, number]>([
    ["no answer", { seq: 1, reason: "timeout" }, 100, 0],
    ["a late reply", { seq: 1, reason: "timeout", rtt: 2000.5 }, 100, 1],
    ["packets that the kernel dropped: not lost", { seq: 1, reason: "unknown" }, 0, 0],
    ["a refusal", { seq: 1, reason: "not-sent", errno: "EPERM" }, 0, 0],
  ])("of a ping describes a sample with %s", async (_, sample, loss, late) => {
    const transmitted = sample.reason === "not-sent" ? 0 : 1;
    const { body } = await ask(ping, { count: 1 }, { ping: pinged([], [sample]) });
    expect(body).toMatchObject({
      stats: { transmitted, received: 0, loss, min: null },
      details: { lost: [sample], late },
    });
  });

  test("of a ping does not count requests that could not be sent as lost", async () => {
    const lost = [2, 4, 5].map((seq): LostSample => ({ seq, reason: "not-sent", errno: "EPERM" }));
    const { body } = await ask(ping, { count: 5 }, { ping: pinged(REPLIES, lost) });
    expect(body["stats"]).toMatchObject({ transmitted: 2, received: 2, loss: 0 });
    expect(body["details"]).toMatchObject({ verdict: { code: "no-loss" } });
  });

  test("of a ping says which other address replied", async () => {
    const details = { reason: "other-source", from: "2001:db8::80" } as const;
    const results = [{ seq: 1, ttl: 57, rtt: 1, details }];
    const { body } = await ask(ping, { count: 1 }, { ping: pinged(results, []) });
    expect(body["results"]).toEqual(results);
    expect(body["stats"]).toMatchObject({ received: 1, loss: 0 });
  });

  const plain = { hop: 1, ip: "2001:db8:1::1", hostname: null, rtt: 1.235 };
  // biome-ignore format: a table
  test.each<[string, readonly Partial<ProbeError>[], object, number?]>([
    ["nothing", [], { hop: 1, ip: null, hostname: null, rtt: null }],
    ["the hop limit of its answer, over as many hops as there", [{}], { ...plain, details: { replyHopLimit: 64 } }],
    ["an interface to a link-local address", [{ scopeId: 1 }], { ...plain, details: { zone: "lo", replyHopLimit: 64 } }],
    ["more than one time", [{}, { rttMs: 2.5 }], { ...plain, details: { replyHopLimit: 64, rtts: [1.235, 2.5] } }],
    ["more than one address", [{}, { from: OTHER_ROUTER }], { ...plain, details: { replyHopLimit: 64, rtts: [1.235, 1.235], addresses: ["2001:db8:1::1", "2001:db8:1::2"] } }],
    ["an MPLS label", [{ extensions: { mpls: [LABEL], interfaces: [] } }], { ...plain, details: { replyHopLimit: 64, mpls: [LABEL] } }],
    ["an interface", [{ extensions: { mpls: [], interfaces: [INTERFACE] } }], { ...plain, details: { replyHopLimit: 64, interfaces: [{ role: "incoming", index: 7, name: "eth0", address: "2001:db8:1::2", mtu: 9000 }] } }],
    ["an interface without information", [{ extensions: { mpls: [], interfaces: [{ role: "outgoing", index: null, address: null, name: null, mtuBytes: null }] } }], { ...plain, details: { replyHopLimit: 64, interfaces: [{ role: "outgoing", index: null, name: null, address: null, mtu: null }] } }],
    ["an answer over three hops more", [{ hopLimit: 252 }], { ...plain, details: { replyHopLimit: 252, asymmetry: 3 } }],
    ["an answer over one hop less", [{ hopLimit: 126 }], { ...plain, hop: 4, details: { replyHopLimit: 126, asymmetry: -1 } }, 4],
    ["an answer of the router before it, and an MTU", [{ hopLimit: 62, type: 2, parameter: 1280 }], { ...plain, hop: 4, details: { replyHopLimit: 62, mtu: 1280 } }, 4],
  ])("of a trace describes a hop with %s", async (_, answers, expected, hop = 1) => {
    const responses = answers.map((each): ProbeError => ({ ...ANSWER, ...each }));
    const hops = [describeHop(hop, responses, SOURCE, parseIpv6(FAR))];
    const { body } = await ask(traceroute, { maxHops: 30 }, { trace: { ...TRACED, hops } });
    // The order of the fields is a part of the document.
    expect(JSON.stringify(body["hops"])).toBe(JSON.stringify([expected]));
    expect(body).toEqual({
      target: "2001:db8::80",
      ip: "2001:db8::80",
      hops: [expected],
      details: {
        reached: true,
        reason: "reached",
        ...STAMP,
        verdict: { code: "reached", text: "The target replied at hop 1." },
        source: "2001:db8::1",
        flowLabel: 0xabcde,
      },
    });
  });

  test("of a trace has the error that ended it, and its sender", async () => {
    const error = { type: 1, code: 1, name: "prohibited", from: FAR, fromTarget: true };
    const trace: TraceOutcome = { ...TRACED, reached: false, reason: "prohibited", error };
    const { body } = await ask(traceroute, { maxHops: 30 }, { trace });
    expect(body["details"]).toEqual({
      ...STAMP,
      reached: false,
      reason: "prohibited",
      error: { type: 1, code: 1, name: "prohibited", from: "2001:db8::80", fromTarget: true },
      verdict: {
        code: "prohibited",
        text: "The target answered prohibited at hop 1, and the path ends there.",
      },
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

describe("a target behind a translator of the resolver", () => {
  const traced = { kind: "done", source: SOURCE, flowLabel: 1, error: null, hops: [] };
  const toTarget = { sent: 0, received: 0, late: 0, errors: 0, unknown: 0, loss: null };
  const measured = {
    verdict: "clear",
    mtu: 1500,
    atMost: 1500,
    cause: null,
    packetTooBig: null,
    lastLarge: null,
    firstSmall: null,
  };
  const outcomes = {
    ping: PINGED,
    traceroute: TRACED,
    mtr: { ...traced, reached: true, paths: [], toTarget, begin: null, lossPath: [] },
    mtu: { ...traced, ...measured, doubtful: [] },
  };
  const endpoints: readonly [keyof typeof outcomes, Endpoint][] = [
    ["ping", ping],
    ["traceroute", traceroute],
    ["mtr", mtr],
    ["mtu", mtu],
  ];

  test.each(endpoints)("is said by /%s, once the resolver has said it", async (tool, endpoint) => {
    const asked: string[] = [];
    const dns = {
      query: async (name: string) => {
        asked.push(name);
        const ends = name === "ipv4only.arpa" ? ["c000:aa", "c000:ab"] : ["c000:221"];
        const records = ends.map((end) => ({
          type: "AAAA",
          value: `2001:db8:64::${end}`,
          ttl: 60,
        }));
        return { kind: "answer", rcode: "NOERROR", records };
      },
    } as unknown as DnsClient;
    const engine = { [tool]: async () => outcomes[tool] };
    const call = async (target: string) => {
      const values = readTexts(endpoint.parameters, { target, names: "no" });
      const body = await endpoint.handle(values, CALL, toolsWith(engine, dns));
      const documented = interfaceDocument.paths[endpoint.path]?.get.responses["200"];
      const schema = documented?.content["application/json"].schema ?? {};
      expect(mismatches(schema, body)).toEqual([]);
      return (body as { details: object }).details;
    };
    const ip = "2001:db8:64::c000:221";
    expect(await call(ip)).not.toHaveProperty("dns64");
    expect(asked).toEqual([]);
    const dns64 = { ip, prefix: "2001:db8:64::/96", ipv4: "192.0.2.33" };
    expect(await call("www.example.test")).toMatchObject({ dns64 });
    expect(asked.toSorted()).toEqual(["ipv4only.arpa", "www.example.test"]);
    expect(await call(ip)).toMatchObject({ dns64 });
    expect(await call("2001:db8:65::1")).not.toHaveProperty("dns64");
  });
});

describe("an answer with several paths", () => {
  const silent = { ...HOP, hop: 2, ip: null, rtt: null };
  const target = { ...HOP, hop: 3, ip: FAR };
  const other = { ...HOP, ip: "2001:db8:1::2" };
  const paths: TracePath[] = [
    {
      flowLabel: 0xabcde,
      labels: 2,
      reached: true,
      reason: "reached",
      addresses: ["2001:db8:1::1", null, "2001:db8::80"],
    },
    {
      flowLabel: 7,
      labels: 1,
      reached: false,
      reason: "gap-limit",
      addresses: ["2001:db8:1::2"],
    },
  ];
  const found: TracedPaths = {
    ...TRACED,
    hops: [HOP, silent, target],
    complete: false,
    isLate: false,
    labels: 3,
    perPacket: [],
    paths,
    graph: {
      nodes: [HOP, other, silent, target],
      edges: [
        { from: 0, to: 2, labels: 2 },
        { from: 2, to: 3, labels: 2 },
      ],
    },
  };

  const askPaths = async (texts: Record<string, string>, outcome: TracedPaths = found) => {
    const requests: PathsRequest[] = [];
    const engine = {
      traceroute: async (request: PathsRequest) => {
        requests.push(request);
        return TRACED;
      },
      paths: async (request: PathsRequest, { onHop, onPath }: PathsOptions) => {
        requests.push(request);
        onHop?.(HOP);
        for (const path of outcome.paths) onPath?.(path);
        return outcome;
      },
    };
    const events: [name: string, data: object][] = [];
    const allowedSeconds: number[] = [];
    const body = (await traceroute.handle(
      readTexts(traceroute.parameters, { target: "2001:db8::80", ...texts }),
      {
        ...CALL,
        allowSeconds: (seconds) => allowedSeconds.push(seconds),
        onEvent: (name, data) => events.push([name, data]),
      },
      toolsWith(engine, namelessDns),
    )) as { hops: object[]; details: Record<string, unknown> };
    const documented = interfaceDocument.paths[traceroute.path]?.get.responses["200"];
    const schema = documented?.content["application/json"].schema ?? {};
    expect(mismatches(schema, body)).toEqual([]);
    return { body, requests, events, allowedSeconds };
  };

  test("has each path, and all nodes and edges", async () => {
    const { body } = await askPaths({ paths: "2" });
    const shown = (hop: number, ip: string | null) => ({
      hop,
      ip,
      hostname: null,
      rtt: ip && 1.235,
    });
    expect(body.hops).toHaveLength(3);
    expect(body.details).toEqual({
      reached: true,
      reason: "reached",
      ...STAMP,
      verdict: {
        code: "reached",
        text: "Found at least 2 paths with 3 flow labels; there may be more. Path 2 of 2 did not reach the target.",
      },
      source: "2001:db8::1",
      flowLabel: 0xabcde,
      complete: false,
      labels: 3,
      paths,
      graph: {
        nodes: [
          shown(1, "2001:db8:1::1"),
          shown(1, "2001:db8:1::2"),
          shown(2, null),
          shown(3, "2001:db8::80"),
        ],
        edges: found.graph.edges,
      },
    });
  });

  test("says that the time was over before the search was", async () => {
    const { body } = await askPaths({ paths: "2" }, { ...found, isLate: true });
    expect(body.details["cutShort"]).toEqual({
      code: "search",
      text: "The search for paths took 11.5 s, in which not every router answered often enough.",
    });
    expect(body.details["verdict"]).toMatchObject({ text: expect.stringMatching(/not be all\.$/) });
  });

  test("says at which hops a router chooses by packet", async () => {
    const { body } = await askPaths({ paths: "2" }, { ...found, perPacket: [1] });
    expect(body.details["perPacket"]).toEqual([1]);
  });

  test("is told path by path, beside the hops of the first", async () => {
    const { events, body } = await askPaths({ paths: "16" });
    expect(events.filter(([name]) => name === "path")).toEqual(paths.map((path) => ["path", path]));
    const hops = events.filter(([name]) => name === "hop").map(([, data]) => data);
    expect(hops).toEqual(body.hops);
  });

  // biome-ignore format: a table
  test.each<[Record<string, string>, object]>([
    [{}, { flowLabel: undefined, maxHops: 30 }],
    [{ flowLabel: "0" }, { flowLabel: 0 }],
    [{ flowLabel: "1048575", paths: "1" }, { flowLabel: 0xfffff }],
    [{ flowLabel: "7", paths: "16", maxHops: "9" }, { flowLabel: 7, paths: 16, maxHops: 9 }],
  ])("comes from a search for %j", async (texts, request) => {
    const { requests } = await askPaths(texts);
    expect(requests).toMatchObject([request]);
    expect("paths" in (requests[0] ?? {})).toBe("paths" in request);
  });

  test.each([
    ["flowLabel", "1048576"],
    ["flowLabel", "-1"],
    ["flowLabel", "0x10"],
    ["flowLabel", ""],
    ["paths", "0"],
    ["paths", "17"],
  ])("is refused for %s=%s", async (parameter, value) => {
    const refused = askPaths({ [parameter]: value });
    await expect(refused).rejects.toMatchObject({
      code: "INVALID_PARAMETER",
      details: { parameter, value },
    });
  });

  test("keeps its connection open 11.5 s longer than a trace", async () => {
    const seconds = async (texts: Record<string, string>) =>
      (await askPaths(texts)).allowedSeconds[0] ?? 0;
    expect((await seconds({ paths: "2" })) - (await seconds({}))).toBeCloseTo(11.5);
  });
});

test("a target's name is looked up before a slot is taken", async () => {
  const running: number[] = [];
  const tools = toolsWith(
    {} as Prober,
    {
      query: async () => {
        running.push(tools.probeSlots.running);
        return { kind: "timeout", attempts: [] };
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
  };
  const dns = {
    query: async (name: string, type: string) => {
      if (name !== ".") asked.push(name);
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
    const [persistence, names] = [10, 1.5];
    expect(allowedSeconds[0]).toBeCloseTo(WAIT + 2 * 1.5 + persistence + SILENCE + names);
  });
});
