/** Runs that go on from another source address when their own disappears, as after a renumbering. */
import { expect } from "bun:test";
import { formatIpv6 } from "../../src/addr/format.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { labEnvironment, run } from "../lab/run.ts";
import { openIcmp } from "./engines.ts";

testWith(labMissing)(
  "a ping and mtr lose nothing when their source address is removed",
  async () => {
    await using chain = await startKernelChain({ routers: 1 });
    const { device, source, target: text } = chain;
    const next = source.replace(/1$/, "77");
    // The kernel chooses a deprecated address only if there is no other.
    await run([
      "ip",
      "-6",
      "addr",
      "add",
      `${next}/64`,
      "dev",
      device,
      "nodad",
      "preferred_lft",
      "0",
    ]);
    const engine = openIcmp();
    try {
      const target = parseIpv6(text);
      const request = { target, intervalMs: 100, timeoutMs: 1000 };
      const cmd = ["ip", "-6", "addr", "del", `${source}/64`, "dev", device];
      // Nothing more is sent before it is removed.
      const onSample = ({ seq }: { seq: number }) =>
        void (seq === 2 && Bun.spawnSync({ cmd, env: labEnvironment }));
      const [pinged, measured] = await Promise.all([
        engine.ping({ ...request, count: 8 }, { onSample }),
        engine.mtr({ ...request, rounds: 8, maxHops: 5 }),
      ]);
      if (pinged.kind !== "done" || measured.kind !== "done") throw new Error(pinged.kind);
      expect(formatIpv6(pinged.source)).toBe(next);
      expect(formatIpv6(measured.source)).toBe(next);
      expect(pinged.lost.filter(({ reason }) => reason === "not-sent")).toEqual([]);
      expect(pinged.results.length).toBeGreaterThanOrEqual(7);
      expect(measured.toTarget.sent).toBe(8);
      expect(measured.toTarget.received).toBeGreaterThanOrEqual(7);
    } finally {
      engine.close();
    }
  },
);
