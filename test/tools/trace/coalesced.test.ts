import { expect, test } from "bun:test";
import { coalesceTraces } from "../../../src/tools/trace/coalesced.ts";
import type { TraceOptions, TraceOutcome, TraceRequest } from "../../../src/tools/trace/engine.ts";
import { describeHop, type TraceHop } from "../../../src/tools/trace/responses.ts";
import { parseIpv6 } from "../../addr/parse.ts";

const REQUEST: TraceRequest = { target: parseIpv6("2001:db8::2"), maxHops: 30, timeoutMs: 2000 };
const HOP = parseIpv6("2001:db8::1");
const ROWS = [1, 2].map((hop) => describeHop(hop, [], HOP, HOP));

/** Traces that end when the test says so. */
function start() {
  const running: { options: TraceOptions; end(outcome: TraceOutcome): void }[] = [];
  const trace = coalesceTraces((_request, options = {}) => {
    const { promise, resolve } = Promise.withResolvers<TraceOutcome>();
    options.signal?.addEventListener("abort", () => resolve({ kind: "aborted" }));
    running.push({ options, end: resolve });
    return promise;
  });
  return { running, trace };
}

const OUTCOME: TraceOutcome = { kind: "unreachable", code: "ENETUNREACH" };

test("callers at the same time have one trace and one answer", async () => {
  const { running, trace } = start();
  const callers = [trace(REQUEST), trace({ ...REQUEST }), trace(REQUEST)];
  expect(running).toHaveLength(1);
  running[0]?.end(OUTCOME);
  expect(await Promise.all(callers)).toEqual([OUTCOME, OUTCOME, OUTCOME]);
});

test("a caller after the end has a trace of its own", async () => {
  const { running, trace } = start();
  const first = trace(REQUEST);
  running[0]?.end(OUTCOME);
  await first;
  const second = trace(REQUEST);
  expect(running).toHaveLength(2);
  running[1]?.end(OUTCOME);
  await second;
});

// The caller gets the outcome a few turns after the trace has ended.
test.each([0, 1, 2, 3, 4, 5])(
  "a caller that leaves an ended trace does not hide the next one that began %i turns after the end",
  async (turns) => {
    const { running, trace } = start();
    const first = trace(REQUEST);
    running[0]?.end(OUTCOME);
    for (let turn = 0; turn < turns; turn++) await null;
    const second = trace(REQUEST);
    await first;
    const third = trace(REQUEST);
    expect(running).toHaveLength(2);
    running[1]?.end(OUTCOME);
    expect(await Promise.all([second, third])).toEqual([OUTCOME, OUTCOME]);
  },
);

test.each([
  ["target", { target: HOP }],
  ["zone", { scopeId: 2 }],
  ["last hop", { maxHops: 29 }],
  ["timeout", { timeoutMs: 1000 }],
] as const)("traces with another %s are not shared", (_name, change) => {
  const { running, trace } = start();
  void trace(REQUEST);
  void trace({ ...REQUEST, ...change });
  expect(running).toHaveLength(2);
});

test("a caller that joins gets the rows that are known already", async () => {
  const { running, trace } = start();
  const seen: Record<string, TraceHop[]> = { early: [], late: [] };
  const join = (name: string) => trace(REQUEST, { onHop: (row) => seen[name]?.push(row) });
  const [first, second] = ROWS as [TraceHop, TraceHop];
  const early = join("early");
  running[0]?.options.onHop?.(first);
  const late = join("late");
  running[0]?.options.onHop?.(second);
  running[0]?.end(OUTCOME);
  await Promise.all([early, late]);
  expect(seen).toEqual({ early: ROWS, late: ROWS });
});

test("a caller that goes away does not end the trace of the others; the last one does", async () => {
  const { running, trace } = start();
  const [first, second] = [new AbortController(), new AbortController()];
  const callers = [first, second].map(({ signal }) => trace(REQUEST, { signal }));
  first.abort();
  expect(await callers[0]).toEqual({ kind: "aborted" });
  expect(running[0]?.options.signal?.aborted).toBe(false);
  second.abort();
  expect(await callers[1]).toEqual({ kind: "aborted" });
  expect(running[0]?.options.signal?.aborted).toBe(true);
});

test("a caller whose signal has aborted starts no trace", async () => {
  const { running, trace } = start();
  expect(await trace(REQUEST, { signal: AbortSignal.abort() })).toEqual({ kind: "aborted" });
  expect(running).toEqual([]);
});
