import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeSync, writeSync } from "node:fs";
import { formatIpv6 } from "../../src/addr/format.ts";
import { formatPrefix } from "../../src/addr/prefix.ts";
import {
  type Interface,
  type OwnAddress,
  parseAddress,
  parseLink,
  parseRoute,
  type Route,
  splitMessages,
} from "../../src/here/kernel.ts";
import { type Machine, readMachine } from "../../src/here/machine.ts";
import { hex } from "../icmp/hex.ts";
import { addressBytes } from "../lab/address.ts";
import { describeWith, labMissing, tunMissing } from "../lab/lab.ts";
import { insideNamespace } from "../lab/namespace.ts";
import { formatIcmp } from "../lab/packet.ts";
import { run } from "../lab/run.ts";
import { openTun } from "../lab/tun.ts";
import { RECORDED } from "./recorded.ts";

const secondsText = (seconds: number | null) => (seconds === null ? "for ever" : `${seconds} s`);

const linkText = ({ index, name, hardware, settings, ...flags }: Interface) =>
  [index, name, ...Object.keys(flags).filter((key) => flags[key as keyof typeof flags])].join(" ");

const addressText = (row: OwnAddress) =>
  [
    `${row.index} ${formatIpv6(row.ip)}/${row.prefixLength} ${row.isGlobal ? "global" : "local"}`,
    `${row.state} ${row.origin}, preferred ${secondsText(row.preferredSeconds)}`,
    `valid ${secondsText(row.validSeconds)}`,
  ].join(", ");

const routeText = ({ prefix, hops, metric, table, origin, kind, expiresSeconds }: Route) =>
  [
    `${kind} ${formatPrefix(prefix)}`,
    ...hops.map(({ index, via }) => (via ? `via ${formatIpv6(via)} on ${index}` : `on ${index}`)),
    `metric ${metric}, table ${table}, ${origin}, ${secondsText(expiresSeconds)}`,
  ].join(", ");

/** What a recorded message says, in one line. */
function recordedText(name: keyof typeof RECORDED): string {
  const messages = splitMessages(hex(RECORDED[name]));
  expect(messages).toHaveLength(1);
  return messages
    .flatMap((message) => [
      ...[parseLink(message)].flatMap((row) => (row ? linkText(row) : [])),
      ...[parseAddress(message)].flatMap((row) => (row ? addressText(row) : [])),
      ...[parseRoute(message)].flatMap((row) => (row ? routeText(row) : [])),
    ])
    .join(" and ");
}

const ROWS: Readonly<Record<keyof typeof RECORDED, string>> = {
  "link: loopback": "1 lo isUp hasCarrier isLoopback",
  "link: a bridge without a carrier": "6 br0 isUp",
  "link: a port of a bridge": "8 port0 isUp isPort",
  "link: a link that is set down": "10 down0",
  "link: a tunnel": "13 tun0 isUp hasCarrier isPointToPoint",
  "link: a name that is not ASCII": "12 ét@0 isUp hasCarrier",
  "link: a name with a dot": "5 eth0.7 isUp",
  "address: the loopback address":
    "1 ::1/128 local, preferred kernel, preferred for ever, valid for ever",
  "address: a static one":
    "3 2001:db8:1::5/64 global, preferred static, preferred for ever, valid for ever",
  "address: a static one that ends":
    "3 2001:db8:1::6/64 global, preferred static, preferred 299 s, valid 599 s",
  "address: one of DHCPv6":
    "3 2001:db8:1::7/128 global, preferred dhcp, preferred 1799 s, valid 3599 s",
  "address: a deprecated one":
    "3 2001:db8:1::8/64 global, deprecated static, preferred 0 s, valid 3599 s",
  "address: a static one of 128 bits":
    "3 2001:db8:1::9/128 global, preferred static, preferred for ever, valid for ever",
  "address: one that is tentative":
    "3 2001:db8:1::e/64 global, tentative static, preferred for ever, valid for ever",
  "address: one that failed duplicate address detection":
    "3 2001:db8:1::d/64 global, duplicate static, preferred for ever, valid for ever",
  "address: the own end of a point-to-point link":
    "12 2001:db8:9::1/128 global, preferred static, preferred for ever, valid for ever",
  "address: a temporary one":
    "13 2001:db8:2:0:8759:1e27:529c:6d34/64 global, preferred temporary, preferred 1799 s, valid 3599 s",
  "address: one of SLAAC":
    "13 2001:db8:2:0:abbd:3fb0:587b:e7f0/64 global, preferred slaac, preferred 1799 s, valid 3599 s",
  "address: a link-local one of the kernel":
    "3 fe80::a0f7:baff:feb1:c7f4/64 local, preferred kernel, preferred for ever, valid for ever",
  "address: a link-local one that was set by hand":
    "13 fe80::5/64 local, preferred kernel, preferred for ever, valid for ever",
  "route: one of an address of the kernel":
    "unicast 2001:db8:1::/64, on 2, metric 256, table 254, kernel, for ever",
  "route: a static one":
    "unicast 2001:db8:a::/48, via fe80::1 on 3, metric 1024, table 254, static, for ever",
  "route: one of two next hops":
    "unicast 2001:db8:b::/48, via fe80::1 on 3, via fe80::2 on 13, metric 50, table 254, static, for ever",
  "route: an unreachable one":
    "unreachable 2001:db8:c::/48, on 1, metric 1024, table 254, static, for ever",
  "route: a blackhole": "blackhole 2001:db8:d::/48, on 1, metric 1024, table 254, static, for ever",
  "route: a prohibited one":
    "prohibit 2001:db8:e::/48, on 1, metric 1024, table 254, static, for ever",
  "route: one that expires, of another protocol":
    "unicast 2001:db8:f::/48, via fe80::1 on 3, metric 1024, table 254, other, 599 s",
  "route: one of a next hop object":
    "unicast 2001:db8:10::/48, via fe80::1 on 3, metric 1024, table 254, static, for ever",
  "route: one of a group of next hop objects":
    "unicast 2001:db8:11::/48, via fe80::1 on 3, via fe80::2 on 13, metric 1024, table 254, static, for ever",
  "route: one with a source and an MTU":
    "unicast 2001:db8:12::/48, via 2001:db8:1::77 on 3, metric 1024, table 254, static, for ever",
  "route: one without a gateway": "unicast 2000::/3, on 13, metric 77, table 254, static, for ever",
  "route: one of DHCPv6": "unicast 2001:db8:1::7/128, on 3, metric 256, table 254, kernel, 3598 s",
  "route: a default route of another table":
    "unicast ::/0, via fe80::9 on 3, metric 1024, table 100, static, for ever",
  "route: a default route of an advertisement":
    "unicast ::/0, via fe80::1 on 13, metric 1024, table 254, ra, 1798 s",
  "route: the own address": "other 2001:db8:1::5/128, on 3, metric 0, table 255, kernel, for ever",
  "route: multicast": "other ff00::/8, on 2, metric 256, table 255, kernel, for ever",
};

test.each(Object.entries(ROWS) as [keyof typeof RECORDED, string][])("%s", (name, text) => {
  expect(recordedText(name)).toBe(text);
});

test("a message that says that the kernel refuses", () => {
  // NLMSG_ERROR with -EPERM, and the header of the request that it is about.
  const refusal =
    "24000000 0200 0000 00000000 00000000 ffffffff 14000000 1600 0103 00000000 00000000";
  expect(splitMessages(hex(refusal)).map(parseRoute)).toEqual([null]);
});

const NAMESPACE = "here-kernel";

/** A shell script in the namespace. */
const shell = (script: string) => run(["ip", "netns", "exec", NAMESPACE, "sh", "-ec", script]);
const ip = async <Value>(...command: readonly string[]): Promise<readonly Value[]> =>
  JSON.parse(await run(["ip", "-n", NAMESPACE, "-N", "-j", "-6", ...command]));

/** A row as both sides say it, with its lifetimes in seconds. */
interface Row {
  readonly text: string;
  readonly seconds: readonly (number | null)[];
}

interface IpAddress {
  readonly local: string;
  readonly prefixlen: number;
  readonly scope: string;
  readonly dadfailed?: true;
  readonly tentative?: true;
  readonly deprecated?: true;
  readonly temporary?: true;
  readonly mngtmpaddr?: true;
  readonly dynamic?: true;
  readonly valid_life_time: number;
  readonly preferred_life_time: number;
}

/** How ip(8) says for ever. */
const FOR_EVER = 0xffff_ffff;
const orNull = (seconds: number) => (seconds === FOR_EVER ? null : seconds);

function ipAddressRow(index: number, row: IpAddress): Row {
  const isGlobal = row.scope === "0";
  const state = row.dadfailed
    ? "duplicate"
    : row.tentative
      ? "tentative"
      : row.deprecated
        ? "deprecated"
        : "preferred";
  const byHand = row.dynamic && row.prefixlen === 128 ? "dhcp" : "static";
  const origin = row.temporary
    ? "temporary"
    : row.mngtmpaddr
      ? "slaac"
      : isGlobal
        ? byHand
        : "kernel";
  return {
    text: `${index} ${row.local}/${row.prefixlen} ${isGlobal} ${state} ${origin}`,
    seconds: [row.preferred_life_time, row.valid_life_time].map(orNull),
  };
}

const ourAddressRow = (row: OwnAddress): Row => ({
  text: `${row.index} ${formatIpv6(row.ip)}/${row.prefixLength} ${row.isGlobal} ${row.state} ${row.origin}`,
  seconds: [row.preferredSeconds, row.validSeconds],
});

interface IpHop {
  readonly dev: string;
  readonly gateway?: string;
}

interface IpRoute extends IpHop {
  readonly dst: string;
  readonly type?: string;
  readonly table?: string;
  readonly protocol?: string;
  readonly metric: number;
  readonly expires?: number;
  readonly nexthops?: readonly IpHop[];
}

const ORIGINS: Readonly<Record<string, string>> = {
  2: "kernel",
  3: "static",
  4: "static",
  9: "ra",
};
const KINDS: Readonly<Record<string, string>> = { 6: "blackhole", 7: "unreachable", 8: "prohibit" };

function ipRouteRow(row: IpRoute): Row {
  const { dst, type, table = "254", protocol = "3", metric, nexthops = [row] } = row;
  const prefix = dst === "default" ? "::/0" : dst.includes("/") ? dst : `${dst}/128`;
  const hops = nexthops.map(({ gateway = null, dev }) => `${gateway} ${dev}`);
  const kind = type === undefined ? "unicast" : KINDS[type];
  return {
    text: `${kind} ${prefix} ${hops} ${metric} ${table} ${ORIGINS[protocol] ?? "other"}`,
    seconds: [row.expires ?? null],
  };
}

function ourRouteRow({ interfaces }: Machine, { prefix, hops, ...row }: Route): Row {
  const nameOf = (at: number) => interfaces.find(({ index }) => index === at)?.name;
  const hopTexts = hops.map(({ via, index }) => `${via && formatIpv6(via)} ${nameOf(index)}`);
  return {
    text: `${row.kind} ${formatPrefix(prefix)} ${hopTexts} ${row.metric} ${row.table} ${row.origin}`,
    seconds: [row.expiresSeconds],
  };
}

interface IpLink {
  readonly ifindex: number;
  readonly ifname: string;
  readonly flags: readonly string[];
  readonly master?: string;
}

function ipLinkText({ ifindex, ifname, flags, master }: IpLink): string {
  const has = (...names: readonly string[]) => names.some((name) => flags.includes(name));
  const all = {
    isUp: has("UP"),
    hasCarrier: has("LOWER_UP"),
    isLoopback: has("LOOPBACK"),
    isPointToPoint: has("POINTOPOINT", "NOARP"),
    isPort: master !== undefined,
  };
  const names = Object.keys(all).filter((key) => all[key as keyof typeof all]);
  return [ifindex, ifname, ...names].join(" ");
}

/** True if the lifetimes of our rows lie between those that ip(8) shows earlier and later, and the rest is equal. */
function expectBetween(ours: readonly Row[], earlier: readonly Row[], later: readonly Row[]): void {
  const texts = (rows: readonly Row[]) => rows.map(({ text }) => text).toSorted();
  expect(texts(ours)).toEqual(texts(earlier));
  for (const { text, seconds } of ours) {
    const [most, least] = [earlier, later].map((rows) => rows.find((row) => row.text === text));
    for (const [at, value] of seconds.entries()) {
      const [high = null, low = null] = [most?.seconds[at], least?.seconds[at]];
      // One side rounds and the other does not.
      const isBetween =
        value === null || high === null || low === null
          ? value === high
          : value <= high + 1 && value >= low - 1;
      expect([text, value, isBetween]).toEqual([text, value, true]);
    }
  }
}

/** An advertisement with a prefix for addresses, RFC 4861 sections 4.2 and 4.6.2. */
const ADVERTISEMENT = `86000000 40080708 00000000 00000000
  030440c0 00000e10 00000708 00000000 20010db8000200000000000000000000`;

describeWith(labMissing, tunMissing)("the standard tool beside ours", () => {
  let tun = -1;
  beforeAll(async () => {
    await run(["ip", "netns", "add", NAMESPACE]);
    tun = insideNamespace(NAMESPACE, () => openTun("tun0"));
    await shell(
      [
        "ip link set lo up",
        "ip link add eth0 type veth peer name peer0 && ip link add eth0.7 type veth peer name peer7",
        "ip link add ét@0 type veth peer name other0 && ip link add br0 type bridge",
        "ip link add port0 type veth peer name port1 && ip link set port0 master br0",
        "echo 2 > /proc/sys/net/ipv6/conf/tun0/use_tempaddr",
        "echo 2 > /proc/sys/net/ipv6/conf/tun0/accept_ra",
        "for each in eth0 peer0 eth0.7 ét@0 other0 br0 port0 tun0; do ip link set $each up; done",
        "ip addr add 2001:db8:1::d/64 dev peer0 nodad && ip addr add 2001:db8:1::d/64 dev eth0",
        "until ip -6 -o addr show dev eth0 dadfailed | grep -q .; do sleep 0.05; done",
        // The others have ended their duplicate address detection, so that none changes while it is read.
        "for each in eth0 peer0 eth0.7 ét@0 other0 tun0; do",
        "  until ! ip -6 -o addr show dev $each tentative | grep -qv dadfailed; do sleep 0.05; done",
        "done",
        // Duplicate address detection that takes very long.
        "echo 100000 > /proc/sys/net/ipv6/conf/eth0/dad_transmits",
        "ip addr add 2001:db8:1::e/64 dev eth0",
      ].join("\n"),
    );
    await run(
      ["ip", "-n", NAMESPACE, "-batch", "-"],
      [
        "addr add 2001:db8:1::5/64 dev eth0 nodad",
        "addr add 2001:db8:1::6/64 dev eth0 nodad valid_lft 6000 preferred_lft 3000",
        "addr add 2001:db8:1::7/128 dev eth0 nodad valid_lft 3600 preferred_lft 1800",
        "addr add 2001:db8:1::8/64 dev eth0 nodad valid_lft 3600 preferred_lft 0",
        "addr add 2001:db8:9::1 peer 2001:db8:9::2/128 dev ét@0 nodad",
        "addr add fd00::5/64 dev eth0 nodad",
      ].join("\n"),
    );
    const about = { source: addressBytes("fe80::1"), destination: addressBytes("ff02::1") };
    writeSync(tun, formatIcmp({ ...about, hopLimit: 255 }, hex(ADVERTISEMENT)));
    await shell(
      [
        "until ip -6 -o addr show dev tun0 temporary | grep -q .; do sleep 0.05; done",
        "ip -6 route add 2001:db8:b::/48 metric 50 nexthop via fe80::1 dev eth0 nexthop via fe80::2 dev tun0",
        "ip -6 route add unreachable 2001:db8:c::/48 && ip -6 route add blackhole 2001:db8:d::/48",
        "ip -6 route add default via fe80::9 dev eth0 table 100 expires 5000 proto 42",
        "ip -6 route add prohibit default metric 4000 && ip -6 route add 2000::/3 dev tun0",
        "ip -6 nexthop add id 1 via fe80::1 dev eth0 && ip -6 nexthop add id 2 via fe80::2 dev tun0",
        "ip nexthop add id 3 group 1/2 && ip -6 route add 2001:db8:11::/48 nhid 3",
      ].join("\n"),
    );
  });
  afterAll(async () => {
    if (tun >= 0) closeSync(tun);
    await run(["ip", "netns", "del", NAMESPACE]);
  });

  const read = () => insideNamespace(NAMESPACE, readMachine);

  test("links", async () => {
    const links = await ip<IpLink>("link");
    const ours = read().interfaces.map(linkText);
    expect(ours).toEqual(links.map(ipLinkText));
    expect(ours).toContainEqual(expect.stringMatching(/^\d+ ét@0 isUp hasCarrier$/));
  });

  test("settings", async () => {
    const text = await shell("cd /proc/sys/net/ipv6/conf && grep -rs . . || true");
    const files = new Map(
      text.split("\n").map((line) => line.slice(2).split(":") as [string, string]),
    );
    const { all, interfaces } = read();
    const ours = [{ name: "all", settings: all }, ...interfaces].flatMap(({ name, settings }) =>
      Object.entries(settings).map(([key, value]) => [`${name}/${key}`, value] as const),
    );
    expect(ours).toEqual(ours.map(([file]) => [file, Number(files.get(file))]));
    expect(ours).toContainEqual(["tun0/accept_ra", 2]);
    expect(interfaces.map(({ settings }) => Object.keys(settings).length)).toEqual(
      interfaces.map(() => 8),
    );
  });

  test("addresses", async () => {
    const all = async () => {
      const links = await ip<{ ifindex: number; addr_info: readonly IpAddress[] }>("addr");
      return links.flatMap(({ ifindex, addr_info }) =>
        addr_info.map((row) => ipAddressRow(ifindex, row)),
      );
    };
    const earlier = await all();
    const { addresses } = read();
    expectBetween(addresses.map(ourAddressRow), earlier, await all());
    const states = new Set(addresses.map(({ state }) => state));
    expect([...states].toSorted()).toEqual(["deprecated", "duplicate", "preferred", "tentative"]);
    const origins = new Set(addresses.map(({ origin }) => origin));
    expect([...origins].toSorted()).toEqual(["dhcp", "kernel", "slaac", "static", "temporary"]);
  });

  test("routes", async () => {
    const all = async () => {
      const routes = await ip<IpRoute>("route", "show", "table", "all");
      return routes.filter(({ table }) => table !== "255").map(ipRouteRow);
    };
    const earlier = await all();
    const machine = read();
    const ours = machine.routes.map((route) => ourRouteRow(machine, route));
    expectBetween(ours, earlier, await all());
    expect(new Set(machine.routes.map(({ origin }) => origin)).size).toBe(4);
  });

  test("the default route is among the first 4,096 of many", async () => {
    const many = Array.from(
      { length: 5000 },
      (_, at) => `route add 2001:db8:f:${at.toString(16)}::/64 dev tun0`,
    );
    await run(["ip", "-n", NAMESPACE, "-6", "-batch", "-"], many.join("\n"));
    const { routes } = read();
    expect(routes).toHaveLength(4096);
    expect(routes.filter(({ prefix }) => prefix.length === 0)).toHaveLength(3);
  });
});
