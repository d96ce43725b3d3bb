/** The path MTU through real Linux routers. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { MtuOutcome } from "../../../src/tools/mtu/engine.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { type IcmpEngine, openIcmp } from "../../icmp/engines.ts";
import { type KernelChain, startKernelChain } from "../../lab/kernel-chain.ts";
import { describeWith, labMissing, programMissing, testWith } from "../../lab/lab.ts";
import { nftRule } from "../../lab/nft.ts";
import { run } from "../../lab/run.ts";

type Done = Extract<MtuOutcome, { kind: "done" }>;

const ROUTERS = 4;
const TARGET_NODE = ROUTERS + 1;

describeWith(labMissing)("through four kernel routers", () => {
  let chain: KernelChain;
  let engine: IcmpEngine;

  beforeAll(async () => {
    chain = await startKernelChain({ routers: ROUTERS });
    engine = openIcmp();
  });

  afterAll(async () => {
    engine?.close();
    await chain?.stop();
  });

  beforeEach(async () => {
    for (let number = 1; number <= TARGET_NODE; number++) await chain.setMtu(number, 1500);
    await run(["ip", "-6", "route", "flush", "cache"]);
  });

  async function measure(): Promise<Done> {
    const request = { target: parseIpv6(chain.target), maxHops: 30, timeoutMs: 1000 };
    const outcome = await engine.mtu(request);
    if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
    expect(outcome.doubtful).toEqual([]);
    expect(engine.outstanding()).toBe(0);
    return outcome;
  }

  const sizes = ({ hops }: Done) => hops.map(({ mtu }) => mtu);

  test("all links alike are clear", async () => {
    const outcome = await measure();
    expect(outcome).toMatchObject({ verdict: "clear", mtu: 1500, packetTooBig: null });
    expect(sizes(outcome)).toEqual([1500, 1500, 1500, 1500, 1500]);
    expect([outcome.lastLarge, outcome.firstSmall]).toEqual([null, null]);
  });

  test.each([
    [2, 1280],
    [3, 1420],
    [3, 1437],
    [TARGET_NODE, 1480],
  ])("link %p with an MTU of %p narrows the path, and its router says so", async (link, mtu) => {
    await chain.setMtu(link, mtu);
    const outcome = await measure();
    expect(outcome).toMatchObject({
      verdict: "narrowed",
      mtu: mtu,
      packetTooBig: { mtu: mtu },
    });
    expect(outcome.packetTooBig?.from).toBe(chain.hops[link - 2] as string);
    expect(sizes(outcome)).toEqual(chain.hops.map((_, at) => (at + 1 < link ? 1500 : mtu)));
    expect([outcome.lastLarge, outcome.firstSmall]).toEqual([link - 1, link]);
  });

  test("a narrow link of this machine does not narrow the path", async () => {
    await chain.setMtu(1, 1460);
    expect(await measure()).toMatchObject({ verdict: "clear", mtu: 1460, packetTooBig: null });
  });

  test("two narrowings are both found", async () => {
    await chain.setMtu(2, 1480);
    await chain.setMtu(4, 1420);
    const outcome = await measure();
    expect(outcome).toMatchObject({ verdict: "narrowed", mtu: 1420 });
    expect(sizes(outcome)).toEqual([1500, 1480, 1480, 1420, 1420]);
  });

  test("jumbo frames pass as far as the links carry them, and the kernel's cache does not matter", async () => {
    for (let number = 1; number <= TARGET_NODE; number++) await chain.setMtu(number, 9000);
    await chain.setMtu(4, 1500);
    const narrowed = await measure();
    expect(narrowed).toMatchObject({ verdict: "narrowed", mtu: 1500 });
    expect(sizes(narrowed)).toEqual([9000, 9000, 9000, 1500, 1500]);
    await chain.setMtu(4, 9000);
    expect(await run(["ip", "-6", "route", "get", chain.target])).toContain("mtu 1500");
    expect(await measure()).toMatchObject({ verdict: "clear", mtu: 9000 });
  });

  test("packets that a link loses without a word are a black hole", async () => {
    await chain.setMtu(3, 1437, "far");
    // A veth takes four bytes more, for the tag of a VLAN.
    const mtu = 1441;
    const outcome = await measure();
    expect(outcome).toMatchObject({
      verdict: "black-hole",
      mtu: mtu,
      packetTooBig: null,
      lastLarge: 2,
      firstSmall: 3,
    });
    expect(sizes(outcome)).toEqual([1500, 1500, mtu, mtu, mtu]);
  });

  test("a router without a route back is silent, so a narrow link behind it is a black hole", async () => {
    const back = chain.hops[0]?.replace(/2$/, "/64") as string;
    const shown = await chain.exec(3, ["ip", "-6", "route", "show", back]);
    await chain.setMtu(4, 1420);
    await chain.exec(3, ["ip", "-6", "route", "del", back]);
    // Replies pass it by source: only what it sends itself has no way.
    await chain.exec(3, ["ip", "-6", "route", "add", ...shown.trim().split(/\s+/), "table", "100"]);
    await chain.exec(3, ["ip", "-6", "rule", "add", "iif", "downlink", "table", "100"]);
    try {
      const outcome = await measure();
      expect(outcome).toMatchObject({ verdict: "black-hole", mtu: 1420, packetTooBig: null });
      expect([outcome.lastLarge, outcome.firstSmall]).toEqual([2, 4]);
      expect(sizes(outcome)).toEqual([1500, 1500, null, 1420, 1420]);
    } finally {
      await chain.exec(3, ["ip", "-6", "route", "add", ...shown.trim().split(/\s+/)]);
      await chain.exec(3, ["ip", "-6", "rule", "del", "iif", "downlink", "table", "100"]);
    }
  });

  testWith(programMissing("tracepath"))("the MTU and its hop are those of tracepath", async () => {
    await chain.setMtu(3, 1420);
    const outcome = await measure();
    // The kernel remembers what the router has told us.
    await run(["ip", "-6", "route", "flush", "cache"]);
    const shown = await run(["tracepath", "-6", "-n", chain.target]);
    const teller = outcome.packetTooBig?.from;
    expect(shown).toMatch(new RegExp(` ${teller} .* pmtu ${outcome.mtu}\n`));
    expect(shown).toContain(`Resume: pmtu ${outcome.mtu} hops ${outcome.hops.length} `);
  });

  test("the loopback carries more than any other link", async () => {
    const request = { target: parseIpv6("::1"), maxHops: 30, timeoutMs: 1000 };
    expect(await engine.mtu(request)).toMatchObject({ verdict: "clear", mtu: 65_536 });
  });

  describeWith(programMissing("nft"))("with a firewall", () => {
    const set = (node: number, script: string) => chain.exec(node, ["nft", "-f", "-"], script);
    const clear = (node: number) => set(node, "flush ruleset");

    test("that drops Packet Too Big: a black hole", async () => {
      await chain.setMtu(3, 1420);
      await set(2, nftRule("output", "icmpv6 type packet-too-big drop"));
      try {
        const outcome = await measure();
        expect(outcome).toMatchObject({ verdict: "black-hole", mtu: 1420, lastLarge: 2 });
        expect(sizes(outcome)).toEqual([1500, 1500, 1420, 1420, 1420]);
      } finally {
        await clear(2);
      }
    });

    const LIMIT = "limit rate over 1/second burst 1 packets drop";

    test.each([
      ["narrowed", "icmpv6 type packet-too-big limit rate over 2/second burst 1 packets drop"],
      ["black-hole", "icmpv6 type packet-too-big drop"],
    ])("and all routers send one error a second: %s where it is", async (verdict, rule) => {
      await chain.setMtu(3, 1420);
      for (let node = 1; node <= ROUTERS; node++) {
        const rules = [`icmpv6 type time-exceeded ${LIMIT}`, ...(node === 2 ? [rule] : [])];
        await set(node, nftRule("output", rules.join("\n")));
      }
      try {
        const outcome = await measure();
        expect(outcome).toMatchObject({ verdict, mtu: 1420, lastLarge: 2, firstSmall: 3 });
        expect(sizes(outcome)).toEqual([1500, 1500, 1420, 1420, 1420]);
      } finally {
        for (let node = 1; node <= ROUTERS; node++) await clear(node);
      }
    });

    test("whose target answers once a second: clear", async () => {
      const all = `icmpv6 type echo-reply ${LIMIT}`;
      await set(TARGET_NODE, nftRule("output", all));
      try {
        expect(await measure()).toMatchObject({ verdict: "clear", mtu: 1500 });
      } finally {
        await clear(TARGET_NODE);
      }
    });

    test("that limits Packet Too Big to some a second: narrowed", async () => {
      await chain.setMtu(3, 1420);
      const limit = "icmpv6 type packet-too-big limit rate over 5/second burst 1 packets drop";
      await set(2, nftRule("output", limit));
      try {
        const outcome = await measure();
        expect(outcome).toMatchObject({ verdict: "narrowed", mtu: 1420 });
        expect(sizes(outcome)).toEqual([1500, 1500, 1420, 1420, 1420]);
      } finally {
        await clear(2);
      }
    });

    test("that drops what every link of IPv6 carries: below 1280", async () => {
      await set(2, nftRule("forward", "meta length > 1200 drop"));
      try {
        const outcome = await measure();
        expect(outcome).toMatchObject({ verdict: "below-1280", mtu: 1200, firstSmall: 3 });
      } finally {
        await clear(2);
      }
    });

    const NARROW_BACK = "icmpv6 type echo-reply meta length > 1400 drop";
    const NO_PORTS = "icmpv6 type destination-unreachable drop";

    // biome-ignore format: a table
    test.each<[name: string, node: number, hook: "forward" | "output", rule: string, expected: Partial<Done>]>([
      ["loses larger packets on the return path: a black hole there", 2, "forward", NARROW_BACK, { verdict: "black-hole", mtu: 1400, cause: "back", lastLarge: TARGET_NODE, firstSmall: null }],
      ["the same, and the target tells nothing of UDP: there or back", 2, "forward", `${NARROW_BACK}\n${NO_PORTS}`, { verdict: "black-hole", mtu: 1400, cause: null, lastLarge: TARGET_NODE - 1, firstSmall: null }],
      ["drops larger packets on the last link: a black hole on the way there", ROUTERS, "forward", `ip6 daddr 2001:db8::/32 meta length > 1400 icmpv6 type echo-request drop\nmeta l4proto udp meta length > 1400 drop`, { verdict: "black-hole", mtu: 1400, cause: "there", lastLarge: ROUTERS, firstSmall: TARGET_NODE }],
      ["drops larger echo requests of what every link carries: UDP shows that the path is not to blame", ROUTERS, "forward", "icmpv6 type echo-request meta length > 1000 drop", { verdict: "clear", mtu: 1500, cause: "echo" }],
      ["drops all echo requests: UDP measures the target", ROUTERS, "forward", "icmpv6 type echo-request drop", { verdict: "clear", mtu: 1500, cause: "echo" }],
    ])("that %s", async (_name, node, hook, rule, expected) => {
      await set(node, nftRule(hook, rule));
      try {
        expect(await measure()).toMatchObject(expected);
      } finally {
        await clear(node);
      }
    });

    test("that drops all packets to the target: narrowed, as far as the routers before it tell", async () => {
      await chain.setMtu(2, 1420);
      await set(4, nftRule("forward", `ip6 daddr ${chain.target} drop`));
      try {
        const outcome = await measure();
        expect(outcome).toMatchObject({ verdict: "narrowed", mtu: null, atMost: 1420 });
        expect(sizes(outcome).slice(0, 4)).toEqual([1500, 1420, 1420, 1420]);
      } finally {
        await clear(4);
      }
    });
  });
});
