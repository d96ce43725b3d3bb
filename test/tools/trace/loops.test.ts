/** Loops: found where they are, and never where there is none. */
import { describe, expect, test } from "bun:test";
import { formatIpv6 } from "../../../src/addr/format.ts";
import type { Response } from "../../../src/icmp/prober/response.ts";
import { describeTrace, findLoop } from "../../../src/tools/trace/responses.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { openIcmp } from "../../icmp/engines.ts";
import {
  icmpError,
  type Network,
  SOURCE,
  simulate,
  stationAddress,
  TARGET,
} from "../../icmp/fake.ts";
import { randomFrom } from "../../lab/simulation.ts";

const NO_EXTENSIONS = { mpls: [], interfaces: [] };
const answer = (station: number, type = 3, code = 0): Response => ({
  ...{ kind: "error", type, code, parameter: 0, extensions: NO_EXTENSIONS },
  ...{ from: stationAddress(station), scopeId: 0, rttMs: 1, hopLimit: 64 },
});
const REPLY: Response = {
  ...{ kind: "reply", from: TARGET, scopeId: 0, rttMs: 1, hopLimit: 64, isOtherSource: false },
};

/** Responses by hop: a letter for each router, `-` for silence, `T` for the target, `!` for an error of `a`, brackets for several at one hop. */
function responsesOf(text: string): Response[][] {
  const station = (letter: string) => letter.charCodeAt(0) - 0x60;
  const one = (letter: string) =>
    letter === "T" ? REPLY : letter === "!" ? answer(1, 1, 0) : answer(station(letter));
  const hops = text.match(/\[[^\]]*\]|./g) ?? [];
  return hops.map((hop) => (hop === "-" ? [] : [...hop.replaceAll(/[[\]]/g, "")].map(one)));
}

/** The loop of a trace as text, such as `3-4 cd`. */
function loopIn(text: string): string | null {
  const loop = findLoop(responsesOf(text));
  const letter = (ip: string | null) =>
    ip === null ? "-" : String.fromCharCode(0x60 + (parseIpv6(ip).word1 & 0xffff));
  return loop && `${loop.from}-${loop.to} ${loop.addresses.map(letter).join("")}`;
}

describe("a path without an end", () => {
  test.each<[string, string, string | null]>([
    ["two routers", "abcdefefefef", "5-6 ef"],
    ["two routers from the first hop on", "ababab", "1-2 ab"],
    ["three routers", "abcdecdecde", "3-5 cde"],
    ["eight routers", "abcdefghijcdefghijcdef", "3-10 cdefghij"],
    [
      "a router that answers with the address toward where the packet came from",
      "abcxcxcxcx",
      "3-4 cx",
    ],
    ["two routers, one of them silent", "ab-b-b-b-b-", "2-3 b-"],
    ["two routers with limited answers", "abcdc-cd--cdc", "3-4 cd"],
    ["a first turn that the limit hides", "ab--cdcdcd", "5-6 cd"],
    ["silence behind it", "abcdcdcdcd--------", "3-4 cd"],
    ["too few repeats", "abcdcd", null],
    ["three repeats", "abcdcdc", null],
    ["the same router twice, as one that forwards packets without hop limit", "abbcdde", null],
    ["a firewall that answers for all behind it", "abcccccccccccc", null],
    ["a firewall that answers for some behind it", "abc-cc-cccc-c", null],
    ["an address at two places", "abcdebfghi", null],
    ["two addresses at one hop, as by packet", "abcdc[cd]cdc[cd]c", null],
    ["a router answers now and then", "ab---b---b---b---b---b", null],
    ["the path goes on behind the turns", "abcdcdcdcdefgh", null],
    ["nothing", "--------", null],
  ])("%s", (_name, text, loop) => {
    expect(loopIn(text)).toBe(loop);
    const report = describeTrace(responsesOf(text), [], SOURCE, TARGET);
    expect(report.reason === "loop").toBe(loop !== null);
  });

  test.each([
    ["the target replied", "abcdcdcdcdT", "reached"],
    ["the target replied at several hops", "abcTTTTTTTT", "reached"],
    ["an error ends it", "abcdcdcdcd!", "unreachable"],
  ])("no loop where %s", (_name, text, reason) => {
    expect(describeTrace(responsesOf(text), [], SOURCE, TARGET)).toMatchObject({
      reason,
      loop: null,
    });
  });
});

const RUNS = 2000;

/**
 * The answers of an internet to one probe for each hop limit up to 30. It is a chain of routers and, between them,
 * places where each packet takes one of up to four ways of unequal lengths; routers may be silent, limit their
 * answers, or answer twice. In one with a loop all packets take the same way.
 */
function randomInternet(seed: number, hasLoop: boolean): Response[][] {
  const random = randomFrom(seed);
  const upTo = (count: number) => 1 + Math.floor(random() * count);
  let routers = 0;
  const router = () => ++routers;
  const parts = Array.from({ length: upTo(6) }, () =>
    Array.from({ length: random() < 0.5 ? 1 : upTo(4) }, () =>
      Array.from({ length: upTo(4) }, router),
    ),
  );
  const loop = Array.from({ length: 1 + upTo(3) }, router);
  const isSilent = Array.from({ length: routers + 1 }, () => random() < 0.1);
  const isDouble = Array.from({ length: routers + 1 }, () => random() < 0.05);
  const isReached = !hasLoop && random() < 0.3;
  const limited = random() < 0.3 ? 0.3 : 0;
  const fixed = parts.flatMap(([way]) => way as number[]);
  return Array.from({ length: 30 }, (_, index) => {
    const way = hasLoop ? fixed : parts.flatMap((ways) => ways[upTo(ways.length) - 1] as number[]);
    const path = way.flatMap((at) => (isDouble[at] ? [at, at] : [at]));
    for (let turn = 0; hasLoop && turn < 20; turn++) path.push(...loop);
    const at = path[index];
    if (at === undefined) return isReached ? [REPLY] : [];
    return isSilent[at] || random() < limited ? [] : [answer(at)];
  });
}

test(`in ${RUNS} internets without a loop, by packet and of unequal lengths, none is found`, () => {
  const found = Array.from({ length: RUNS }, (_, seed) => findLoop(randomInternet(seed, false)));
  expect(found.filter((loop) => loop !== null)).toEqual([]);
});

test(`in most of ${RUNS} internets with a loop, it is found`, () => {
  let found = 0;
  for (let seed = 0; seed < RUNS; seed++) if (findLoop(randomInternet(seed, true))) found++;
  expect(found / RUNS).toBeGreaterThan(0.8);
});

describe("a trace into a loop", () => {
  const start = (network: Network) => {
    const { clock, socket, options } = simulate(network);
    const engine = openIcmp(options);
    const request = { target: TARGET, maxHops: 30, timeoutMs: 2000, awaitsRouters: true };
    return {
      clock,
      socket,
      startMs: clock.nowMs(),
      trace: () => clock.run(engine.traceroute(request)),
    };
  };
  const stationAt = (hopLimit: number) => (hopLimit < 4 ? hopLimit : 4 + (hopLimit % 2));
  const network: Network = (packet) => [
    {
      delayMs: 1,
      from: stationAddress(stationAt(packet.hopLimit)),
      message: icmpError(packet, 3, 0),
    },
  ];

  test("ends soon, and says who answers in turn", async () => {
    const { clock, socket, startMs, trace } = start(network);
    const outcome = await trace();
    expect(outcome).toMatchObject({
      reason: "loop",
      error: null,
      loop: { from: 4, to: 5, addresses: [4, 5].map((hop) => formatIpv6(stationAddress(hop))) },
    });
    expect(clock.nowMs() - startMs).toBeLessThan(100);
    expect(socket.sent.length).toBeLessThan(25);
  });

  test("of routers that limit their answers too", async () => {
    const tokens = new Map<string, number>();
    const limited: Network = (packet, ms) => {
      const from = formatIpv6(stationAddress(stationAt(packet.hopLimit)));
      const nextMs = Math.max(tokens.get(from) ?? -Infinity, ms - 5000);
      if (nextMs > ms) return [];
      tokens.set(from, nextMs + 1000);
      return network(packet, ms);
    };
    const { clock, startMs, trace } = start(limited);
    expect(await trace()).toMatchObject({ reason: "loop", loop: { from: 4, to: 5 } });
    expect(clock.nowMs() - startMs).toBeLessThan(11_000);
  });

  test("that is repaired meanwhile is reached", async () => {
    let asked = 0;
    const repaired: Network = (packet, ms) => {
      if (packet.hopLimit < 6 || ++asked > 2) return network(packet, ms);
      return [];
    };
    const back: Network = (packet, ms) => {
      if (ms < 1 || packet.hopLimit < 6) return repaired(packet, ms);
      const message = packet.message.slice();
      message[0] = 129;
      return [{ delayMs: 1, from: TARGET, message }];
    };
    const { trace } = start(back);
    expect(await trace()).toMatchObject({ reason: "reached", loop: null });
  });
});
