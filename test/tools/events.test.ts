/** The events of pings and traces while they run, called without HTTP as the command line calls them. */
import { describe, expect, test } from "bun:test";
import { readTexts } from "../../src/api/parameters.ts";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { Gate } from "../../src/gate/gate.ts";
import type { Prober } from "../../src/icmp/prober/prober.ts";
import { ping } from "../../src/tools/ping/endpoint.ts";
import type { PingOptions } from "../../src/tools/ping/engine.ts";
import type { Sample } from "../../src/tools/ping/result.ts";
import { describePing } from "../../src/tools/ping/verdict.ts";
import type { Endpoint, Services } from "../../src/tools/services.ts";
import { traceroute } from "../../src/tools/trace/endpoint.ts";
import type { TraceOptions } from "../../src/tools/trace/engine.ts";
import { showHop } from "../../src/tools/trace/hop.ts";
import type { TraceHop } from "../../src/tools/trace/responses.ts";
import type { TraceReason } from "../../src/tools/trace/result.ts";
import { parseIpv6 } from "../addr/parse.ts";
import "./scripted.ts";

const SOURCE = parseIpv6("2001:db8::1");

/** Calls an endpoint over an engine and a resolver; the result, and the events before it. */
async function call(
  { parameters, handle }: Endpoint,
  texts: Readonly<Record<string, string>>,
  engine: object,
  query: DnsClient["query"] = async () => ({ kind: "aborted" }) as never,
  networks: Services["networks"] = null,
  onEvent: (name: string, data: object) => void = () => {},
) {
  const dns = { query } as DnsClient;
  const tools: Services = {
    config: parseConfig({ SIXSCOPE_RESOLVER_A: "::1" }),
    resolvers: { resolver_a: dns, resolver_b: dns, resolver_c: dns },
    icmp: engine as unknown as Prober,
    gate: new Gate(),
    probeSlots: new FairSlots(1),
    querySlots: new FairSlots(1),
    networks,
  };
  const events: [name: string, data: object][] = [];
  const result = await handle(
    readTexts(parameters, { target: "2001:db8::80", ...texts }),
    {
      signal: new AbortController().signal,
      address: null,
      client: "",
      allowSeconds: () => {},
      onEvent(name, data) {
        events.push([name, data]);
        onEvent(name, data);
      },
    },
    tools,
  );
  return { result: result as Record<string, unknown>, events };
}

test("a ping reports each sample as it is in the result", async () => {
  const lost: Sample = { seq: 1, reason: "timeout" };
  const answered: Sample = { seq: 2, ttl: 57, rtt: 1.235 };
  const counts: number[] = [];
  const engine = {
    ping: async ({ count }: { count: number }, { onSample }: PingOptions) => {
      counts.push(count);
      for (const sample of [lost, answered]) onSample?.(sample);
      return { kind: "done", source: SOURCE, duplicates: 0, ...describePing([lost, answered]) };
    },
  };
  const { result, events } = await call(ping, { count: "2" }, engine);
  expect(counts).toEqual([2]);
  expect(events).toEqual([
    ["sample", { seq: 1, reason: "timeout" }],
    ["sample", { seq: 2, ttl: 57, rtt: 1.235 }],
  ]);
  expect(result).toMatchObject({ results: [events[1]?.[1]], details: { lost: [events[0]?.[1]] } });
});

test("what is wrong with a text is an ApiError, before any event", async () => {
  const refused = call(ping, { count: "11" }, {});
  await expect(refused).rejects.toMatchObject({ code: "INVALID_PARAMETER" });
});

describe("a trace reports a hop", () => {
  const row = (hop: number, end: TraceReason | null = null): TraceHop => ({
    hop,
    ip: `2a00:1450::${end === "reached" ? "80" : hop}`,
    hostname: null,
    rtt: hop,
    end,
  });
  const silent = (hop: number) => ({ ...row(hop), ip: null, rtt: null });
  const done = (hops: readonly TraceHop[]) => ({
    ...{ kind: "done", source: SOURCE, flowLabel: 1, reached: true, reason: "reached" },
    ...{ error: null, otherSource: null, refused: [], hops },
  });

  // biome-ignore format: a table
  test.each<[string, TraceHop[], TraceHop[], number[]]>([
    ["as soon as it answers", [row(2), row(1)], [row(1), row(2)], [2, 1]],
    ["not again if nothing has changed", [row(1), row(1)], [row(1)], [1]],
    ["again if it has changed", [row(1), { ...row(1), details: { rtts: [1, 2] } }], [{ ...row(1), details: { rtts: [1, 2] } }], [1, 1]],
    ["that is silent when the trace has given it up", [row(1), row(3)], [row(1), silent(2), row(3)], [1, 3, 2]],
    ["at the end of the path, and none behind it", [row(1), row(2, "reached"), row(3, "reached")], [row(1), row(2, "reached")], [1, 2]],
    ["at the end of the path once no nearer hop can be it", [row(1), row(3, "reached"), row(2, "reached")], [row(1), row(2, "reached")], [1, 2]],
    ["at the end of the path with the silent one before it", [row(1), row(3, "reached")], [row(1), silent(2), row(3, "reached")], [1, 2, 3]],
    ["with an error, and those behind it if the target replies", [row(1), row(2, "unreachable"), row(3), row(4, "reached")], [row(1), row(2, "unreachable"), row(3), row(4, "reached")], [1, 2, 3, 4]],
  ])("%s", async (_, reported, hops, told) => {
    const engine = {
      traceroute: async (_request: unknown, { onHop }: TraceOptions) => {
        for (const hop of reported) onHop?.(hop);
        return done(hops);
      },
    };
    const { result, events } = await call(traceroute, { names: "no" }, engine);
    expect(events.map(([name, data]) => [name, (data as TraceHop).hop])).toEqual(told.map((hop) => ["hop", hop]));
    const folded = new Map(events.map(([, data]) => [(data as TraceHop).hop, data]));
    const inOrder = [...folded].toSorted(([a], [b]) => a - b).map(([, data]) => data);
    expect(inOrder).toEqual(result["hops"] as object[]);
  });

  test("always as it is shown then, whatever the others change about it", async () => {
    let state = 7;
    const random = (bound: number) => {
      state = (state * 48271) % 0x7fffffff;
      return state % bound;
    };
    for (let run = 0; run < 200; run++) {
      const rows: TraceHop[] = [];
      const told = new Map<number, object>();
      const wrong: unknown[] = [];
      const engine = {
        traceroute: async (_request: unknown, { onHop }: TraceOptions) => {
          for (let step = 0; step < 12; step++) {
            const hop = 1 + random(5);
            const ip = `2a00:1450::${1 + random(3)}`;
            rows[hop - 1] = { ...row(hop), ip, details: { replyHopLimit: 50 } };
            onHop?.(rows[hop - 1] as TraceHop);
            for (const known of rows.filter(Boolean)) {
              const shown = showHop(known, new Map(), { networks: null }, rows);
              if (!Bun.deepEquals(told.get(known.hop), shown)) wrong.push([run, step, shown]);
            }
          }
          return done([]);
        },
      };
      const note = (_: string, data: object) => told.set((data as TraceHop).hop, data);
      await call(traceroute, { names: "no" }, engine, undefined, null, note);
      expect(wrong).toEqual([]);
    }
  });

  test("after a look at the row that has changed, not at all 30", async () => {
    let looks = 0;
    const networks = { find: () => void looks++ } as unknown as NonNullable<Services["networks"]>;
    const hops = Array.from({ length: 30 }, (_, at) => row(at + 1));
    const engine = {
      traceroute: async (_request: unknown, { onHop }: TraceOptions) => {
        for (let again = 0; again < 3; again++) for (const hop of hops) onHop?.({ ...hop });
        return done(hops);
      },
    };
    const { events } = await call(traceroute, { names: "no" }, engine, undefined, networks);
    expect(events.length).toBe(30);
    // The result has each once more, and so has the last event.
    expect(looks).toBe(3 * 30 + 2 * 30);
  });

  test("again when its name has come, also after the last answer", async () => {
    const answered = Promise.withResolvers<void>();
    const traced = Promise.withResolvers<void>();
    const engine = {
      traceroute: async (_request: unknown, { onHop }: TraceOptions) => {
        onHop?.(row(1));
        await answered.promise;
        onHop?.(row(2, "reached"));
        traced.resolve();
        return done([row(1), row(2, "reached")]);
      },
    };
    const query = async (name: string, type: string) => {
      await (name.startsWith("1.") ? null : traced.promise);
      const value = name.startsWith("1.") ? "router.example." : "target.example.";
      // After the name has arrived.
      setImmediate(answered.resolve);
      return { kind: "answer", records: [{ type, value }] };
    };
    const { result, events } = await call(traceroute, {}, engine, query as never);
    const named = [
      [1, null],
      [1, "router.example"],
      [2, null],
      [2, "target.example"],
    ];
    expect(
      events.map(([, data]) => [(data as TraceHop).hop, (data as { hostname: string }).hostname]),
    ).toEqual(named as [number, string][]);
    expect(result["hops"]).toEqual([events[1]?.[1], events[3]?.[1]] as object[]);
  });
});
