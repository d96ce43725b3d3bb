/** The verdict of each tool: every code, singular and plural, and no more than is known. */
import { describe, expect, test } from "bun:test";
import { dns } from "../../src/tools/dns/endpoint.ts";
import type { DnsResult } from "../../src/tools/dns/result.ts";
import { dnsVerdict } from "../../src/tools/dns/verdict.ts";
import { mtr } from "../../src/tools/mtr/endpoint.ts";
import type { LossBegin } from "../../src/tools/mtr/loss-cause.ts";
import type { MtrResult } from "../../src/tools/mtr/result.ts";
import { mtrVerdict } from "../../src/tools/mtr/verdict.ts";
import { mtu } from "../../src/tools/mtu/endpoint.ts";
import type { MtuResult, MtuVerdict } from "../../src/tools/mtu/result.ts";
import { mtuText } from "../../src/tools/mtu/verdict.ts";
import { ping } from "../../src/tools/ping/endpoint.ts";
import type { PingResult } from "../../src/tools/ping/result.ts";
import { pingVerdict } from "../../src/tools/ping/verdict.ts";
import { traceroute } from "../../src/tools/trace/endpoint.ts";
import type { TraceResult } from "../../src/tools/trace/result.ts";
import { traceVerdict } from "../../src/tools/trace/verdict.ts";

const ROUTER = "2001:db8:1::1";
const OTHER = "2001:db8:2::1";

describe("of a ping", () => {
  type Lost = PingResult["details"]["lost"];
  const lost = (...samples: object[]) =>
    samples.map((sample, at) => ({ seq: at + 1, ...sample })) as object as Lost;
  const late = { reason: "timeout", rtt: 2100.5 };
  const timeout = { reason: "timeout" };
  const unknown = { reason: "unknown" };
  const unsent = { reason: "not-sent", errno: "EPERM" };
  const error = { reason: "no-route", type: 1, code: 0, from: ROUTER };
  const prohibited = { reason: "prohibited", type: 1, code: 1, from: OTHER };
  // biome-ignore format: a table
  const rows: [received: number, Lost, code: string, text: string][] = [
    [1, [], "no-loss", "The target replied to the request."],
    [4, [], "no-loss", "The target replied to all 4 requests."],
    [3, lost(timeout), "loss", "The target did not reply to 1 of 4 requests (25 %)."],
    [2999, lost(timeout), "loss", "The target did not reply to 1 of 3000 requests (<0.1 %)."],
    [2, lost(late), "loss", "The target did not reply to 1 of 3 requests (33.3 %). 1 answer came after the timeout."],
    [3, lost(unsent), "no-loss", "The target replied to all 3 requests. This machine could not send 1 of 4 requests (EPERM)."],
    [3, lost(unknown), "no-loss", "The target replied to 3 of 4 requests. What became of 1 of 4 requests is not known, because the kernel of this machine dropped packets."],
    [1, lost(timeout, unknown), "loss", "The target did not reply to 1 of 3 requests. What became of 1 of 3 requests is not known, because the kernel of this machine dropped packets."],
    [1, lost(error), "loss", "The target did not reply to 1 of 2 requests (50 %). 2001:db8:1::1 answered 1 of 2 requests with no route."],
    [0, lost(timeout), "no-reply", "The target did not reply to the request."],
    [0, lost(timeout, late), "no-reply", "The target replied to none of 2 requests. 1 answer came after the timeout."],
    [0, lost(error), "unreachable", "The target did not reply to the request. 2001:db8:1::1 answered the request with no route."],
    [0, lost(error, error), "unreachable", "The target replied to none of 2 requests. 2001:db8:1::1 answered all 2 requests with no route."],
    [0, lost(error, prohibited, timeout), "unreachable", "The target replied to none of 3 requests. 2001:db8:1::1 answered 1 of 3 requests with no route. Other ICMPv6 errors answered 1 of 3 requests."],
    [0, lost(), "not-sent", "No request left in time."],
    [0, lost(unsent), "not-sent", "This machine could not send the request (EPERM)."],
    [0, lost(unsent, unsent), "not-sent", "This machine could not send all 2 requests (EPERM)."],
    [0, lost(unknown), "no-reply", "What became of the request is not known, because the kernel of this machine dropped packets."],
  ];
  test.each(rows)("%d replies, %j: %s", (received, samples, code, text) => {
    expect(pingVerdict(received, samples)).toEqual({ code, text } as never);
  });
});

describe("of a trace", () => {
  type Hops = TraceResult["hops"];
  type End = Parameters<typeof traceVerdict>[1];
  const hop = (at: number, ip: string | null) => ({ hop: at, ip, hostname: null, rtt: ip && 1 });
  const reached = [hop(1, ROUTER), hop(2, "2001:db8::80")] as Hops;
  const ended = [hop(1, ROUTER), hop(2, null), hop(3, null)] as Hops;
  const error = { type: 1, code: 1, name: "prohibited", from: ROUTER, fromTarget: false };
  // biome-ignore format: a table
  const rows: [Hops, End, text: string][] = [
    [reached, { reason: "reached" }, "The target replied at hop 2."],
    [reached, { reason: "reached", otherSource: OTHER }, "The target replied at hop 2 from 2001:db8:2::1."],
    [[hop(1, ROUTER)] as Hops, { reason: "prohibited", error }, "2001:db8:1::1 answered prohibited at hop 1, and the path ends there."],
    [[...ended, hop(4, ROUTER)] as Hops, { reason: "prohibited", error }, "2001:db8:1::1 answered prohibited at hop 4 or nearer, and the path ends there."],
    [reached, { reason: "unreachable", error: { ...error, name: "closed-port", fromTarget: true } }, "The target answered closed port at hop 2, and the path ends there."],
    [reached, { reason: "packet-too-big", error: { ...error, type: 2, name: "packet-too-big" } }, "2001:db8:1::1 answered packet too big at hop 2, and the path ends there."],
    [reached, { reason: "parameter-problem", error: { ...error, type: 4, name: "next-header" } }, "2001:db8:1::1 answered next header at hop 2, and the path ends there."],
    [ended, { reason: "not-sent", refused: [{ hop: 2, errno: "EPERM" }] }, "This machine could not send probes beyond hop 1 (EPERM)."],
    [[hop(1, null)] as Hops, { reason: "not-sent", refused: [{ hop: 1, errno: "EPERM" }] }, "This machine could not send probes to any hop (EPERM)."],
    [ended, { reason: "loop", loop: { from: 2, to: 3, addresses: [ROUTER, OTHER], repeats: 6 } }, "There is a loop between hops 2 and 3: 2001:db8:1::1 and 2001:db8:2::1 answered in turn up to hop 3, 6 times again, and the target did not reply."],
    [ended, { reason: "loop", loop: { from: 2, to: 3, addresses: [ROUTER, null], repeats: 4 } }, "There is a loop between hops 2 and 3: 2001:db8:1::1 and a silent router answered in turn up to hop 3, 4 times again, and the target did not reply."],
    [ended, { reason: "gap-limit" }, "The last answer came from hop 1 (2001:db8:1::1); no hop behind it answered, and the target did not reply."],
    [[hop(1, null)] as Hops, { reason: "gap-limit" }, "No hop answered, and the target did not reply."],
    [reached, { reason: "max-hops" }, "No reply from the target within 2 hops (the limit you set)."],
    [[hop(1, ROUTER)] as Hops, { reason: "max-hops" }, "No reply from the target within 1 hop (the limit you set)."],
  ];
  test.each(rows)("%j, %j", (hops, end, text) => {
    expect(traceVerdict(hops, end, null)).toEqual({ code: end.reason, text });
  });

  const path = (isReached: boolean) => ({
    flowLabel: 1,
    labels: 6,
    reached: isReached,
    reason: isReached ? ("reached" as const) : ("gap-limit" as const),
    addresses: [],
  });
  const [yes, no] = [path(true), path(false)];
  // biome-ignore format: a table
  const found: [object, text: string][] = [
    [{ paths: [yes], labels: 6, complete: true }, "Found 1 path with 6 flow labels. At each router, a further next hop is unlikely (5 %)."],
    [{ paths: [yes, yes], labels: 17, complete: false }, "Found at least 2 paths with 17 flow labels; there may be more."],
    [{ paths: [yes, no], labels: 17, complete: true }, "Found 2 paths with 17 flow labels. At each router, a further next hop is unlikely (5 %). Path 2 of 2 did not reach the target."],
    [{ paths: [no, yes, no], labels: 17, complete: true }, "Found 3 paths with 17 flow labels. At each router, a further next hop is unlikely (5 %). Paths 1 and 3 of 3 did not reach the target."],
    [{ paths: [no], labels: 6, complete: true }, "Found 1 path with 6 flow labels. At each router, a further next hop is unlikely (5 %). It does not reach the target."],
    [{ paths: [no, no], labels: 11, complete: true }, "Found 2 paths with 11 flow labels. At each router, a further next hop is unlikely (5 %). None of them reaches the target."],
    [{ paths: [yes], labels: 1, complete: false, perPacket: [3] }, "Found at least 1 path with 1 flow label; there may be more. At hop 3 one flow label was answered by different addresses: a router chooses by packet, or the path changed."],
    [{ paths: [yes], labels: 6, complete: false, perPacket: [3, 4, 7] }, "Found at least 1 path with 6 flow labels; there may be more. At hops 3, 4 and 7 one flow label was answered by different addresses: a router chooses by packet, or the path changed."],
  ];
  test.each(found)("paths %j", (paths, text) => {
    expect(traceVerdict(reached, { reason: "reached" }, paths)).toEqual({ code: "reached", text });
  });
});

describe("of mtr", () => {
  type Hops = MtrResult["hops"];
  const hop = (at: number, [sent, received]: [number, number], cause: string | null = null) => ({
    ...{ hop: at, ip: received > 0 ? `2001:db8:${at}::1` : null, hostname: null },
    ...{ sent, received, late: 0, errors: 0, unknown: 0, cause, addresses: [] },
  });
  const error = { type: 1, code: 0, name: "no-route", from: ROUTER, fromTarget: false };
  const FIRST = hop(1, [10, 10]);
  /** The verdict of hops; the last one is the target unless the end says otherwise. */
  const verdictOf = (
    hops: readonly ReturnType<typeof hop>[],
    {
      begin = null,
      inARow = 0,
      error,
      ...end
    }: {
      reached?: boolean;
      error?: object;
      begin?: LossBegin | null;
      inARow?: number;
      late?: number;
      retransmitted?: number;
      errors?: number;
      unknown?: number;
    } = {},
  ) => {
    const { sent = 0, received = 0 } = hops.at(-1) ?? {};
    const known = sent - (end.unknown ?? 0);
    const loss = known === 0 ? null : ((known - received) / known) * 100;
    const toTarget = { sent, received, late: 0, errors: 0, unknown: 0, loss, ...end };
    const { reached = true } = end;
    return mtrVerdict(
      hops as object as Hops,
      { reached, toTarget, ...(error && { error }) } as never,
      { begin, inARow, lossPath: hops.map(({ ip }) => ip) },
    );
  };
  // biome-ignore format: a table
  const rows: [ReturnType<typeof hop>[], Parameters<typeof verdictOf>[1], code: string, text: string][] = [
    [[FIRST, hop(2, [10, 10])], {}, "no-loss", "The target replied to all 10 probes."],
    [[hop(1, [1, 1])], {}, "no-loss", "The target replied to the probe."],
    [[hop(1, [10, 4], "replies"), hop(2, [10, 10])], {}, "no-loss", "The target replied to all 10 probes. Hop 1 ignores some probes; that is not loss, as later hops lose less."],
    [[hop(1, [9, 2], "replies"), hop(2, [9, 2], "replies"), hop(3, [9, 0], "replies"), hop(4, [9, 9])], {}, "no-loss", "The target replied to all 9 probes. Hops 1 and 2 ignore some probes; that is not loss, as later hops lose less."],
    [[FIRST, hop(2, [10, 9], "unclear")], {}, "unclear", "The target did not reply to 1 of 10 probes, which can be chance: the loss is between 2 and 40 %; run more rounds to be sure."],
    [[FIRST, hop(2, [1000, 998], "unclear")], {}, "unclear", "The target did not reply to 2 of 1000 probes, which can be chance: the loss is between 0.05 and 0.7 %; run more rounds to be sure."],
    [[FIRST, hop(2, [20_000, 19_992], "path")], {}, "loss", "The target did not reply to 8 of 20000 probes (<0.1 %): the loss is between 0.02 and 0.08 %."],
    [[FIRST, hop(2, [10, 7], "path")], {}, "loss", "The target did not reply to 3 of 10 probes (30 %): the loss is between 11 and 60 %."],
    [[FIRST, hop(2, [11, 7], "path")], { unknown: 1, late: 2 }, "loss", "The target did not reply to 3 of 10 probes (30 %): the loss is between 11 and 60 %. 2 answers came after the timeout."],
    [[hop(1, [30, 30]), hop(2, [30, 14], "path"), hop(3, [30, 15], "path")], { begin: { from: 1, to: 2 } }, "loss", "The target did not reply to 15 of 30 probes (50 %): the loss is between 33 and 67 %. The loss begins between hop 1 (2001:db8:1::1) and hop 2 (2001:db8:2::1)."],
    [[hop(1, [30, 15], "path"), hop(2, [30, 15], "path")], { begin: { from: 0, to: 1 } }, "loss", "The target did not reply to 15 of 30 probes (50 %): the loss is between 33 and 67 %. The loss begins between this machine and hop 1 (2001:db8:1::1)."],
    [[hop(1, [30, 30]), hop(2, [30, 15], "path")], { begin: { from: 1, to: 2 } }, "loss", "The target did not reply to 15 of 30 probes (50 %): the loss is between 33 and 67 %. The loss begins between hop 1 (2001:db8:1::1) and hop 2 (2001:db8:2::1), or the target does not answer every probe."],
    [[hop(1, [30, 30]), hop(2, [30, 15], "path")], { error, errors: 15 }, "loss", "The target did not reply to 15 of 30 probes (50 %): the loss is between 33 and 67 %. Errors answered 15 of them; the last was no route from 2001:db8:1::1."],
    [[hop(1, [30, 30]), hop(2, [30, 15], "path")], { inARow: 14, begin: { from: 1, to: 2 } }, "loss", "The target did not reply to 15 of 30 probes (50 %), 14 of them in a row, so the loss changes with time. The loss begins between hop 1 (2001:db8:1::1) and hop 2 (2001:db8:2::1), or the target does not answer every probe."],
    [[FIRST, hop(2, [10, 0])], { reached: false }, "no-reply", "The target did not reply; the last answers came from hop 1 (2001:db8:1::1)."],
    [[hop(1, [10, 0])], { reached: false }, "no-reply", "No hop answered, and the target did not reply."],
    [[FIRST, hop(2, [10, 0])], { reached: false, error, errors: 10 }, "unreachable", "The target did not reply; the last answers came from hop 1 (2001:db8:1::1). 2001:db8:1::1 answered no route."],
    [[hop(1, [0, 0])], { reached: false }, "not-sent", "This machine could not send any probe."],
    [[], { reached: false }, "not-sent", "This machine could not send any probe."],
  ];
  test.each(rows)("%j, %j", (hops, end, code, text) => {
    const { lossAtLeast, lossAtMost, from, to, ...verdict } = verdictOf(hops, end);
    expect(verdict).toEqual({ code, text } as never);
    const { sent = 0, received = 0 } = hops.at(-1) ?? {};
    const loss = sent === 0 ? 0 : ((sent - (end?.unknown ?? 0) - received) / sent) * 100;
    expect(lossAtLeast).toBeLessThanOrEqual(loss);
    expect(lossAtMost).toBeGreaterThanOrEqual(loss);
    expect(from === undefined ? null : { from, to }).toEqual((end?.begin ?? null) as never);
  });

  test("names the routers of the path that loses, not those that answered most", () => {
    const address = (ip: string, hostname: string | null) => ({
      ip,
      hostname,
      received: 9,
      share: 30,
    });
    const second = {
      ...hop(2, [30, 30]),
      addresses: [
        address("2001:db8:2::1", "usual.example.net"),
        address("2001:db8:9::1", "new.example.net"),
      ],
    };
    const hops = [hop(1, [30, 30]), second, hop(3, [30, 15], "path")] as object as Hops;
    const toTarget = { sent: 30, received: 15, late: 0, errors: 0, unknown: 0, loss: 50 };
    const loss = { begin: { from: 2, to: 3 }, inARow: 0 };
    const lossPath = ["2001:db8:1::1", "2001:db8:9::1", null];
    const { text } = mtrVerdict(hops, { reached: true, toTarget }, { ...loss, lossPath });
    expect(text).toContain("begins between hop 2 (new.example.net) and hop 3, or the target");
  });

  test("names a loop, as a trace does", () => {
    const hops = Array.from({ length: 8 }, (_, at) => {
      const ip = at === 0 ? "2001:db8:9::1" : [ROUTER, OTHER][at % 2];
      return { ...hop(at + 1, [6, 6]), ip, addresses: [{ ip }] };
    });
    const loop =
      "There is a loop between hops 2 and 3: 2001:db8:2::1 and 2001:db8:1::1 answered in turn up to hop 8, 5 times again, and the target did not reply.";
    expect(verdictOf(hops as never, { reached: false }).text).toBe(loop);
    expect(verdictOf(hops as never, { reached: true }).text).toBe(
      "The target replied to all 6 probes.",
    );
  });

  test("has the name of a hop in place of its address", () => {
    const hops = [{ ...FIRST, hostname: "router.example.net" }, hop(2, [10, 0])] as never;
    expect(verdictOf(hops, { reached: false }).text).toEndWith("from hop 1 (router.example.net).");
  });
});

describe("of the path MTU", () => {
  const hops = [1, 2, 3, 4].map((hop) => ({
    ...{ hop, ip: `2001:db8:${hop}::1`, mtu: 1500, atMost: 1500 },
    hostname: hop === 4 ? "web.example.com" : null,
  })) satisfies MtuResult["hops"];
  const nothing = {
    ...{ mtu: 1420, atMost: 1420, packetTooBig: null, lastLarge: null, firstSmall: null },
  };
  const packetTooBig = { from: "2001:db8:2::1", hop: 2, mtu: 1420, sent: 1500 };
  const error = { type: 1, code: 0, name: "no-route", from: "2001:db8:2::1", fromTarget: false };
  // biome-ignore format: a table
  const rows: [MtuVerdict, Partial<MtuResult & MtuResult["details"]>, text: string][] = [
    ["clear", {}, "The target answers packets of 1420 bytes, the largest that this machine can send."],
    ["narrowed", { packetTooBig, lastLarge: 2, firstSmall: 3 }, "The path MTU is 1420 bytes: the link behind hop 2 (2001:db8:2::1) is the narrowest."],
    ["narrowed", { packetTooBig, lastLarge: 1, firstSmall: 3 }, "The path MTU is 1420 bytes, as hop 2 (2001:db8:2::1) says. The narrow link is between hop 1 (2001:db8:1::1) and hop 3 (2001:db8:3::1)."],
    ["narrowed", { packetTooBig: { ...packetTooBig, hop: null }, firstSmall: 1 }, "The path MTU is 1420 bytes, as 2001:db8:2::1 says. The narrow link is before hop 1 (2001:db8:1::1)."],
    ["narrowed", { lastLarge: 3 }, "Routers answer packets of more than 1420 bytes with Packet Too Big. The narrow link is behind hop 3 (2001:db8:3::1)."],
    ["narrowed", { mtu: null, packetTooBig, lastLarge: 2, firstSmall: 3 }, "The target answers neither echo requests nor UDP packets. The path MTU is 1420 bytes: the link behind hop 2 (2001:db8:2::1) is the narrowest."],
    ["narrowed", { cause: "echo", packetTooBig, lastLarge: 2 }, "The path MTU is 1420 bytes: the link behind hop 2 (2001:db8:2::1) is the narrowest. The target answered UDP packets of that size, but no echo requests."],
    ["clear", { cause: "echo" }, "The target answers packets of 1420 bytes, the largest that this machine can send. The target answered UDP packets of that size, but no echo requests."],
    ["black-hole", { cause: "there", lastLarge: 2, firstSmall: 4 }, "Packets of more than 1420 bytes vanish, and no Packet Too Big comes, so connections hang when they send much. The narrow link is between hop 2 (2001:db8:2::1) and hop 4 (web.example.com)."],
    ["black-hole", {}, "Packets of more than 1420 bytes vanish, and no Packet Too Big comes, so connections hang when they send much. It may be on the way there or back."],
    ["black-hole", { cause: "back" }, "Echo requests of more than 1420 bytes are not answered, but UDP packets of that size get to the target: the return path carries no more, or the target answers no larger ones."],
    ["below-1280", { mtu: 1000, firstSmall: 4 }, "Packets of more than 1000 bytes vanish, but every link of IPv6 must carry 1280, so larger transfers over this path fail. The narrow link is before hop 4 (web.example.com)."],
    ["at-least", { atMost: 1500 }, "The target answers packets of 1420 bytes; whether larger ones, up to 1500, get through is not known: answers are too seldom, or the time was over."],
    ["at-least", { mtu: 1280, atMost: 1500, cause: "echo" }, "The target answers packets of 1280 bytes; it did so for UDP, but for no echo requests of that size. Whether larger ones, up to 1500, get through is not known."],
    ["at-least", { mtu: null, atMost: 1500 }, "The target answers neither echo requests nor UDP packets. Packets of 1500 bytes get to hop 4 (web.example.com); the size that the links behind it carry is not known."],
    ["inconclusive", { mtu: null }, "Neither the target nor a hop answers packets of any size."],
    ["inconclusive", { mtu: null, error: { ...error, from: "2001:db8::1" } }, "Neither the target nor a hop answers packets of any size. 2001:db8::1 answered no route."],
    ["at-least", { mtu: null, atMost: 1500, error }, "The target answers neither echo requests nor UDP packets. Packets of 1500 bytes get to hop 4 (web.example.com); the size that the links behind it carry is not known. 2001:db8:2::1 answered no route."],
    ["clear", { cause: "echo", error: { ...error, fromTarget: true, name: "prohibited" } }, "The target answers packets of 1420 bytes, the largest that this machine can send. The target answered UDP packets of that size, but no echo requests. The target answered prohibited."],
    ["black-hole", { cause: "there", error: { ...error, name: "prohibited" } }, "Packets of more than 1420 bytes do not get through, and no Packet Too Big comes, so connections hang when they send much. 2001:db8:2::1 answered prohibited."],
    ["black-hole", { cause: "there", doubtful: [{ ...packetTooBig, mtu: 576, doubt: "below-1280" }] }, "Packets of more than 1420 bytes vanish, and no Packet Too Big that is believed comes, so connections hang when they send much."],
  ];
  test.each(rows)("%s, %j", (code, { cause, error, doubtful = [], ...found }, text) => {
    const about = { ...(cause && { cause }), ...(error && { error }), doubtful };
    expect(mtuText(code, { ...nothing, ...found }, hops, about)).toBe(text);
  });

  test("names a silent hop by its number alone", () => {
    const silent = hops.map((hop) => ({ ...hop, ip: null, hostname: null }));
    expect(mtuText("narrowed", { ...nothing, firstSmall: 2 }, silent, { doubtful: [] })).toEndWith(
      "The narrow link is before hop 2.",
    );
  });
});

describe("of a look-up", () => {
  const record = (type: string) => ({ type, value: "x", ttl: 1 });
  const question = { name: "www.example.com.", type: "AAAA" };
  type Said = Parameters<typeof dnsVerdict>[2];
  // biome-ignore format: a table
  const rows: [string[], Partial<Said>, code: string, text: string][] = [
    [["AAAA"], {}, "answer", "resolver_b has 1 AAAA record for www.example.com."],
    [["CNAME", "AAAA", "AAAA"], {}, "answer", "resolver_b has 2 AAAA records for www.example.com."],
    [["NS"], { question: { name: ".", type: "NS" } }, "answer", "resolver_b has 1 NS record for the root."],
    [[], {}, "no-data", "resolver_b says that www.example.com exists and has no AAAA record."],
    [["CNAME"], {}, "no-data", "resolver_b says that www.example.com exists and has no AAAA record."],
    [["AAAA"], { attempts: [{ server: "x", transport: "udp", ms: 1, outcome: "NOERROR without EDNS" }] }, "answer", "resolver_b has 1 AAAA record for www.example.com. resolver_b answers only without EDNS, which DNSSEC and large answers need."],
    [["CNAME"], { incomplete: true }, "incomplete", "resolver_b follows the CNAME chain of www.example.com only so far; its end may have AAAA records."],
    [[], { extendedErrors: [{ code: 17, name: "Filtered" }] }, "no-data", "resolver_b blocks this name, as it says (Filtered)."],
    [["AAAA"], { extendedErrors: [{ code: 4, name: "Forged Answer", text: "rpz" }] }, "answer", "resolver_b has 1 AAAA record for www.example.com. resolver_b blocks this name, as it says (Forged Answer: rpz)."],
    [["AAAA"], { extendedErrors: [{ code: 3, name: "Stale Answer" }] }, "answer", "resolver_b has 1 AAAA record for www.example.com. The answer is old, because resolver_b could not get a new one."],
    [["AAAA"], { extendedErrors: [{ code: 29, name: "Synthesized" }] }, "answer", "resolver_b has 1 AAAA record for www.example.com."],
    [["AAAA"], { dnssec: { verdict: "insecure" } as never }, "answer", "resolver_b has 1 AAAA record for www.example.com. DNSSEC: insecure."],
    [["AAAA"], { agree: true, differences: [], unanswered: [] }, "answer", "resolver_b has 1 AAAA record for www.example.com. The three resolvers agree."],
    [["AAAA"], { agree: true, differences: ["ttl"], unanswered: [] }, "answer", "resolver_b has 1 AAAA record for www.example.com. The three resolvers agree; only TTLs differ."],
    [["AAAA"], { agree: false, differences: ["records"], unanswered: [] }, "answer", "resolver_b has 1 AAAA record for www.example.com. The three resolvers differ in their records."],
    [["AAAA"], { agree: false, differences: ["records", "rcode", "dnssec"], unanswered: [] }, "answer", "resolver_b has 1 AAAA record for www.example.com. The three resolvers differ in their records, response codes and DNSSEC verdicts."],
  ];
  test.each(rows)("%j, %j", (types, said, code, text) => {
    const records: DnsResult["records"] = types.map(record);
    expect(dnsVerdict("resolver_b", records, { question, ...said })).toEqual({
      code,
      text,
    } as never);
  });
});

test("the verdict of each example is that of its document", () => {
  const of = <Result>({ example }: { readonly example: unknown }) => example as Result;
  const pinged = of<PingResult>(ping);
  const traced = of<TraceResult>(traceroute);
  const measured = of<MtrResult>(mtr);
  const sized = of<MtuResult>(mtu);
  const asked = of<DnsResult>(dns);
  expect(pinged.details.verdict).toEqual(pingVerdict(pinged.results.length, pinged.details.lost));
  expect(traced.details.verdict).toEqual(traceVerdict(traced.hops, traced.details, null));
  expect(measured.details.verdict).toEqual(
    mtrVerdict(measured.hops, measured.details, { begin: null, inARow: 0, lossPath: [] }),
  );
  const { code, text } = sized.details.verdict;
  expect(text).toBe(mtuText(code, sized, sized.hops, sized.details));
  expect(asked.details.verdict).toEqual(dnsVerdict(asked.resolver, asked.records, asked.details));
});
