import { expect } from "bun:test";
import { startKernelChain } from "./kernel-chain.ts";
import { labMissing, programMissing, testWith } from "./lab.ts";
import { run } from "./run.ts";
import { trace } from "./system-tools.ts";

const chainTest = testWith(labMissing);
const traceTest = testWith(labMissing, programMissing("traceroute"));
const filterTest = testWith(labMissing, programMissing("traceroute"), programMissing("nft"));

/** Everything of this namespace that a chain could leave behind. */
async function leftovers(): Promise<string> {
  return run(["sh", "-c", "ip -o link | cut -d: -f2; ip -6 route; ip -6 -o addr; ip netns"]);
}

traceTest("a target behind 12 routers shows 13 hops in order", async () => {
  await using chain = await startKernelChain({ routers: 12 });
  expect(chain.hops).toHaveLength(13);
  expect(chain.hops.at(-1)).toBe(chain.target);
  expect(await trace(chain.target)).toEqual([...chain.hops]);
});

traceTest("a chain without routers is a link to the target", async () => {
  await using chain = await startKernelChain({ routers: 0 });
  expect(await trace(chain.target)).toEqual([chain.target]);
});

filterTest("a filter inside one router silences that hop alone", async () => {
  await using chain = await startKernelChain({ routers: 3 });
  const rules = `table ip6 test {
    chain output { type filter hook output priority 0; icmpv6 type time-exceeded drop; }
  }`;
  await chain.exec(2, ["nft", "-f", "-"], rules);
  expect(await trace(chain.target)).toEqual(chain.hops.with(1, "*"));
});

traceTest("two chains stand side by side, and every node reaches every link", async () => {
  await using first = await startKernelChain({ routers: 2 });
  await using second = await startKernelChain({ routers: 1 });
  expect(await trace(first.target)).toEqual([...first.hops]);
  expect(await trace(second.target)).toEqual([...second.hops]);
  for (const hop of first.hops) expect((await trace(hop)).at(-1)).toBe(hop);
});

chainTest("stopping ends what runs inside and leaves nothing behind", async () => {
  const before = await leftovers();
  const chain = await startKernelChain({ routers: 2 });
  const child = Bun.spawn(chain.inside(2, ["sleep", "600"]));
  await chain.exec(2, ["true"]);
  await chain.stop();
  await chain.stop();
  expect(await child.exited).not.toBe(0);
  expect(child.signalCode).toBe("SIGKILL");
  expect(await leftovers()).toBe(before);
});

chainTest("a command that fails inside says what it printed", async () => {
  await using chain = await startKernelChain({ routers: 1 });
  expect(chain.exec(1, ["ip", "link", "del", "nothing"])).rejects.toThrow(
    'status 1: Cannot find device "nothing"',
  );
});
