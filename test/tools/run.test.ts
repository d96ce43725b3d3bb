/** How a run holds its probe slot. */
import { describe, expect, test } from "bun:test";
import type { Call } from "../../src/api/endpoint.ts";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { Gate } from "../../src/gate/gate.ts";
import type { Prober } from "../../src/icmp/prober/prober.ts";
import { MAX_EVENT_BYTES } from "../../src/tools/budget.ts";
import { openRun } from "../../src/tools/run.ts";
import type { Services } from "../../src/tools/services.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { STAMP } from "./stamp.ts";

const CALL: Call = {
  signal: new AbortController().signal,
  address: null,
  client: "",
  allowSeconds: () => {},
};
const DONE = { kind: "done", source: parseIpv6("2001:db8::1") } as const;

function setUp(icmp = {} as Prober) {
  const client = {} as DnsClient;
  const services: Services = {
    config: parseConfig({}),
    resolvers: { resolver_a: client, resolver_b: client, resolver_c: client },
    icmp,
    gate: new Gate(),
    probeSlots: new FairSlots(1),
    querySlots: new FairSlots(1),
  };
  const open = (call = CALL) => openRun({ target: "2001:db8::80" }, 1000, call, services, true);
  return { open, slots: services.probeSlots };
}

describe("a run", () => {
  test("holds a slot until it is over, because something may leave after its outcome", async () => {
    const { open, slots } = setUp();
    const run = await open();
    expect(slots.running).toBe(1);
    expect(await run.outcome(Promise.resolve(DONE))).toBe(DONE);
    expect(slots.running).toBe(1);
    run[Symbol.dispose]();
    expect(slots.running).toBe(0);
  });

  test("that fails gives its slot back", async () => {
    const { open, slots } = setUp();
    const run = await open();
    await expect(run.outcome(Promise.reject(new Error("failed")))).rejects.toThrow("failed");
    run[Symbol.dispose]();
    expect(slots.running).toBe(0);
  });

  test("is refused at its beginning, without a slot, while the prober has no room", async () => {
    const { open, slots } = setUp({ isFull: true } as Prober);
    const refusal = { code: "TOO_MANY_PROBES", details: { limit: 1, retryAfterSeconds: 2 } };
    await expect(open()).rejects.toMatchObject(refusal);
    await expect(open()).rejects.toThrow("As many probes are under way");
    expect(slots.running).toBe(0);
  });

  test("that never begins gives its slot back", async () => {
    const { open, slots } = setUp();
    const opened = async () => {
      using run = await open();
      throw new Error(`not begun: ${run.ip}`);
    };
    await expect(opened()).rejects.toThrow("not begun: 2001:db8::80");
    expect(slots.running).toBe(0);
  });

  test("gets no slot where all are in use", async () => {
    const { open } = setUp();
    using _held = await open();
    await expect(open()).rejects.toMatchObject({ code: "TOO_MANY_PROBES", details: { limit: 1 } });
  });

  test("of a caller who has gone has no outcome", async () => {
    const { open, slots } = setUp();
    const caller = new AbortController();
    const run = await open({ ...CALL, signal: caller.signal });
    caller.abort();
    await expect(run.outcome(Promise.resolve(DONE))).rejects.toMatchObject({ name: "AbortError" });
    run[Symbol.dispose]();
    expect(slots.running).toBe(0);
  });

  test("that this machine cannot send says so", async () => {
    const { open } = setUp();
    using run = await open();
    const ended = Promise.resolve({ kind: "unreachable", code: "ENETUNREACH" } as const);
    await expect(run.outcome(ended)).rejects.toMatchObject({
      code: "NETWORK_UNREACHABLE",
      message: expect.stringContaining("(ENETUNREACH)"),
    });
  });

  test("says what the details of every result have", async () => {
    const { open } = setUp();
    using run = await open();
    const verdict = { code: "reached", text: "The target replied at hop 1." };
    expect(await run.details(DONE, verdict)).toEqual({ ...STAMP, verdict, source: "2001:db8::1" });
  });

  test("that meets its budget tells no more, and says so", async () => {
    const { open } = setUp();
    const told: string[] = [];
    const onEvent: Call["onEvent"] = (name, _, mayTell) => {
      if (mayTell?.(MAX_EVENT_BYTES / 2)) told.push(name);
    };
    using run = await open({ ...CALL, onEvent });
    for (const name of ["one", "two", "three", "four"]) run.onEvent?.(name, {});
    expect(told).toEqual(["one", "two"]);
    expect(run.options.budget.enough.aborted).toBe(true);
    const outcome = await run.outcome(Promise.resolve(DONE));
    const verdict = { code: "reached", text: "The target replied at hop 1." };
    expect(await run.details(outcome, verdict)).toEqual({
      ...STAMP,
      verdict: { ...verdict, text: expect.stringMatching(/hop 1\. The run met its budget/) },
      source: "2001:db8::1",
      cutShort: { code: "events", text: "The events took more than 6291456 bytes." },
    });
  });
});
