/** What a check is told of the SYNs and echo requests that it sends. */
import { expect, test } from "bun:test";
import type { Answer, ProbeRequest, Prober } from "../../../src/icmp/prober/prober.ts";
import { PAIRS, sendPairs } from "../../../src/tools/check/probes.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { FakeClock } from "../../util/fake-clock.ts";

test("a probe whose answer is read late has left when it left", async () => {
  const clock = new FakeClock();
  const source = parseIpv6("2001:db8::5");
  const target = parseIpv6("2001:db8::1");
  const late = Promise.withResolvers<void>();
  const prober = {
    ...{ clock, withoutRaw: null, route: () => ({ source, flowLabel: 0 }) },
    async probe({ onSent }: ProbeRequest) {
      onSent?.(source);
      await late.promise;
      return { kind: "reply", rttMs: 1 } as Answer;
    },
  };
  const left: (number | undefined)[] = [];
  const { signal } = new AbortController();
  const wish = { target, timeoutMs: 1000, caller: { client: "a" }, signal };
  const ended = sendPairs(prober as unknown as Prober, 443, wish, (_, leftMs) => left.push(leftMs));
  await clock.advance(10_000);
  const sentMs = performance.now();
  await Bun.sleep(5);
  late.resolve();
  await clock.run(ended);
  expect(left).toHaveLength(2 * PAIRS);
  expect(Math.max(...left.map((ms) => ms ?? Infinity))).toBeLessThanOrEqual(sentMs);
});
