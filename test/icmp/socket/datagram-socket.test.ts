/** Pings through Linux' ICMPv6 datagram socket, beside those through the raw socket. */
import { afterAll, beforeAll, expect } from "bun:test";
import { writeFileSync } from "node:fs";
import { Prober } from "../../../src/icmp/prober/prober.ts";
import { DatagramSocket } from "../../../src/icmp/socket/datagram-socket.ts";
import { errorName } from "../../../src/icmp/wire/icmp-error.ts";
import { decodeMessage, encodeEchoRequest } from "../../../src/icmp/wire/packet.ts";
import type { PingOutcome } from "../../../src/tools/ping/engine.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { type KernelChain, startKernelChain } from "../../lab/kernel-chain.ts";
import { testWith, usersMissing } from "../../lab/lab.ts";
import { nftRule } from "../../lab/nft.ts";
import { type IcmpEngine, openIcmp } from "../engines.ts";

const test = testWith(usersMissing);
const ROUTERS = 2;

let chain: KernelChain;
let raw: IcmpEngine;
let datagram: IcmpEngine;

beforeAll(async () => {
  if (usersMissing !== null) return;
  writeFileSync("/proc/sys/net/ipv4/ping_group_range", "0 65535");
  chain = await startKernelChain({ routers: ROUTERS });
  // A neighbour is given up after the timeout, and long before a ping has listened long enough.
  const retransmitted = "echo 500 > /proc/sys/net/ipv6/neigh/downlink/retrans_time_ms";
  await chain.exec(ROUTERS, ["sh", "-c", retransmitted]);
  raw = openIcmp();
  datagram = openIcmp({ openSocket: () => new DatagramSocket() });
});

afterAll(async () => {
  raw?.close();
  datagram?.close();
  await chain?.stop();
});

/** The outcome without the values that depend on time. */
function withoutTimes(outcome: PingOutcome) {
  if (outcome.kind !== "done") return outcome;
  const bare = (sample: object) => {
    const { rtt, ...others } = sample as { readonly rtt?: number };
    if (rtt !== undefined) expect(rtt).toBeGreaterThan(0);
    return others;
  };
  const { transmitted, received, loss } = outcome.stats;
  const stats = { transmitted, received, loss };
  return { ...outcome, results: outcome.results.map(bare), lost: outcome.lost.map(bare), stats };
}

const targets: [string, () => string, string][] = [
  ["loopback", () => "::1", '"lost":[]'],
  ["a host behind two routers", () => chain.target, '"lost":[]'],
  ["a network without a route", () => "2001:db8:ffff::1", "ENETUNREACH"],
  [
    "a neighbour of the last router that does not exist",
    () => chain.target.replace(/2$/, "77"),
    "address-unreachable",
  ],
];
test.each(targets)(
  "a ping of %s has the same outcome as through the raw socket",
  async (_, target, reason) => {
    const request = { target: parseIpv6(target()), count: 2, intervalMs: 20, timeoutMs: 1000 };
    const [expected, actual] = await Promise.all([raw.ping(request), datagram.ping(request)]);
    expect(withoutTimes(actual)).toEqual(withoutTimes(expected));
    expect(JSON.stringify(actual)).toContain(reason);
  },
);

test("an error that has not been read does not keep the next probe from being sent", async () => {
  const rule = nftRule("forward", "ip6 hoplimit > 0 reject with icmpv6 type admin-prohibited");
  await chain.exec(2, ["nft", "-f", "-"], rule);
  const socket = new DatagramSocket();
  const target = parseIpv6(chain.target);
  const packet = {
    target,
    scopeId: 0,
    source: parseIpv6(chain.source),
    hopLimit: 64,
    flowLabel: 7,
  };
  const sent = [1, 2, 3].map((sequence) => {
    const message = encodeEchoRequest(socket.identifier, sequence, new Uint8Array(8));
    const result = socket.send({ ...packet, message });
    Bun.sleepSync(100);
    return typeof result;
  });
  const reasons = Array.from({ length: 4 }, () => {
    const error = decodeMessage(socket.receive()?.message ?? new Uint8Array());
    return error?.kind === "error" ? errorName(error.type, error.code) : null;
  });
  socket.close();
  await chain.exec(2, ["nft", "flush", "ruleset"]);
  expect(sent).toEqual(["number", "number", "number"]);
  expect(reasons).toEqual(["prohibited", "prohibited", "prohibited", null]);
});

test("it has the kernel's identifier, and reports an error whole", async () => {
  const prober = new Prober({ openSocket: () => new DatagramSocket() });
  const target = parseIpv6(chain.target);
  const route = prober.route(target, 0);
  if (typeof route === "string") throw new Error(route);
  const { signal } = new AbortController();
  const answer = await prober.probe({
    target,
    scopeId: 0,
    ...route,
    hopLimit: 1,
    timeoutMs: 1000,
    signal,
  });
  expect(answer).toMatchObject({ kind: "error", from: parseIpv6(chain.hops[0] ?? "") });
  if (answer.kind === "error")
    expect(errorName(answer.type, answer.code)).toBe("hop-limit-exceeded");
  prober.close();
});

test("a group outside of ping_group_range gets none", () => {
  writeFileSync("/proc/sys/net/ipv4/ping_group_range", "1 0");
  expect(() => new DatagramSocket()).toThrow("socket(AF_INET6, 2, 58): EACCES");
});
