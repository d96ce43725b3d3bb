/** TCP SYNs and UDP packets as probes, over loopback and through kernel routers. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { openIcmp } from "../../src/icmp/engine.ts";
import { Prober } from "../../src/icmp/prober.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, testWith } from "../lab/lab.ts";

const kernelTest = testWith(labMissing);
const LOOPBACK = parseIpv6("::1");
const REQUEST = {
  target: LOOPBACK,
  scopeId: 0,
  source: LOOPBACK,
  hopLimit: 64,
  flowLabel: 7,
  timeoutMs: 1000,
};

describe("over loopback", () => {
  kernelTest("a listening port is open, another is closed, and no connection is made", async () => {
    let connections = 0;
    using server = Bun.listen({
      hostname: "::1",
      port: 0,
      socket: { open: () => void connections++, data() {} },
    });
    const prober = new Prober();
    const signal = new AbortController().signal;
    const ask = (port: number, protocol: "tcp" | "udp" = "tcp") =>
      prober.probe({ ...REQUEST, signal, carrier: { protocol, port } });
    const answers = [await ask(server.port), await ask(1), await ask(1, "udp")];
    prober.close();
    expect(answers).toMatchObject([
      { kind: "reply", state: "open" },
      { kind: "reply", state: "closed" },
      { kind: "reply", state: "closed" },
    ]);
    expect(connections).toBe(0);
  });
});

describe("through kernel routers", () => {
  let chain: KernelChain;
  beforeAll(async () => {
    if (labMissing === null) chain = await startKernelChain({ routers: 4 });
  });
  afterAll(() => chain?.stop());

  kernelTest.each(["tcp", "udp"] as const)("%s shows every hop", async (protocol) => {
    const engine = openIcmp();
    const target = parseIpv6(chain.target);
    const carrier = { protocol, port: 33434 } as const;
    const traced = await engine.traceroute({ target, timeoutMs: 2000, maxHops: 30, carrier });
    expect(traced).toMatchObject({ kind: "done", reached: true });
    if (traced.kind !== "done") return;
    expect(traced.hops.map(({ address }) => address)).toEqual(
      chain.hops.map((hop) => parseIpv6(hop)),
    );
    const ping = await engine.ping({
      target,
      timeoutMs: 1000,
      count: 2,
      intervalMs: 1100,
      carrier,
    });
    expect(ping).toMatchObject({ samples: [{ state: "closed" }, { state: "closed" }] });
    // Linux sends one Port Unreachable a second to each address.
    const all = { sent: 3, ...(protocol === "tcp" && { received: 3 }) };
    const rounds = { rounds: 3, intervalMs: 100, flowLabel: 5 };
    const mtr = await engine.mtr({ target, timeoutMs: 2000, maxHops: 30, carrier, ...rounds });
    expect(mtr).toMatchObject({ kind: "done", reached: true, toTarget: all });
    engine.close();
  });
});
