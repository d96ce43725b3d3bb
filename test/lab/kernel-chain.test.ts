import { expect } from "bun:test";
import { addressBytes } from "./address.ts";
import { LINUX_RATE_LIMIT } from "./internet-description.ts";
import { type KernelChain, startKernelChain } from "./kernel-chain.ts";
import { labMissing, programMissing, testWith } from "./lab.ts";
import {
  DESTINATION_UNREACHABLE,
  ECHO_REPLY,
  ECHO_REQUEST,
  formatEcho,
  icmpChecksum,
  PACKET_TOO_BIG,
  parseEcho,
  parsePacket,
  TIME_EXCEEDED,
} from "./packet.ts";
import { RawSocket } from "./raw-socket.ts";
import { run } from "./run.ts";
import { trace } from "./system-tools.ts";

/** Enough for what comes, on a busy machine, and for what must not come. */
const WAIT_MS = 20_000;
const NOTHING_MORE_MS = 300;
/** The longest tick of a kernel, by which its count of the time may differ. */
const TICK_MS = 10;

const chainTest = testWith(labMissing);
const traceTest = testWith(labMissing, programMissing("traceroute"));
const filterTest = testWith(labMissing, programMissing("traceroute"), programMissing("nft"));

/** The answer in time to an echo request with `dataBytes` bytes of data: `1/0 2001:db8::1`, or `nothing`. */
async function answerTo(chain: KernelChain, dataBytes: number, withinMs = WAIT_MS) {
  using socket = new RawSocket();
  const data = new Uint8Array(dataBytes);
  const message = formatEcho({ type: ECHO_REQUEST, identifier: 1, sequence: 1, data });
  socket.send({ destination: chain.target, message });
  const [answer] = await socket.receive(
    [DESTINATION_UNREACHABLE, PACKET_TOO_BIG, TIME_EXCEEDED, ECHO_REPLY],
    withinMs,
    1,
  );
  return answer ? `${answer.message[0]}/${answer.message[1]} ${answer.from}` : "nothing";
}

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

chainTest("what the kernel sends is what our own reading expects of a packet", async () => {
  await using chain = await startKernelChain({ routers: 2 });
  using socket = new RawSocket();
  const data = Uint8Array.from({ length: 33 }, (_, index) => index);
  const message = formatEcho({ type: ECHO_REQUEST, identifier: 5, sequence: 6, data });
  for (const hopLimit of [2, 3]) {
    socket.send({ destination: chain.target, hopLimit, flowLabel: 0xabcde, message });
  }
  const received = await socket.receive([TIME_EXCEEDED, ECHO_REPLY], WAIT_MS, 2);
  const ours = addressBytes(chain.source);
  for (const { from, message } of received) {
    expect(icmpChecksum(addressBytes(from), ours, message)).toBe(0);
  }
  const error = received.find(({ from }) => from === chain.hops[1]);
  const quoted = error && parsePacket(error.message.subarray(8));
  expect(quoted).toMatchObject({
    flowLabel: 0xabcde,
    hopLimit: 1,
    source: ours,
    destination: addressBytes(chain.target),
  });
  const expected = { identifier: 5, sequence: 6, data };
  expect(quoted && parseEcho(quoted.payload)).toMatchObject({ ...expected, type: ECHO_REQUEST });
  expect(quoted && icmpChecksum(quoted.source, quoted.destination, quoted.payload)).toBe(0);
  const reply = received.find(({ from }) => from === chain.target);
  expect(reply && parseEcho(reply.message)).toMatchObject({ ...expected, type: ECHO_REPLY });
});

chainTest("a router's default rate limit is what the simulation takes for Linux's", async () => {
  await using chain = await startKernelChain({ routers: 2 });
  using socket = new RawSocket();
  const message = formatEcho({
    type: ECHO_REQUEST,
    identifier: 1,
    sequence: 1,
    data: new Uint8Array(8),
  });
  const { burst, intervalMs } = LINUX_RATE_LIMIT;
  const startMs = performance.now();
  for (let probe = 0; probe < 40; probe++) {
    socket.send({ destination: chain.target, hopLimit: 1, message });
  }
  const errors = await socket.receive([TIME_EXCEEDED], WAIT_MS, burst);
  const tookMs = performance.now() - startMs;
  errors.push(...(await socket.receive([TIME_EXCEEDED], NOTHING_MORE_MS)));
  expect(errors.length).toBeGreaterThanOrEqual(burst);
  expect(errors.length).toBeLessThanOrEqual(burst + Math.floor((tookMs + TICK_MS) / intervalMs));
});

/** An nft rule set that refuses echo requests on their way through a node. */
function rejectWith(code: string): string {
  return `table ip6 test {
    chain forward {
      type filter hook forward priority 0
      icmpv6 type echo-request reject with icmpv6 type ${code}
    }
  }`;
}

filterTest.each([
  ["no-route", 0],
  ["admin-prohibited", 1],
  ["addr-unreachable", 3],
  ["port-unreachable", 4],
  ["policy-fail", 5],
  ["reject-route", 6],
])("a router's filter rejects with %s: code %d", async (name, code) => {
  await using chain = await startKernelChain({ routers: 2 });
  await chain.exec(2, ["nft", "-f", "-"], rejectWith(name));
  expect(await answerTo(chain, 8)).toBe(`1/${code} ${chain.hops[1]}`);
});

chainTest.each([
  ["unreachable", "1/0"],
  ["prohibit", "1/1"],
  ["blackhole", "nothing"],
])("a route of type %s: %s", async (type, expected) => {
  await using chain = await startKernelChain({ routers: 2 });
  await chain.exec(2, ["ip", "-6", "route", "add", type, chain.target]);
  const isSilent = expected === "nothing";
  const answer = await answerTo(chain, 8, isSilent ? NOTHING_MORE_MS : WAIT_MS);
  expect(answer).toBe(isSilent ? expected : `${expected} ${chain.hops[1]}`);
});

chainTest("a link of 1280 bytes on the way", async () => {
  await using chain = await startKernelChain({ routers: 2 });
  await chain.exec(2, ["ip", "link", "set", "dev", "downlink", "mtu", "1280"]);
  expect(await answerTo(chain, 1300)).toBe(`2/0 ${chain.hops[1]}`);
});

chainTest("stopping ends what runs inside and leaves nothing behind", async () => {
  const before = await leftovers();
  const chain = await startKernelChain({ routers: 2 });
  const child = Bun.spawn(chain.inside(2, ["sh", "-c", "echo inside; exec sleep 600"]));
  await child.stdout.getReader().read();
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
