import { expect, spyOn, test } from "bun:test";
import { systemClock } from "../../src/util/clock.ts";

test.each([
  [-7, 0],
  [-0.5, 0],
  [0.2, 1],
])("a timer after %p ms is set to %p ms: the runtime warns of negative ones", (delayMs, setMs) => {
  using timer = spyOn(globalThis, "setTimeout");
  systemClock.after(delayMs, () => {})();
  expect(Math.abs(timer.mock.calls[0]?.[1] as number)).toBe(setMs);
});
