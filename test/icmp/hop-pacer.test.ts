import { describe, expect, test } from "bun:test";
import { HopPacer } from "../../src/icmp/hop-pacer.ts";
import { LIMITS } from "../../src/icmp/limits.ts";

const MS = 1e6;
const NOW = 1_000_000 * MS;

/** A pacer at whose hop 1 so many traces have just asked, and some have been answered. */
function crowd(traces: number): HopPacer {
  const pacer = new HopPacer();
  for (let count = 0; count < traces; count++) pacer.asked(1, NOW);
  if (traces > 0) pacer.answered(1, false, NOW);
  return pacer;
}

describe("when a silent hop may be asked again", () => {
  test("a trace that is alone never waits", () => {
    const pacer = crowd(1);
    const times = [100, 200].map((ms) => pacer.reserve(1, NOW + ms * MS));
    expect(times).toEqual([NOW + 100 * MS, NOW + 200 * MS]);
  });

  test("many wait for their turn, one behind the other", () => {
    const pacer = crowd(40);
    const times = Array.from({ length: 20 }, () => pacer.reserve(1, NOW + 100 * MS));
    const waits = times.map((time) => (time - NOW) / MS);
    expect(waits.slice(0, 3)).toEqual([1, 2, 3].map((turn) => turn * LIMITS.routerPauseMs));
    for (const [index, wait] of waits.entries()) {
      if (index > 0) expect(wait - (waits[index - 1] as number)).toBe(LIMITS.routerPauseMs);
    }
  });

  test("at another distance nobody waits", () => {
    expect(crowd(40).reserve(2, NOW)).toBe(NOW);
  });

  test("where no router answers, nobody waits", () => {
    const pacer = new HopPacer();
    for (let count = 0; count < 40; count++) pacer.asked(1, NOW);
    for (let count = 0; count < 40; count++) expect(pacer.reserve(1, NOW)).toBe(NOW);
  });

  test("nobody waits longer than the limit", () => {
    const pacer = crowd(6);
    const waits = Array.from({ length: 200 }, () => (pacer.reserve(1, NOW) - NOW) / MS);
    expect(Math.max(...waits)).toBeLessThanOrEqual(LIMITS.maxTurnMs);
    expect(waits.at(-1)).toBe(0);
  });

  test("nobody waits where one repeat after the other was in vain, until one is answered", () => {
    const pacer = crowd(40);
    for (let repeat = 0; repeat < LIMITS.maxVainRepeats; repeat++) {
      expect(pacer.isWorthWaiting(1, NOW)).toBe(true);
      pacer.repeated(1);
    }
    expect(pacer.isWorthWaiting(1, NOW)).toBe(false);
    expect(pacer.reserve(1, NOW)).toBe(NOW);
    pacer.answered(1, false, NOW);
    expect(pacer.isWorthWaiting(1, NOW)).toBe(false);
    pacer.answered(1, true, NOW);
    expect(pacer.reserve(1, NOW)).toBeGreaterThan(NOW);
  });

  test("a crowd that waited in vain says nothing about the next one", () => {
    const pacer = crowd(40);
    for (let repeat = 0; repeat < LIMITS.maxVainRepeats; repeat++) pacer.repeated(1);
    const later = NOW + (LIMITS.knownMs - 1) * MS;
    expect(pacer.reserve(1, later)).toBe(later);
    expect(pacer.isWorthWaiting(1, later)).toBe(true);
  });

  test("after a while the crowd is forgotten", () => {
    const later = NOW + (LIMITS.knownMs + 1) * MS;
    expect(crowd(40).reserve(1, later)).toBe(later);
  });
});
