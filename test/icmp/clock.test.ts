import { describe, expect, test } from "bun:test";
import { receivedAtNs, SystemClock } from "../../src/icmp/clock.ts";

const SECOND = 1_000_000_000;

describe("the moment of receipt on the monotonic clock", () => {
  const NOW = 5_000 * SECOND;
  test.each([
    ["read at once", [1_800_000_000, 500], [1_800_000_000, 500], NOW],
    ["read 42 ns later", [1_800_000_000, 500], [1_800_000_000, 542], NOW - 42],
    [
      "read 3 ms later, over the turn of a second",
      [1_799_999_999, 998_000_000],
      [1_800_000_000, 1_000_000],
      NOW - 3_000_000,
    ],
    [
      "read 10 s later, as much as is believed",
      [1_800_000_000, 0],
      [1_800_000_010, 0],
      NOW - 10 * SECOND,
    ],
    ["clock set forward by an hour in between", [1_800_000_000, 0], [1_800_003_600, 0], NOW],
    ["clock set back by an hour in between", [1_800_003_600, 0], [1_800_000_000, 0], NOW],
    ["clock set back by a nanosecond in between", [1_800_000_000, 1], [1_800_000_000, 0], NOW],
    ["before 1970", [-1, 999_999_999], [0, 0], NOW - 1],
  ] as const)("%s", (_name, stamp, realtime, expected) => {
    const [from, to] = [stamp, realtime].map(([seconds, nanoseconds]) => ({
      seconds,
      nanoseconds,
    }));
    expect(receivedAtNs(from as never, to as never, NOW)).toBe(expected);
  });
});

describe("the system's clock", () => {
  const clock = new SystemClock();

  test("never goes back", () => {
    let last = clock.nowNs();
    for (let reading = 0; reading < 10_000; reading++) {
      const now = clock.nowNs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  });

  test("reads the wall clock beside the monotonic one", () => {
    const before = clock.nowNs();
    const { realtime, monotonicNs } = clock.readBoth();
    expect(monotonicNs).toBeGreaterThanOrEqual(before);
    expect(monotonicNs).toBeLessThanOrEqual(clock.nowNs());
    expect(Math.abs(realtime.seconds - Date.now() / 1000)).toBeLessThan(60);
  });

  test("calls back once, not before its time, and not at all when it is taken back", async () => {
    const from = clock.nowNs();
    let calls = 0;
    clock.after(3, () => calls++)();
    await new Promise<void>((resolve) => clock.after(5, resolve));
    expect([calls, clock.nowNs() - from >= 4_900_000]).toEqual([0, true]);
  });
});
