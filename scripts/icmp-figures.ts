/**
 * One figure of the engine of a source tree, as a line of JSON; `scripts/bench-icmp.ts` runs it in processes of
 * their own. Arguments: the tree, the figure, an address.
 */
import { join } from "node:path";
import { median } from "./measure.ts";

const [tree = ".", figure = "", text = "::1"] = Bun.argv.slice(2);
const { openIcmp }: typeof import("../test/icmp/engines.ts") = await import(
  join(tree, "test/icmp/engines.ts")
);
const { tryParseIpv6 }: typeof import("../src/addr/ipv6.ts") = await import(
  join(tree, "src/addr/ipv6.ts")
);
const target = tryParseIpv6(text);
if (target === null) throw new Error(`${text} is not an address`);
const engine = openIcmp();

/** The round-trip times of a ping. */
async function ping(count: number, intervalMs: number, timeoutMs = 2000): Promise<number[]> {
  const outcome = await engine.ping({ target: target as never, count, intervalMs, timeoutMs });
  return outcome.kind === "done" ? outcome.results.map(({ rtt }) => rtt) : [];
}

/** Milliseconds, and CPU in milliseconds, of some work. */
async function cost(work: () => Promise<unknown>) {
  const [before, fromMs] = [process.cpuUsage(), performance.now()];
  await work();
  const { user, system } = process.cpuUsage(before);
  return { ms: performance.now() - fromMs, cpuMs: (user + system) / 1000 };
}

const five = (intervalMs: number) =>
  Promise.all(Array.from({ length: 5 }, () => ping(5000 / intervalMs, intervalMs)));

const FIGURES: Record<string, () => Promise<Record<string, number>>> = {
  /** The median of 200 round-trip times. */
  rtt: async () => ({ us: 1000 * median(await ping(200, 20)) }),
  /** CPU of one ping without an answer. */
  unanswered: async () => ({ cpuMs: (await cost(() => ping(1, 200, 10_000))).cpuMs }),
  /** A trace of one hop. */
  trace: async () => {
    const all: number[] = [];
    const trace = () => engine.traceroute({ target, maxHops: 30, timeoutMs: 2000 });
    for (let count = 0; count < 50; count++) all.push((await cost(trace)).ms);
    return { ms: median(all) };
  },
  /** Five pings at once with an interval of 5 ms, after a warm-up with 50. */
  probes: async () => {
    await five(50);
    await Bun.sleep(1100);
    const { ms, cpuMs } = await cost(() => five(5));
    return { perSecond: 5e6 / ms, cpuUs: cpuMs / 5 };
  },
};

console.log(JSON.stringify(await FIGURES[figure]?.()));
engine.close();
