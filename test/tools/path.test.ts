/** How loss by hop and the path MTU are presented, and what is told meanwhile, without HTTP. */
import { describe, expect, test } from "bun:test";
import { formatIp } from "../../src/addr/ip.ts";
import { readTexts } from "../../src/api/parameters.ts";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { Gate } from "../../src/gate/gate.ts";
import type { Prober } from "../../src/icmp/prober/prober.ts";
import { mtr } from "../../src/tools/mtr/endpoint.ts";
import type { MtrOptions, MtrOutcome, MtrRequest } from "../../src/tools/mtr/engine.ts";
import { mergeRound } from "../../src/tools/mtr/report.ts";
import type { MtrHop, MtrResult, MtrRound } from "../../src/tools/mtr/result.ts";
import { mtu } from "../../src/tools/mtu/endpoint.ts";
import type { MtuOptions, MtuOutcome } from "../../src/tools/mtu/engine.ts";
import type { MtuHop } from "../../src/tools/mtu/result.ts";
import type { Endpoint, Services } from "../../src/tools/services.ts";
import type { TraceHop } from "../../src/tools/trace/responses.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { interfaceDocument, mismatches } from "../lab/conformance.ts";
import "./scripted.ts";
import { STAMP } from "./stamp.ts";

/** Seconds before a run: for the resolver, for a slot, for a port, for the target's /64 twice, and its end. */
const WAIT = 5 + 2 * 20 + 2 * 3 + 2;

const SOURCE = parseIpv6("2001:db8::1");
const ROUTER = "2a00:1450::1";
const OTHER_ROUTER = "2a00:1450::2";
const TARGET = "2a00:1450::80";
const LINK_LOCAL = "fe80::1";

/** The only address whose network is known. */
const OWNED = "2a00:1450::3";
const NETWORK = { asn: 64_496, name: "Example", prefix: "2a00::/12", source: "asn-file" } as const;

/** Every address has this name. */
const named = {
  query: async (_name: string, type: string) => ({
    kind: "answer",
    records: [{ type, value: "name.example." }],
  }),
} as unknown as DnsClient;

/** Calls an endpoint over an engine; the result, which is as documented, the events and the seconds allowed. */
async function call(
  { path, parameters, handle }: Endpoint,
  texts: Readonly<Record<string, string>>,
  engine: object,
) {
  const tools: Services = {
    config: parseConfig({ SIXSCOPE_RESOLVER_A: "::1", SIXSCOPE_PROBE_TIMEOUT_MS: "1500" }),
    resolvers: { resolver_a: named, resolver_b: named, resolver_c: named },
    icmp: engine as unknown as Prober,
    gate: new Gate(),
    probeSlots: new FairSlots(1),
    querySlots: new FairSlots(1),
    networks: { find: (address) => (formatIp(address) === OWNED ? NETWORK : null) },
  };
  const events: [name: string, data: object][] = [];
  const allowedSeconds: number[] = [];
  const result = await handle(
    readTexts(parameters, { target: "2001:db8::80", ...texts }),
    {
      signal: new AbortController().signal,
      address: null,
      client: "",
      allowSeconds: (seconds) => void allowedSeconds.push(seconds),
      onEvent: (name, data) => void events.push([name, data]),
    },
    tools,
  );
  const documented = interfaceDocument.paths[path]?.get.responses["200"];
  const schema = documented?.content["application/json"].schema ?? {};
  expect(mismatches(schema, result)).toEqual([]);
  return { result: result as Record<string, unknown>, events, allowedSeconds };
}

const HEAD = { target: "2001:db8::80", ip: "2001:db8::80" };

const TIMES = { last: 1.235, min: 1, avg: 2, max: 3, stdDev: 0.5, jitter: 0.25, p50: 2, p95: 3 };

const TOTALS = { sent: 3, received: 3, late: 0, errors: 0, unknown: 0, loss: 0 };

const HOP: MtrHop = {
  hop: 1,
  ip: ROUTER,
  hostname: null,
  ...TOTALS,
  cause: null,
  ...TIMES,
  addresses: [{ ip: ROUTER, hostname: null, received: 3, share: 100 }],
  others: 0,
};

const OTHERS = [{ ip: OTHER_ROUTER, hostname: null, received: 1, share: 33.33 }];

const SHOWN = {
  ...HOP,
  hostname: "name.example",
  addresses: [{ ip: ROUTER, hostname: "name.example", received: 3, share: 100 }],
};

describe("loss by hop", () => {
  const REPORT = {
    hops: [HOP],
    paths: [{ rounds: 2, reached: true, addresses: [ROUTER, null] }],
    otherRounds: 0,
    reached: true,
    toTarget: TOTALS,
    begin: null,
    inARow: 0,
    lossPath: [ROUTER, null],
    error: null,
    answers: [],
  };
  const DONE: MtrOutcome = { kind: "done", source: SOURCE, flowLabel: 7, ...REPORT };

  const ask = (outcome: MtrOutcome = DONE, texts: Readonly<Record<string, string>> = {}) =>
    call(mtr, texts, {
      mtr: async (_request: MtrRequest, { onRound }: MtrOptions) => {
        if (outcome.kind === "done") onRound?.(1, outcome);
        await new Promise((resolve) => setImmediate(resolve));
        if (outcome.kind === "done") onRound?.(2, outcome);
        return outcome;
      },
    });

  test("has the hops, their names and the paths", async () => {
    const { result } = await ask();
    expect(result).toEqual({
      ...HEAD,
      rounds: 10,
      hops: [SHOWN],
      details: {
        reached: true,
        toTarget: { sent: 3, received: 3, late: 0, errors: 0, unknown: 0, loss: 0 },
        paths: [{ rounds: 2, reached: true, addresses: ["2a00:1450::1", null] }],
        ...STAMP,
        verdict: {
          ...{ code: "no-loss", text: "The target replied to all 3 probes." },
          ...{ lossAtLeast: 0, lossAtMost: 56.15 },
        },
        source: "2001:db8::1",
        flowLabel: 7,
      },
    });
  });

  test.each<[string, Partial<MtrHop>]>([
    ["of two addresses", { addresses: [HOP.addresses, OTHERS].flat() }],
    ["that is silent", { ip: null, hostname: null, addresses: [] }],
    ["with a link-local address", { ip: LINK_LOCAL, details: { zone: "lo" } }],
  ])("names a hop %s", async (_, hop) => {
    const { result } = await ask({ ...DONE, hops: [{ ...HOP, ...hop }] });
    const shown = { ...HOP, ...hop };
    const named = (each: MtrHop["addresses"][number]) => ({ ...each, hostname: "name.example" });
    const hostname = shown.ip === ROUTER ? "name.example" : null;
    expect(result["hops"]).toEqual([{ ...shown, hostname, addresses: shown.addresses.map(named) }]);
  });

  test("says whose network a hop belongs to", async () => {
    const addresses = [{ ip: OWNED, hostname: null, received: 3, share: 100 }];
    const { result } = await ask({ ...DONE, hops: [{ ...HOP, ip: OWNED, addresses }] });
    expect(result["hops"]).toMatchObject([{ ip: OWNED, details: { network: NETWORK } }]);
  });

  test("names the error that ends the path", async () => {
    const error = { type: 1, code: 1, name: "prohibited", from: ROUTER, fromTarget: false };
    const { result } = await ask({ ...DONE, reached: false, error } as MtrOutcome);
    expect(result["details"]).toMatchObject({ error });
  });

  /** The events of a run with these rows in its rounds. */
  const told = async (...rounds: readonly MtrHop[][]) => {
    const { events } = await call(
      mtr,
      {},
      {
        mtr: async (_request: MtrRequest, { onRound }: MtrOptions) => {
          for (const [at, hops] of rounds.entries()) {
            onRound?.(at + 1, { ...REPORT, hops });
            await new Promise((resolve) => setImmediate(resolve));
          }
          return DONE;
        },
      },
    );
    expect(events.map(([name]) => name)).toEqual(events.map(() => "round"));
    return events.map(([, data]) => data as MtrRound);
  };

  test("is told when a round has changed it, or a name has become known", async () => {
    const nameless = { ...SHOWN, hostname: null };
    const addresses = [{ ...SHOWN.addresses[0], hostname: null }];
    const { verdict } = (await ask(DONE)).result["details"] as MtrResult["details"];
    expect(await told([HOP], [HOP], [HOP])).toEqual([
      { round: 1, length: 1, hops: [{ ...nameless, addresses }], verdict },
      { round: 2, length: 1, hops: [SHOWN], verdict },
    ] as never);
  });

  test("is told with the addresses that have changed, and what is told adds up to all", async () => {
    const address = (at: number, received: number) => ({
      ...{ ip: `2a00:1450::${at}`, hostname: null },
      ...{ received, share: 100 },
    });
    const row = (hop: number, ...received: number[]): MtrHop => {
      const all = received.map((each, at) => address(at + 1, each));
      const addresses = all.sort((a, b) => b.received - a.received);
      const sum = received.reduce((total, each) => total + each, 0);
      return { ...HOP, hop, ip: addresses[0]?.ip ?? null, received: sum, addresses };
    };
    const silent: MtrHop = { ...row(2), sent: 1 };
    const rounds = [
      [row(1, 1), silent],
      [row(1, 1, 1), silent],
      [row(1, 1, 2)],
      [row(1, 1, 2), silent, row(3, 1)],
    ];
    const parts = await told(...rounds);
    // biome-ignore format: a table
    expect(parts.map(({ hops }) => hops.map(({ hop, addresses }) => [hop, addresses.length]))).toEqual([
      [[1, 1], [2, 0]],
      // The first has its name now.
      [[1, 2]],
      [[1, 1]],
      [[2, 0], [3, 1]],
    ]);
    const known = parts.map((_, at) => parts.slice(0, at + 1).reduce(mergeRound));
    for (const [at, { hops }] of known.entries()) {
      expect(hops.map((hop) => [hop.hop, hop.addresses.map((each) => each.received)])).toEqual(
        (rounds[at] as MtrHop[]).map((hop) => [
          hop.hop,
          hop.addresses.map((each) => each.received),
        ]),
      );
    }
  });

  test("begins with the rows of the trace, whose answers have a time and count nothing", async () => {
    const traced: TraceHop = { hop: 1, ip: ROUTER, hostname: null, rtt: 1, end: null };
    const { events } = await call(
      mtr,
      {},
      {
        mtr: async (_request: MtrRequest, { onHop }: MtrOptions) => {
          onHop?.({ ...traced, hop: 2, ip: TARGET, end: "reached" });
          onHop?.({ ...traced, hop: 3, ip: TARGET, end: "reached" });
          onHop?.(traced);
          return DONE;
        },
      },
    );
    const times = { last: 1, min: 1, avg: 1, p50: 1, p95: 1, stdDev: 0 };
    const row = { sent: 0, received: 0, loss: null, ...times, addresses: [] };
    expect(events).toMatchObject([
      [
        "round",
        {
          ...{ round: 0, length: 2 },
          hops: [
            { ...row, hop: 1, ip: "2a00:1450::1" },
            { ...row, hop: 2, ip: "2a00:1450::80" },
          ],
        },
      ],
    ]);
  });

  test("shows what is behind a hop that has not answered, and that hop when the trace has ended", async () => {
    const at = (hop: number): TraceHop => ({
      ...{ hop, ip: `2a00:1450::${hop}`, hostname: null, rtt: hop, end: null },
    });
    const engine = {
      mtr: async (_request: MtrRequest, { onHop }: MtrOptions) => {
        onHop?.(at(1));
        onHop?.(at(3));
        onHop?.({ ...at(4), end: "reached" });
        onHop?.({ ...at(2), ip: null, rtt: null });
        return DONE;
      },
    };
    const { events } = await call(mtr, { names: "no" }, engine);
    const parts = events.map(([, data]) => data as MtrRound);
    expect(parts.map(({ length, hops }) => [length, hops.map(({ hop }) => hop)])).toEqual([
      [1, [1]],
      [3, [3]],
      [4, [2, 4]],
    ]);
    expect(parts.reduce(mergeRound).hops.map(({ p50 }) => p50)).toEqual([1, null, 3, 4]);
  });

  test("has no names if none are wanted", async () => {
    const { result } = await ask(DONE, { names: "no" });
    expect(result["hops"]).toMatchObject([{ hostname: null, addresses: [{ hostname: null }] }]);
  });

  test("asks for the rounds, the interval and the hops that were wanted", async () => {
    const requests: MtrRequest[] = [];
    const engine = {
      mtr: async (request: MtrRequest) => {
        requests.push(request);
        return DONE;
      },
    };
    await call(mtr, {}, engine);
    const texts = { rounds: "100", intervalMs: "1000", maxHops: "3", flowLabel: "7" };
    const { allowedSeconds, result } = await call(mtr, texts, engine);
    expect(requests).toMatchObject([
      { rounds: 10, intervalMs: 200, maxHops: 30, timeoutMs: 1500 },
      { rounds: 100, intervalMs: 1000, maxHops: 3, flowLabel: 7, timeoutMs: 1500 },
    ]);
    expect(result["rounds"]).toBe(100);
    // The longest waits before it, a trace with names, the rounds, and the last answer.
    const [waits, trace, rounds] = [WAIT, 2 * 1.5 + 10 + 3.2 + 1.5, 99];
    expect(allowedSeconds[0]).toBeCloseTo(waits + trace + rounds + 1.5);
  });
});

describe("the path MTU", () => {
  const row = (hop: number, mtu: number | null, ip = [ROUTER, TARGET][hop - 1]): MtuHop => ({
    ...{ hop, ip: ip ?? null, hostname: null, mtu, atMost: mtu },
  });
  const DONE = {
    kind: "done",
    source: SOURCE,
    flowLabel: 7,
    verdict: "narrowed",
    mtu: 1420,
    atMost: 1420,
    cause: null,
    packetTooBig: { from: ROUTER, hop: 1, mtu: 1420, sent: 1500 },
    doubtful: [],
    hops: [row(1, 1500), row(2, 1420)],
    lastLarge: 1,
    firstSmall: 2,
    error: null,
  } satisfies MtuOutcome;
  const SHOWN_HOPS = [
    { hop: 1, ip: "2a00:1450::1", hostname: "name.example", mtu: 1500, atMost: 1500 },
    { hop: 2, ip: "2a00:1450::80", hostname: "name.example", mtu: 1420, atMost: 1420 },
  ];

  const ask = (outcome: MtuOutcome, texts = {}, told: readonly MtuHop[] = DONE.hops) =>
    call(mtu, texts, {
      mtu: async (_request: unknown, { onHop }: MtuOptions) => {
        for (const hop of told) onHop?.(hop);
        return outcome;
      },
    });

  test("has who told it and what gets through to each hop", async () => {
    const { result } = await ask(DONE);
    expect(result).toEqual({
      ...HEAD,
      mtu: 1420,
      atMost: 1420,
      packetTooBig: { from: "2a00:1450::1", hop: 1, mtu: 1420, sent: 1500 },
      lastLarge: 1,
      firstSmall: 2,
      hops: SHOWN_HOPS,
      details: {
        ...STAMP,
        verdict: {
          code: "narrowed",
          text: "The path MTU is 1420 bytes: the link behind hop 1 (2a00:1450::1) is the narrowest.",
        },
        doubtful: [],
        source: "2001:db8::1",
        flowLabel: 7,
      },
    });
  });

  test("is measured with the flow label that was wanted", async () => {
    const requests: object[] = [];
    const engine = { mtu: async (request: object) => requests.push(request) && DONE };
    await call(mtu, { flowLabel: "7" }, engine);
    expect(requests).toMatchObject([{ flowLabel: 7, maxHops: 30 }]);
  });

  test("names what is not believed, also from elsewhere", async () => {
    const doubt = "below-1280" as const;
    const lie = { from: OTHER_ROUTER, hop: null, mtu: 68, sent: 1500, doubt };
    const verdict = "black-hole" as const;
    const outcome = { ...DONE, verdict, packetTooBig: null, doubtful: [lie] };
    const { result } = await ask(outcome);
    expect(result).toMatchObject({
      packetTooBig: null,
      details: {
        verdict: { code: "black-hole" },
        doubtful: [lie],
      },
    });
  });

  test("of a target that does not answer, and hops that are silent or link-local", async () => {
    const hops = [
      { ...row(1, 1500, LINK_LOCAL), details: { zone: "lo" } },
      { ...row(2, null), ip: null },
      row(3, 1500, OWNED),
    ];
    const nothing = { verdict: "inconclusive", mtu: null, packetTooBig: null } as const;
    const { result } = await ask({ ...DONE, ...nothing, lastLarge: null, firstSmall: null, hops });
    expect(result).toMatchObject({
      mtu: null,
      lastLarge: null,
      details: { verdict: { code: "inconclusive" } },
    });
    expect(result["hops"]).toEqual([
      { hop: 1, ip: "fe80::1", hostname: null, mtu: 1500, atMost: 1500, details: { zone: "lo" } },
      { hop: 2, ip: null, hostname: null, mtu: null, atMost: null },
      {
        hop: 3,
        ip: "2a00:1450::3",
        hostname: null,
        mtu: 1500,
        atMost: 1500,
        details: { network: NETWORK },
      },
    ]);
  });

  test("is told hop by hop, and again what has changed", async () => {
    const { events, result } = await ask(DONE, {}, [row(2, 1420), row(1, 1400)]);
    const [first, second] = SHOWN_HOPS as [object, object];
    expect(events.slice(0, 2)).toEqual([
      ["hop", { ...second, hostname: null }],
      ["hop", { ...first, mtu: 1400, atMost: 1400, hostname: null }],
    ]);
    const last = new Map(events.map(([, data]) => [(data as MtuHop).hop, data]));
    expect([last.get(1), last.get(2)]).toEqual(result["hops"] as object[]);
  });

  test("has no names if none are wanted", async () => {
    const { result, allowedSeconds } = await ask(DONE, { names: "no" });
    expect(result["hops"]).toMatchObject([{ hostname: null }, { hostname: null }]);
    // The longest waits before it, a trace with names, and the searches.
    expect(allowedSeconds[0]).toBeCloseTo(WAIT + 2 * 1.5 + 10 + 3.2 + 1.5 + 14.5);
  });
});

test.each([mtr, mtu])(
  "without the raw socket there is nothing to measure with",
  async (endpoint) => {
    const engine = { withoutRaw: { unavailable: "socket(AF_INET6, 3, 58): EPERM" } };
    const refused = call(endpoint, {}, engine);
    await expect(refused).rejects.toMatchObject({ code: "ICMP_UNAVAILABLE" });
  },
);
