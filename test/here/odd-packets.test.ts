/** Packets on a link that no router would send, and more routers than a link has. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeSync, readSync, writeFileSync, writeSync } from "node:fs";
import { formatIpv6 } from "../../src/addr/format.ts";
import { readMachine } from "../../src/here/machine.ts";
import { type Observation, observe } from "../../src/here/observe.ts";
import { attempt } from "../../src/util/errors.ts";
import { hex } from "../icmp/hex.ts";
import { addressBytes } from "../lab/address.ts";
import { describeWith, labMissing, tunMissing } from "../lab/lab.ts";
import { formatIcmp, formatPacket, withHopLimit } from "../lab/packet.ts";
import { awaitAddress, run } from "../lab/run.ts";
import { openTun } from "../lab/tun.ts";

const DEVICE = "odd0";
const HEAD = "86000000 40000708 00000000 00000000";
const ROUTER_SOLICITATION = 133;
const ROUTERS = 100;

const from = (source: string, message: string) => {
  const about = { source: addressBytes(source), destination: addressBytes("ff02::1") };
  return formatIcmp({ ...about, hopLimit: 255 }, hex(message));
};
const changed = (bytes: Uint8Array, at: number, value: number) => bytes.with(at, value);

/** Packets by who sends them, and whether it is a router. */
const PACKETS: readonly (readonly [
  name: string,
  source: string,
  packet: Uint8Array,
  isOne: boolean,
])[] = [
  ["a router", "fe80::a1", from("fe80::a1", HEAD), true],
  [
    "bytes behind its end, as a link may add",
    "fe80::a2",
    Uint8Array.of(...from("fe80::a2", HEAD), 1, 2, 3),
    true,
  ],
  ["a wrong checksum", "fe80::a3", changed(from("fe80::a3", HEAD), 42, 0), false],
  [
    "another byte than that of its checksum",
    "fe80::a4",
    changed(from("fe80::a4", HEAD), 47, 9),
    false,
  ],
  ["the hop limit 254", "fe80::a5", withHopLimit(from("fe80::a5", HEAD), 254), false],
  ["the code 1", "fe80::a6", from("fe80::a6", HEAD.replace("8600", "8601")), false],
  ["15 bytes", "fe80::a7", from("fe80::a7", HEAD.slice(0, -2)), false],
  ["an option of the length 0", "fe80::a8", from("fe80::a8", `${HEAD} 0500 0000 000005dc`), false],
  ["a global source", "2001:db8::a9", from("2001:db8::a9", HEAD), false],
  [
    "a fragment, RFC 6980",
    "fe80::aa",
    formatPacket({
      ...{ trafficClass: 0, flowLabel: 0, nextHeader: 44, hopLimit: 255 },
      ...{ source: addressBytes("fe80::aa"), destination: addressBytes("ff02::1") },
      payload: Uint8Array.of(...hex("3a00 0000 00000001"), ...from("fe80::aa", HEAD).subarray(40)),
    }),
    false,
  ],
  ["4 bytes", "fe80::ab", from("fe80::ab", "86000000"), false],
];

describeWith(labMissing, tunMissing)("what comes over a link", () => {
  let tun = -1;
  let seen: Observation;

  /** The next packet from the machine; undefined if there is none yet, which is an error of a descriptor that does not block. */
  const next = () =>
    attempt(() => {
      const packet = new Uint8Array(2048);
      return packet.subarray(0, readSync(tun, packet));
    });

  /** What is heard when these packets answer a solicitation. */
  async function look(packets: readonly Uint8Array[]): Promise<Observation> {
    const links = readMachine().interfaces.filter(({ name }) => name === DEVICE);
    while (next());
    const looking = observe(links, () => [], Promise.resolve(), new AbortController().signal);
    while (next()?.[40] !== ROUTER_SOLICITATION) await Bun.sleep(1);
    for (const packet of packets) writeSync(tun, packet);
    return await looking;
  }

  beforeAll(async () => {
    tun = openTun(DEVICE);
    writeFileSync(`/proc/sys/net/ipv6/conf/${DEVICE}/accept_ra`, "0");
    const up = `ip link set ${DEVICE} up && ip addr add fe80::5/64 dev ${DEVICE}`;
    await run(["sh", "-c", `${up} && ${awaitAddress("fe80::5")}`]);
    seen = await look(PACKETS.map(([, , packet]) => packet));
  });
  afterAll(() => {
    if (tun >= 0) closeSync(tun);
  });

  test.each(PACKETS)("%s", (_name, source, _packet, isOne) => {
    const routers = seen.heard.flatMap((link) => link.routers.map(({ ip }) => formatIpv6(ip)));
    expect(routers.includes(source)).toBe(isOne);
  });

  test("none is one that a firewall drops", () => {
    expect(seen.heard.map(({ drops }) => drops)).toEqual([[]]);
  });

  test(`of ${ROUTERS} routers 32 are kept, the first ones`, async () => {
    const sources = Array.from({ length: ROUTERS }, (_, at) => `fe80::b:${(at + 1).toString(16)}`);
    const { heard } = await look(sources.map((source) => from(source, HEAD)));
    const routers = heard.flatMap((link) => link.routers.map(({ ip }) => formatIpv6(ip)));
    expect(routers).toEqual(sources.slice(0, 32));
  });

  test("what comes while IPv6 is not up on the link is none that a firewall drops", async () => {
    writeFileSync(`/proc/sys/net/ipv6/conf/${DEVICE}/disable_ipv6`, "1");
    const links = readMachine().interfaces.filter(({ name }) => name === DEVICE);
    const looking = observe(links, () => [], Promise.resolve(), new AbortController().signal);
    await Bun.sleep(1);
    writeSync(tun, from("fe80::a1", HEAD));
    const { heard } = await looking;
    expect(heard.map(({ routers, drops }) => [routers.length, drops])).toEqual([[1, []]]);
  });
});
