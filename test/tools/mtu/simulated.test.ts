/** The path MTU over simulated paths: routers that lie, and what a measurement tells when. */
import { describe, expect, spyOn, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import type { MtuOutcome } from "../../../src/tools/mtu/engine.ts";
import type { MtuHop } from "../../../src/tools/mtu/result.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { openIcmp } from "../../icmp/engines.ts";
import {
  echoReply,
  icmpError,
  type Network,
  SOURCE,
  simulate,
  stationAddress,
} from "../../icmp/fake.ts";
import { startInternet } from "../../lab/internet.ts";
import type { Router } from "../../lab/internet-description.ts";
import { describeWith, tunMissing } from "../../lab/lab.ts";

type Done = Extract<MtuOutcome, { kind: "done" }>;

describeWith(tunMissing)("over a simulated internet", () => {
  /** Measures past two routers, where the link behind the first one carries 1400 bytes. */
  async function measure(first: Partial<Router>): Promise<Done> {
    const address = (hop: number) => `2001:db8:1::${hop}`;
    const routers = [{ address: address(1), mtu: 1400, ...first }, { address: address(2) }];
    await using _ = await startInternet({ destinations: [{ to: "2001:db8:2::/48", routers }] });
    const engine = openIcmp();
    const request = { target: parseIpv6("2001:db8:2::7"), maxHops: 30, timeoutMs: 1000 };
    const outcome = await engine.mtu(request);
    engine.close();
    if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
    return outcome;
  }

  test("a Packet Too Big that tells the truth is believed", async () => {
    expect(await measure({})).toMatchObject({
      verdict: "narrowed",
      mtu: 1400,
      packetTooBig: { from: "2001:db8:1::1", mtu: 1400 },
      doubtful: [],
    });
  });

  // biome-ignore format: a table
  test.each<[string, Partial<Router>, string, string]>([
    ["less than IPv6 needs", { claimedMtu: 1000 }, "black-hole", "below-1280"],
    ["more than was sent", { claimedMtu: 9000 }, "black-hole", "not-smaller"],
    ["less than passes", { claimedMtu: 1300 }, "narrowed", "disproved"],
    ["for a packet to another address", { rules: [{ change: "destination" }] }, "black-hole", "not-ours"],
  ])("one that claims %s is named and not believed", async (_name, first, verdict, doubt) => {
    const outcome = await measure(first);
    expect(outcome).toMatchObject({ verdict, mtu: 1400, packetTooBig: null });
    const from = "2001:db8:1::1";
    expect(outcome.doubtful).toEqual([expect.objectContaining({ from, doubt })]);
  });

  test("a router that sends one error a minute shows what got through to those behind it", async () => {
    const limited = { rateLimit: { intervalMs: 60_000, burst: 1 }, mtu: 1500 };
    const outcome = await measure(limited);
    expect(outcome).toMatchObject({ verdict: "clear", mtu: 1500 });
    expect(outcome.hops.map(({ mtu }) => mtu)).toEqual([1500, 1500, 1500]);
  });
});

describe("over a path of three stations whose second link carries 1400 bytes", () => {
  /** @param refuse what becomes of a larger packet */
  function start(refuse: Network) {
    const { clock, options } = simulate((packet, sentMs) => {
      const bytes = packet.message.length + 40;
      const hop = Math.min(packet.hopLimit, 3);
      if (bytes > 1500) return "EMSGSIZE";
      if (hop > 1 && bytes > 1400) return refuse(packet, sentMs);
      const message = hop === 3 ? echoReply(packet) : icmpError(packet, 3, 0);
      return [{ delayMs: hop, from: stationAddress(hop), message, hopLimit: 65 - hop }];
    });
    const engine = openIcmp(options);
    return { clock, engine };
  }

  const REQUEST = { target: stationAddress(3), maxHops: 30, timeoutMs: 1000 };
  const ROUTER = stationAddress(1);
  const tooBig =
    (parameter: number, others = {}): Network =>
    (packet) => [
      { delayMs: 1, from: ROUTER, message: icmpError(packet, 2, 0, { parameter, ...others }) },
    ];

  test.each<[string, Network, string, string]>([
    ["less than IPv6 needs", tooBig(1000), "black-hole", "below-1280"],
    ["as much as was sent", tooBig(1500), "black-hole", "not-smaller"],
    ["less than passes", tooBig(1300), "narrowed", "disproved"],
    ["about another packet", tooBig(1400, { destination: SOURCE }), "black-hole", "not-ours"],
  ])(
    "a Packet Too Big that claims %s is named and not believed",
    async (_name, refuse, verdict, doubt) => {
      const { clock, engine } = start(refuse);
      const outcome = (await clock.run(engine.mtu(REQUEST))) as Done;
      expect(outcome).toMatchObject({ verdict, mtu: 1400, packetTooBig: null });
      expect(outcome.hops.map(({ mtu }) => mtu)).toEqual([1500, 1400, 1400]);
      expect(outcome.doubtful).toContainEqual(
        expect.objectContaining({ from: formatIpv6(ROUTER), doubt }),
      );
    },
  );

  test("a router that lies in ever new ways does not fill the answer", async () => {
    let claimed = 0;
    const { clock, engine } = start((...packet) => tooBig(claimed++)(...packet));
    const { doubtful } = (await clock.run(engine.mtu(REQUEST))) as Done;
    expect(claimed).toBeGreaterThan(16);
    expect(doubtful).toHaveLength(16);
  });

  test("what this machine refuses for another reason than its link is a black hole", async () => {
    const { clock, engine } = start(() => "EPERM");
    const outcome = await clock.run(engine.mtu(REQUEST));
    expect(outcome).toMatchObject({ verdict: "black-hole", mtu: 1400 });
  });

  test.each([50, 90])("an answer %p ms after a Packet Too Big wins", async (delayMs) => {
    const { clock, options } = simulate((packet) => {
      if (packet.message.length > 1460) return "EMSGSIZE";
      const hop = Math.min(packet.hopLimit, 3);
      const isLarge = packet.message.length > 1260;
      const lie = { from: ROUTER, message: icmpError(packet, 2, 0, { parameter: 1300 }) };
      const message = hop === 3 ? echoReply(packet) : icmpError(packet, 3, 0);
      const answer = { delayMs: isLarge ? 1 + delayMs : hop, from: stationAddress(hop), message };
      return isLarge && hop > 1 ? [{ ...lie, delayMs: 1 }, answer] : [answer];
    });
    const engine = openIcmp(options);
    const outcome = (await clock.run(engine.mtu(REQUEST))) as Done;
    expect(outcome).toMatchObject({ verdict: "clear", mtu: 1500, packetTooBig: null });
    expect(outcome.doubtful[0]).toMatchObject({ from: formatIpv6(ROUTER), doubt: "disproved" });
  });

  test.each<[string, number, [number, number], string | null, object]>([
    ["all packets", 0, [1, 0], "no-route", { verdict: "at-least", mtu: null }],
    ["larger packets", 1400, [1, 1], "prohibited", { verdict: "black-hole", mtu: 1400 }],
  ])("an error that answers %s is told", async (_, above, [type, code], name, found) => {
    const { clock, options } = simulate((packet) => {
      const bytes = packet.message.length + (packet.probedPort === undefined ? 40 : 48);
      if (bytes > 1500) return "EMSGSIZE";
      const hop = Math.min(packet.hopLimit, 3);
      const from = stationAddress(hop > 1 && bytes > above ? 1 : hop);
      if (hop > 1 && bytes > above)
        return [{ delayMs: 2, from, message: icmpError(packet, type, code) }];
      const message = hop === 3 ? echoReply(packet) : icmpError(packet, 3, 0);
      return [{ delayMs: hop, from, message }];
    });
    const outcome = (await clock.run(openIcmp(options).mtu(REQUEST))) as Done;
    const from = formatIpv6(stationAddress(1));
    const error = { name, type, code, from, fromTarget: false };
    expect(outcome).toMatchObject({ ...found, error });
  });

  test("an error that answers UDP says nothing of echo requests that vanish", async () => {
    const { clock, options } = simulate((packet) => {
      const bytes = packet.message.length + (packet.probedPort === undefined ? 40 : 48);
      if (bytes > 1500) return "EMSGSIZE";
      const hop = Math.min(packet.hopLimit, 3);
      const prohibited = { delayMs: 2, from: ROUTER, message: icmpError(packet, 1, 1) };
      if (packet.probedPort !== undefined) return [prohibited];
      if (hop > 2 && bytes > 1400) return [];
      const message = hop === 3 ? echoReply(packet) : icmpError(packet, 3, 0);
      return [{ delayMs: hop, from: stationAddress(hop), message }];
    });
    const outcome = (await clock.run(openIcmp(options).mtu(REQUEST))) as Done;
    expect(outcome).toMatchObject({ verdict: "black-hole", mtu: 1400, error: null });
  });

  test("an error of a moment is not told if the target answers all", async () => {
    let nth = 0;
    const { clock, options } = simulate((packet) => {
      if (packet.message.length > 1460) return "EMSGSIZE";
      const hop = Math.min(packet.hopLimit, 2);
      const message = hop === 2 ? echoReply(packet) : icmpError(packet, 3, 0);
      const gone = { delayMs: 2, from: ROUTER, message: icmpError(packet, 1, 0) };
      return [hop === 2 && ++nth < 3 ? gone : { delayMs: hop, from: stationAddress(hop), message }];
    });
    const request = { ...REQUEST, target: stationAddress(2) };
    const outcome = (await clock.run(openIcmp(options).mtu(request))) as Done;
    expect(outcome).toMatchObject({ verdict: "clear", mtu: 1500, error: null });
  });

  test("a target that answers nothing does not hide a narrow link, nor cost three seconds", async () => {
    const { clock, socket, options } = simulate((packet) => {
      const bytes = packet.message.length + (packet.probedPort === undefined ? 40 : 48);
      if (bytes > 1500) return "EMSGSIZE";
      if (packet.hopLimit > 3 && bytes > 1400) {
        const message = icmpError(packet, 2, 0, { parameter: 1400 });
        return [{ delayMs: 3, from: stationAddress(3), message }];
      }
      const from = stationAddress(packet.hopLimit);
      const message = icmpError(packet, 3, 0);
      return packet.hopLimit > 5 ? [] : [{ delayMs: packet.hopLimit, from, message }];
    });
    const engine = openIcmp(options);
    const startMs = clock.nowMs();
    const request = { target: stationAddress(6), maxHops: 30, timeoutMs: 4000 };
    const outcome = (await clock.run(engine.mtu(request))) as Done;
    expect(clock.nowMs() - startMs).toBeLessThan(3000);
    expect(outcome).toMatchObject({ verdict: "narrowed", mtu: null, atMost: 1400 });
    expect(outcome).toMatchObject({ lastLarge: 3, firstSmall: 4 });
    const hops = outcome.hops.slice(0, 5);
    expect(hops.map(({ mtu }) => mtu)).toEqual([1500, 1500, 1500, 1400, 1400]);
    expect(hops.map(({ atMost }) => atMost)).toEqual([1500, 1500, 1500, 1400, 1400]);
    const udp = socket.sent.filter(({ probedPort }) => probedPort !== undefined);
    expect(udp.length).toBeGreaterThan(0);
    expect(udp.length).toBeLessThanOrEqual(20);
  });

  test("silent hops before others do not make a wait without an end", async () => {
    const { clock, options } = simulate((packet) => {
      const isRouter = packet.hopLimit > 2 && packet.hopLimit < 6;
      const message = icmpError(packet, 3, 0);
      return isRouter ? [{ delayMs: 3, from: stationAddress(packet.hopLimit), message }] : [];
    });
    const engine = openIcmp(options);
    const request = { target: stationAddress(6), maxHops: 30, timeoutMs: 4000 };
    const outcome = (await clock.run(engine.mtu(request))) as Done;
    expect(outcome.hops.map(({ mtu }) => mtu).slice(0, 3)).toEqual([null, null, 65_575]);
  });

  test("each hop is told as soon as it is measured", async () => {
    const { clock, engine } = start(tooBig(1400));
    const told: MtuHop[] = [];
    const outcome = await clock.run(engine.mtu(REQUEST, { onHop: (hop) => told.push(hop) }));
    if (outcome.kind !== "done") throw new Error(outcome.kind);
    expect(told[0]).toEqual(outcome.hops[0] as MtuHop);
    expect(new Map(told.map((hop) => [hop.hop, hop]))).toEqual(
      new Map(outcome.hops.map((hop) => [hop.hop, hop])),
    );
  });

  test("every packet leaves for the caller, whose share of the gate it uses", async () => {
    const { clock, engine } = start(tooBig(1400));
    const left = spyOn(engine.prober.gate, "mayLeave");
    const caller = { client: "a" };
    await clock.run(engine.mtu({ ...REQUEST, caller }));
    expect(new Set(left.mock.calls.map(([leaving]) => leaving.caller))).toEqual(new Set([caller]));
  });

  test("a measurement that is aborted ends at once", async () => {
    const { clock, engine } = start(() => []);
    const caller = new AbortController();
    const pending = engine.mtu(REQUEST, { signal: caller.signal });
    await clock.advance(100);
    caller.abort();
    expect(await pending).toEqual({ kind: "aborted" });
    expect(engine.outstanding()).toBe(0);
  });
});
