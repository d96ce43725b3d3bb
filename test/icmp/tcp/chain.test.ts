/** The conclusions of ping, trace and mtr on ports behind real Linux routers and firewalls. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import type { TracePath } from "../../../src/tools/trace/result.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { type KernelChain, startKernelChain } from "../../lab/kernel-chain.ts";
import { startKernelGraph } from "../../lab/kernel-graph.ts";
import { describeWith, labMissing, programMissing } from "../../lab/lab.ts";
import { nftRule } from "../../lab/nft.ts";
import { labEnvironment } from "../../lab/run.ts";
import { type IcmpEngine, openIcmp } from "../engines.ts";
import { portTools } from "./tools.ts";

const ROUTERS = 4;
const TARGET_NODE = ROUTERS + 1;
/** The router with the firewall. */
const FIREWALL = 3;
const UNLIMITED = "echo 0 > /proc/sys/net/ipv6/icmp/ratelimit";
/** No other test leaves connections to this port half open, as lost resets do: SYNs from the same port meet them. */
const FRESH = 8443;
/** Listens until it is killed. */
const LISTEN = `for (const port of [443, ${FRESH}]) Bun.listen({ hostname: "::", port, socket: { data() {} } });
console.log("ready")`;

/** A UDP port whose answers come three times each. */
const THRICE = 4433;
const ANSWER_THRICE = `const data = (socket, _, port, from) => { for (const n of "123") socket.send(n, port, from) };
await Bun.udpSocket({ hostname: "::", port: ${THRICE}, socket: { data } });
console.log("ready")`;

describeWith(labMissing, programMissing("nft"))("a port behind four routers", () => {
  let chain: KernelChain;
  let engine: IcmpEngine;
  let tools: ReturnType<typeof portTools>;

  beforeAll(async () => {
    chain = await startKernelChain({ routers: ROUTERS });
    for (let node = 1; node <= TARGET_NODE; node++) await chain.exec(node, ["sh", "-c", UNLIMITED]);
    const server = Bun.spawn(chain.inside(TARGET_NODE, [process.execPath, "-e", LISTEN]));
    await server.stdout.getReader().read();
    engine = openIcmp();
    tools = portTools(engine);
  });
  afterAll(async () => {
    engine?.close();
    await chain?.stop();
  });
  afterEach(async () => {
    for (const node of [FIREWALL, FIREWALL + 1, TARGET_NODE])
      await chain.exec(node, ["nft", "flush", "ruleset"]);
  });

  const rule = (node: number, hook: Parameters<typeof nftRule>[0], text: string) =>
    chain.exec(node, ["nft", "-f", "-"], nftRule(hook, text));
  const about = (protocol: string, port: number) => ({
    target: chain.target,
    protocol,
    port: `${port}`,
  });

  test.each([
    ["an open port", "tcp", 443, "open", "TCP port 443 is open (SYN-ACK)."],
    ["a closed port", "tcp", 80, "closed", "TCP port 80 is closed (RST)."],
    [
      "a closed UDP port",
      "udp",
      33_434,
      "closed",
      "UDP port 33434 is closed (Port Unreachable, which systems send only so often).",
    ],
  ] as const)("%s is reached over every hop", async (_, protocol, port, state, text) => {
    const asked = about(protocol, port);
    const shown = { protocol, port, state };
    const [ping, trace] = [await tools.ping(asked), await tools.trace(asked)];
    const mtr = await tools.mtr({ ...asked, rounds: "4" });
    expect(ping.details).toMatchObject({ port: shown, verdict: { code: "no-loss" } });
    expect(trace.details).toMatchObject({ port: shown, reached: true, reason: "reached" });
    expect(mtr.details).toMatchObject({ port: shown, verdict: { code: "no-loss" } });
    expect(trace.hops.map(({ ip }) => ip)).toEqual([...chain.hops]);
    expect(mtr.hops.map(({ ip, loss }) => [ip, loss])).toEqual(chain.hops.map((ip) => [ip, 0]));
    for (const { details } of [ping, trace, mtr])
      expect(details.verdict.text).toEndWith(` ${text}`);
  });

  test.each([
    ["at the target", TARGET_NODE, "input", ROUTERS],
    ["at a router on the way", FIREWALL, "forward", FIREWALL],
  ] as const)("a port dropped %s is silent, and echo is not", async (_, node, hook, behind) => {
    await rule(node, hook, "tcp dport 443 drop");
    const [ping, trace, mtr] = await Promise.all([
      tools.ping({ ...about("tcp", 443), count: "2" }),
      tools.trace(about("tcp", 443)),
      tools.mtr({ ...about("tcp", 443), rounds: "2" }),
    ]);
    const silent = "The server answers ping, but nothing on TCP port 443";
    expect(ping.details.verdict.text).toEndWith(` ${silent}.`);
    expect(trace.details.verdict.text).toBe(
      `${silent}; such packets are last seen at hop ${behind}.`,
    );
    expect(trace.details).toMatchObject({ reached: false, port: { protocol: "tcp", port: 443 } });
    expect(mtr.details.verdict.text).toEndWith(` ${silent}.`);
    for (const { details } of [ping, trace, mtr]) expect(details.port?.state).toBeUndefined();
  });

  test("a port and echo dropped at a router are not told apart", async () => {
    await rule(FIREWALL, "forward", `ip6 daddr ${chain.target} drop`);
    const { details } = await tools.trace(about("tcp", 443));
    expect(details.verdict.text).toEndWith(" Echo requests are not answered either.");
  });

  test("silent routers behind the last that answers do not make a hop the firewall", async () => {
    await rule(FIREWALL, "output", "icmpv6 type time-exceeded drop");
    await rule(FIREWALL + 1, "forward", "tcp dport 443 drop");
    const dropped = await tools.trace(about("tcp", 443));
    expect(dropped.details.verdict.text).toEndWith(` last seen at hop ${FIREWALL + 1}.`);
    await rule(FIREWALL + 1, "input", "accept");
    await rule(FIREWALL, "forward", "tcp dport 443 drop");
    const hidden = await tools.trace(about("tcp", 443));
    // The router that drops answered something a moment ago, so its own hop is still the last that is known.
    expect(hidden.details.verdict.text).toEndWith(` last seen at hop ${FIREWALL}.`);
  });

  test("a router that rejects a port is named with what it says", async () => {
    await rule(FIREWALL, "forward", "tcp dport 443 reject with icmpv6 admin-prohibited");
    const [ping, trace] = [
      await tools.ping(about("tcp", 443)),
      await tools.trace(about("tcp", 443)),
    ];
    const who = `${chain.hops[FIREWALL - 1]} answers TCP port 443 with prohibited.`;
    for (const { details } of [ping, trace])
      expect(details.verdict.text).toEndWith(` The server answers ping, but ${who}`);
    expect(trace.details).toMatchObject({ reason: "prohibited", reached: false });
  });

  test("a reset in the name of the target shows by the hop at which it comes", async () => {
    await rule(FIREWALL, "forward", "tcp dport 443 reject with tcp reset");
    const { hops, details } = await tools.trace(about("tcp", 443));
    expect(hops).toHaveLength(FIREWALL + 1);
    expect(details.verdict.text).toEndWith(
      ` TCP port 443 is closed (RST). But an echo request ends at hop ${FIREWALL + 1} (${chain.hops[FIREWALL]}) before the target: a firewall may have answered in its name.`,
    );
  });

  test("a UDP port that answers each packet three times is no nearer", async () => {
    await rule(FIREWALL, "output", "icmpv6 type time-exceeded drop");
    const server = Bun.spawn(chain.inside(TARGET_NODE, [process.execPath, "-e", ANSWER_THRICE]));
    await server.stdout.getReader().read();
    const known = chain.hops.map((ip, at) => (at + 1 === FIREWALL ? null : ip));
    const trace = () => tools.trace(about("udp", THRICE));
    let { hops, details } = await trace();
    // On a busy machine, replies can overtake the error of a nearer hop, and nothing tells them from its answers then.
    for (let tries = 1; tries < 5 && hops.length < known.length; tries++)
      ({ hops, details } = await trace());
    server.kill();
    expect(details.port).toEqual({ protocol: "udp", port: THRICE, state: "open" });
    expect(hops.map(({ ip }) => ip)).toEqual(known);
  });

  test("a silent UDP port may be open", async () => {
    await rule(TARGET_NODE, "input", "udp dport 53 drop");
    const { details } = await tools.trace(about("udp", 53));
    expect(details.verdict.text).toBe(
      `The server answers ping, but nothing on UDP port 53, as an open one may be silent; such packets are last seen at hop ${ROUTERS}.`,
    );
  });

  test("a rule that comes while mtr runs changes the counts, and every answer counts for the state", async () => {
    const asked = { ...about("tcp", 443), rounds: "12", intervalMs: "110" };
    const probedPort = { protocol: "tcp", port: 443 } as const;
    const request = { target: parseIpv6(chain.target), timeoutMs: 600, maxHops: 9, probedPort };
    /** Changes a firewall after the fourth of twelve rounds. */
    const changing = (node: number, script: string) => {
      let rounds = 0;
      const cmd = chain.inside(node, ["nft", "-f", "-"]);
      const onRound = () => {
        // No round begins before it is done.
        if (++rounds === 4) Bun.spawnSync({ cmd, env: labEnvironment, stdin: Buffer.from(script) });
      };
      return engine.mtr({ ...request, rounds: 12, intervalMs: 110 }, { onRound });
    };
    const cut = await changing(FIREWALL, nftRule("forward", "tcp dport 443 drop"));
    expect(cut).toMatchObject({ kind: "done", reached: true });
    if (cut.kind !== "done") return;
    expect(new Set(cut.answers)).toEqual(new Set(["open"]));
    expect(cut.toTarget.received).toBeWithin(4, 12);
    await chain.exec(FIREWALL, ["nft", "flush", "ruleset"]);
    await rule(TARGET_NODE, "input", "tcp dport 443 reject with tcp reset");
    const freed = await changing(TARGET_NODE, "flush ruleset");
    expect(freed).toMatchObject({ toTarget: { received: 12 } });
    expect(freed.kind === "done" && new Set(freed.answers)).toEqual(new Set(["open", "closed"]));
    await rule(FIREWALL, "forward", "tcp dport 443 drop");
    const closed = await tools.mtr({ ...asked, rounds: "2" });
    expect(closed.details.verdict.text).toContain("nothing on TCP port 443");
    await chain.exec(FIREWALL, ["nft", "flush", "ruleset"]);
    const opened = await tools.mtr({ ...asked, rounds: "2" });
    expect(opened.details.port?.state).toBe("open");
  });

  test("a port that refuses some is mixed, and the verdict counts both", async () => {
    const refusal = "numgen inc mod 3 == 1 reject with tcp reset";
    await rule(TARGET_NODE, "input", `tcp dport 443 tcp flags & (syn | ack) == syn ${refusal}`);
    const asked = about("tcp", 443);
    for (const { details } of [
      await tools.ping({ ...asked, count: "9" }),
      await tools.mtr({ ...asked, rounds: "9", intervalMs: "110" }),
    ]) {
      expect(details.port?.state).toBe("mixed");
      const counted = /TCP port 443 is mixed: of 9 answers, (\d) SYN-ACK and (\d) RST\.$/;
      expect(details.verdict.text).toMatch(counted);
      const [, open, closed] = counted.exec(details.verdict.text) ?? [];
      expect([open, closed]).toEqual(["6", "3"]);
    }
  });

  test("a target whose reset gets lost still answers every SYN", async () => {
    // As with a reset that is under way longer than the pause between two SYNs.
    await rule(FIREWALL, "forward", `ip6 saddr ${chain.source} tcp flags & rst == rst drop`);
    const { stats, details } = await tools.ping({ ...about("tcp", 443), count: "10" });
    expect(stats).toMatchObject({ transmitted: 10, received: 10 });
    expect(details.verdict.code).toBe("no-loss");
  });

  test("a firewall that follows connections lets the SYNs of a run pass", async () => {
    const rules = ["ct state invalid drop", "ct state { new, established, related } accept"];
    await rule(FIREWALL, "forward", [...rules, "drop"].join("\n"));
    for (const port of [FRESH, 80]) {
      const { details } = await tools.mtr({
        ...about("tcp", port),
        rounds: "6",
        intervalMs: "110",
      });
      expect(details.toTarget).toMatchObject({ sent: 6, received: 6 });
    }
  });
});

describeWith(labMissing)("equal paths for TCP", () => {
  test("are told apart by flow label, and one label stays on one path", async () => {
    const next = { a: ["x0", "x1"], x0: ["b"], x1: ["b"], b: ["T"], T: [] };
    const unlimited = { "net/ipv6/icmp/ratelimit": 0 };
    await using network = await startKernelGraph(next, unlimited);
    const engine = openIcmp();
    const target = parseIpv6(network.target);
    const probedPort = { protocol: "tcp", port: 443 } as const;
    const request = { target, timeoutMs: 2000, maxHops: 30, probedPort };
    let paths: readonly TracePath[] = [];
    // A search misses a path by chance, one in twenty times.
    for (let searches = 0; searches < 10 && paths.length < 2; searches++) {
      const found = await engine.paths({ ...request, paths: 4 });
      expect(found).toMatchObject({ kind: "done", reached: true, complete: true });
      if (found.kind === "done") ({ paths } = found);
    }
    const middles = paths.map(({ addresses }) => addresses[1]);
    expect(new Set(middles).size).toBe(2);
    expect(middles).toHaveLength(2);
    const [label] = paths.map(({ flowLabel }) => flowLabel);
    const again = await engine.traceroute({ ...request, flowLabel: label });
    expect(again).toMatchObject({ kind: "done", flowLabel: label });
    if (again.kind === "done") expect(again.hops[1]?.ip).toEqual(middles[0] ?? null);
    engine.close();
  });
});
