import { describe, expect, test } from "bun:test";
import {
  formatSocketAddress,
  type SocketAddress,
  tryParseSocketAddress,
} from "../../src/addr/socket-address.ts";
import { ATTEMPT_STARTS_MS } from "../../src/dns/limits.ts";
import { alternateFamilies, runSchedule, type ScheduleEnd } from "../../src/dns/schedule.ts";
import { FakeClock, settle } from "./fake-clock.ts";

function endpoints(...texts: string[]): SocketAddress[] {
  return texts.map((text) => tryParseSocketAddress(text, 53) as SocketAddress);
}

interface Attempt {
  readonly server: string;
  readonly atMs: number;
  readonly isFirst: boolean;
  /** Ends the attempt as if the server had done it. */
  readonly finish: (result: string) => void;
  stopped: boolean;
}

/** A schedule whose attempts end when the test says so; a result that begins with "answer" decides. */
function start(servers: readonly SocketAddress[], timeoutMs = 5000) {
  const clock = new FakeClock();
  const controller = new AbortController();
  const attempts: Attempt[] = [];
  const state = { crowded: false };
  let end: ScheduleEnd<string> | undefined;
  const running = runSchedule<string>({
    servers,
    startsMs: ATTEMPT_STARTS_MS,
    timeoutMs,
    clock,
    signal: controller.signal,
    attempt(server, isFirst, signal) {
      const { promise, resolve } = Promise.withResolvers<string | null>();
      const attempt: Attempt = {
        server: formatSocketAddress(server).replace(/:53$/, ""),
        atMs: clock.nowMs(),
        isFirst,
        finish: resolve,
        stopped: false,
      };
      signal.addEventListener("abort", () => {
        attempt.stopped = true;
        resolve(null);
      });
      attempts.push(attempt);
      return promise;
    },
    isDecisive: (result) => result.startsWith("answer"),
    isCrowded: () => state.crowded,
  }).then((value) => {
    end = value;
  });
  return {
    clock,
    controller,
    attempts,
    state,
    running,
    /** Server and moment of each attempt so far. */
    begun: () => attempts.map(({ server, atMs }) => `${server}@${atMs}`),
    stopped: () => attempts.map(({ stopped }) => stopped),
    finish: async (index: number, result: string) => {
      attempts[index]?.finish(result);
      await settle();
    },
    end: () => end,
  };
}

const A = "192.0.2.1";
const B = "192.0.2.2";
const C = "192.0.2.3";
const D = "192.0.2.4";

describe("silent servers", () => {
  test.each([
    ["one", [A], [`${A}@0`, `${A}@1000`, `${A}@2500`]],
    ["two: other addresses before a repeat", [A, B], [`${A}@0`, `${B}@1000`, `${A}@2500`]],
    ["three", [A, B, C], [`${A}@0`, `${B}@1000`, `${C}@2500`]],
    ["four: the last is not reached", [A, B, C, D], [`${A}@0`, `${B}@1000`, `${C}@2500`]],
  ])("%s", async (_, servers, begun) => {
    const run = start(endpoints(...servers));
    await run.clock.advance(4999);
    expect(run.begun()).toEqual(begun);
    expect(run.stopped()).toEqual([false, false, false]);
    expect(run.end()).toBeUndefined();
    await run.clock.advance(1);
    expect(run.end()).toEqual({ reason: "timeout", results: [] });
    expect(run.stopped()).toEqual([true, true, true]);
    expect(run.clock.pending).toBe(0);
  });

  test("a short deadline ends before the later attempts begin", async () => {
    const run = start(endpoints(A, B, C), 2000);
    await run.clock.advance(2000);
    expect(run.begun()).toEqual([`${A}@0`, `${B}@1000`]);
    expect(run.end()?.reason).toBe("timeout");
  });
});

describe("servers that fail", () => {
  test("are followed by the next at once, and are not asked again", async () => {
    const run = start(endpoints(A, B));
    await run.clock.advance(10);
    await run.finish(0, "refused");
    expect(run.begun()).toEqual([`${A}@0`, `${B}@10`]);
    await run.clock.advance(4000);
    expect(run.begun()).toEqual([`${A}@0`, `${B}@10`, `${B}@1000`, `${B}@2500`]);
  });

  test("all: the schedule ends with what each said, in order", async () => {
    const run = start(endpoints(A, B, C));
    for (const [index, result] of ["one", "two", "three"].entries())
      await run.finish(index, result);
    expect(run.begun()).toEqual([`${A}@0`, `${B}@0`, `${C}@0`]);
    expect(run.end()).toEqual({ reason: "failed", results: ["one", "two", "three"] });
    expect(run.clock.pending).toBe(0);
  });

  test("one of two, while the other is silent: the silent one has until the deadline", async () => {
    const run = start(endpoints(A, B));
    await run.clock.advance(1000);
    await run.finish(1, "servfail");
    expect(run.end()).toBeUndefined();
    await run.clock.advance(4000);
    expect(run.begun()).toEqual([`${A}@0`, `${B}@1000`, `${A}@2500`]);
    expect(run.end()).toEqual({ reason: "timeout", results: ["servfail"] });
  });

  test("one after a silent one: who was not asked yet comes at once", async () => {
    const run = start(endpoints(A, B, C));
    await run.clock.advance(1100);
    await run.finish(1, "servfail");
    expect(run.begun()).toEqual([`${A}@0`, `${B}@1000`, `${C}@1100`]);
  });

  test("more servers than moments: all are asked", async () => {
    const run = start(endpoints(A, B, C, D));
    for (let index = 0; index < 4; index++) await run.finish(index, "refused");
    expect(run.end()?.results).toHaveLength(4);
  });
});

describe("an answer", () => {
  test("ends the other attempts", async () => {
    const run = start(endpoints(A, B));
    await run.clock.advance(1000);
    await run.finish(1, "answer");
    expect(run.end()).toEqual({ reason: "decided", results: ["answer"] });
    expect(run.stopped()).toEqual([true, false]);
    expect(run.clock.pending).toBe(0);
  });

  test("to an earlier attempt still counts", async () => {
    const run = start(endpoints(A, B));
    await run.clock.advance(4900);
    await run.finish(0, "answer late");
    expect(run.end()).toEqual({ reason: "decided", results: ["answer late"] });
  });

  test("after a failure counts, and the failure is kept", async () => {
    const run = start(endpoints(A, B));
    await run.finish(0, "servfail");
    await run.finish(1, "answer");
    expect(run.end()).toEqual({ reason: "decided", results: ["servfail", "answer"] });
  });
});

test("the signal ends everything", async () => {
  const run = start(endpoints(A, B));
  await run.clock.advance(1000);
  run.controller.abort();
  await run.running;
  expect(run.end()).toEqual({ reason: "aborted", results: [] });
  expect(run.stopped()).toEqual([true, true]);
  expect(run.clock.pending).toBe(0);
});

test("only the first attempt is the first", async () => {
  const run = start(endpoints(A));
  await run.clock.advance(5000);
  expect(run.attempts.map(({ isFirst }) => isFirst)).toEqual([true, false, false]);
});

test("where sockets are short, a later attempt takes the place of the oldest", async () => {
  const run = start(endpoints(A, B));
  await run.clock.advance(1000);
  expect(run.stopped()).toEqual([false, false]);
  run.state.crowded = true;
  await run.clock.advance(1500);
  expect(run.stopped()).toEqual([true, false, false]);
});

test("a bug in an attempt is thrown, and ends everything", async () => {
  const clock = new FakeClock();
  const running = runSchedule<string>({
    servers: endpoints(A),
    startsMs: ATTEMPT_STARTS_MS,
    timeoutMs: 5000,
    clock,
    signal: new AbortController().signal,
    attempt: async () => {
      throw new TypeError("a bug");
    },
    isDecisive: () => true,
    isCrowded: () => false,
  });
  expect(running).rejects.toThrow("a bug");
  await settle();
  expect(clock.pending).toBe(0);
});

describe("the address families take turns", () => {
  test.each([
    [
      ["::1", "::2", A, B],
      ["[::1]", A, "[::2]", B],
    ],
    [
      [A, B, "::1"],
      [A, "[::1]", B],
    ],
    [
      ["::1", "::2", "::3", A],
      ["[::1]", A, "[::2]", "[::3]"],
    ],
    [
      ["::1", A, "::2"],
      ["[::1]", A, "[::2]"],
    ],
    [
      [A, B],
      [A, B],
    ],
    [["::1"], ["[::1]"]],
  ])("%p", (servers, expected) => {
    const order = alternateFamilies(endpoints(...servers)).map(formatSocketAddress);
    expect(order.map((text) => text.replace(/:53$/, ""))).toEqual(expected);
  });
});
