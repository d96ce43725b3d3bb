import { describe, expect, test } from "bun:test";
import type { Response } from "../../../src/icmp/prober/response.ts";
import { percent } from "../../../src/tools/ledger.ts";
import { MAX_LISTED } from "../../../src/tools/mtr/result.ts";
import { type MtrReport, MtrRounds, type Outcome } from "../../../src/tools/mtr/rounds.ts";
import { parseIpv6 } from "../../addr/parse.ts";
import { randomFrom } from "../../lab/simulation.ts";

const received = { scopeId: 0, hopLimit: 64 };

/** A router's answer; its address ends in this name. */
function router(name: string, type = 3): Response {
  const from = parseIpv6(`2001:db8::${name}`);
  const extensions = { mpls: [], interfaces: [] };
  return { kind: "error", type, code: 0, parameter: 0, extensions, from, rttMs: 1, ...received };
}

/** Its answer that it has no route. */
const noRoute = (name: string) => router(name, 1);

const target = (rttMs = 9): Response => ({
  kind: "reply",
  from: parseIpv6("2001:db8::ffff"),
  isOtherSource: false,
  rttMs,
  ...received,
});

function report(rounds: readonly (readonly Outcome[])[]): MtrReport {
  const counted = new MtrRounds();
  for (const round of rounds) counted.count([...round]);
  return counted.report();
}

const counts = ({ hops }: MtrReport) => hops.map(({ sent, received }) => [sent, received]);
const addresses = ({ paths }: MtrReport) =>
  paths.map((path) => path.addresses.map((address) => address?.slice(10) ?? null));
/** The same round many times. */
const times = (count: number, ...round: Outcome[]) => Array.from({ length: count }, () => round);

describe("a path that changes", () => {
  test("loses nothing where it became shorter", () => {
    const long = [router("a"), router("b"), router("c"), target()];
    const short: Outcome[] = [router("a"), router("b"), target(), "silent"];
    const all = report([long, long, long, short, short]);
    expect(counts(all)).toEqual([
      [5, 5],
      [5, 5],
      [5, 5],
      [3, 3],
    ]);
    expect(all.paths.map((path) => path.rounds)).toEqual([3, 2]);
    expect(addresses(all)).toEqual([
      ["a", "b", "c", "ffff"],
      ["a", "b", "ffff"],
    ]);
  });

  test("has every probe of a hop that is silent on one of its ways", () => {
    const one = [router("a"), router("b"), router("c"), target()];
    const other: Outcome[] = [router("a"), "silent", router("d"), target()];
    const all = report([one, other, one, other, other]);
    expect(counts(all)).toEqual([
      [5, 5],
      [5, 2],
      [5, 5],
      [5, 5],
    ]);
    expect(all.paths.map((path) => path.rounds)).toEqual([2, 3]);
    expect(all.hops[2]?.addresses.map((each) => each.received)).toEqual([3, 2]);
  });

  test("keeps the times of a common hop in order", () => {
    const one = [router("a"), target(4)];
    const other = [router("b"), target(2)];
    const { hops } = report([one, other, [router("a"), target(8)]]);
    expect(hops[1]).toMatchObject({ last: 8, jitter: (2 + 6) / 2 });
  });

  test("is none where only answers are missing", () => {
    const whole = [router("a"), router("b"), target()];
    const all = report([
      whole,
      ["silent", router("b"), "silent"],
      ["silent", "silent", "silent"],
      whole,
    ]);
    expect(all.paths).toHaveLength(1);
    expect(counts(all)).toEqual([
      [4, 2],
      [4, 3],
      [4, 2],
    ]);
  });

  test("goes no further than the target", () => {
    const { hops, reached } = report([
      [router("a"), target(), target()],
      [router("a"), "silent", "silent"],
    ]);
    expect([hops.length, reached]).toEqual([2, true]);
  });
});

describe("the loss of the target", () => {
  const way = [router("a"), router("b"), target()];
  const silent: Outcome[] = [router("a"), "silent", "silent"];
  const unrouted = [router("a"), noRoute("b"), noRoute("b")];
  const longer = [router("a"), router("c"), router("d"), router("e"), target()];
  const loop = [router("a"), router("b"), router("a"), router("b")];
  // biome-ignore format: a table
  test.each<[string, readonly Outcome[][], sent: number, received: number, errors: number]>([
    ["half a black hole", [...times(15, ...way), ...times(15, ...silent)], 30, 15, 0],
    ["half no route", [...times(15, ...way), ...times(15, ...unrouted)], 30, 15, 15],
    ["half a loop", [...times(15, ...way), ...times(15, ...loop)], 30, 15, 0],
    ["a longer way and a hole in turn", times(15).flatMap(() => [longer, silent]), 30, 15, 0],
    ["probes that could not be sent", [way, [router("a"), "not-sent", "not-sent"]], 1, 1, 0],
    ["answers that the kernel dropped", [way, [router("a"), "unknown", "unknown"]], 2, 1, 0],
    ["late replies", [way, [router("a"), router("b"), "late"]], 2, 1, 0],
  ])("of %s", (_, rounds, sent, received, errors) => {
    const { toTarget, reached } = report(rounds);
    expect({ ...toTarget, reached }).toMatchObject({ sent, received, errors, reached: true });
  });

  test("is that of the last probe alone where several can reach it", () => {
    // The way has four hops for half of the packets and five for the others; the target answers half.
    const random = randomFrom(1);
    const target5 = (): Outcome => (random() < 0.5 ? target() : "silent");
    const rounds = Array.from({ length: 4000 }, () => {
      const round: Outcome[] = [router("a"), router("b"), router("c")];
      const fourth = random() < 0.5 ? router("d") : target5();
      return [...round, fourth, target5()];
    });
    const { toTarget, hops } = report(rounds);
    expect(toTarget.loss).toBeWithin(47, 53);
    expect(hops[4]?.loss).toBeWithin(46, 54);
    expect(hops[3]?.loss).toBeWithin(23, 27);
  });

  test("of 16 ways by packet to a target that answers half is half", () => {
    const random = randomFrom(2);
    const any = (hop: number) => router(`${hop}${Math.floor(random() * 16).toString(16)}`);
    const rounds = Array.from(
      { length: 3000 },
      () => [any(1), any(2), random() < 0.5 ? target() : "silent"] satisfies Outcome[],
    );
    const { toTarget, hops, paths, otherRounds } = report(rounds);
    expect(toTarget.loss).toBeWithin(48, 52);
    expect(hops[2]).toMatchObject({ sent: 3000, received: toTarget.received, cause: "path" });
    expect(hops[0]?.addresses).toHaveLength(16);
    expect(paths).toHaveLength(MAX_LISTED);
    expect(paths.reduce((sum, path) => sum + path.rounds, otherRounds)).toBe(3000);
  });
});

describe("errors", () => {
  const way = [router("a"), router("b"), router("c"), target()];

  test("of a router are never received, and its own probes went as far as it", () => {
    const unrouted = [router("a"), noRoute("b"), noRoute("b"), noRoute("b")];
    const { hops, begin } = report([...times(15, ...way), ...times(15, ...unrouted)]);
    expect(hops.map(({ received, errors, cause }) => [received, errors, cause])).toEqual([
      [30, 0, null],
      [15, 15, "path"],
      [15, 15, "path"],
      [15, 15, "path"],
    ]);
    expect(hops.map((hop) => hop.addresses.length)).toEqual([1, 1, 1, 1]);
    expect(begin).toEqual({ from: 2, to: 3 });
  });

  test("alone show who sent them, with no answer", () => {
    const all = report(times(3, router("a"), noRoute("b")));
    const { hops, reached } = all;
    expect(hops[1]).toMatchObject({ sent: 3, received: 0, errors: 3, avg: null });
    expect(hops[1]?.addresses).toMatchObject([{ received: 0 }]);
    expect(addresses(all)).toEqual([["a", "b"]]);
    expect(reached).toBe(false);
  });
});

test("an answer after the timeout is late, whether its round has ended or not", () => {
  const counted = new MtrRounds();
  const [early, later]: Outcome[][] = [
    [router("a"), "silent"],
    [router("a"), "silent", target(), "silent"],
  ] as never;
  const longer = [router("a"), router("b"), router("c"), target()];
  counted.late(early as Outcome[], 1);
  for (const round of [early, later, [router("a"), router("b"), target()], longer]) {
    counted.count(round as Outcome[]);
  }
  const late = () => counted.report().hops.map((hop) => [hop.sent, hop.received, hop.late]);
  expect(late()).toEqual([
    [4, 4, 0],
    [4, 2, 1],
    [3, 3, 0],
    [1, 1, 0],
  ]);
  // That of hop 4 belongs to no row, because the target had replied from nearer.
  for (const at of [0, 1, 1, 2, 3]) counted.late(later as Outcome[], at);
  expect(late().slice(1)).toEqual([
    [4, 2, 2],
    [3, 3, 0],
    [1, 1, 0],
  ]);
  expect(counted.report().toTarget).toMatchObject({ sent: 4, received: 2, late: 2 });
});

test("every probe is counted once, whatever happens", () => {
  const random = randomFrom(3);
  const pick = <T>(...choices: T[]) => choices[Math.floor(random() * choices.length)] as T;
  for (let run = 0; run < 500; run++) {
    const rounds = Array.from({ length: 1 + Math.floor(random() * 20) }, () =>
      Array.from(
        { length: 1 + Math.floor(random() * 6) },
        (_, at): Outcome =>
          at > 1 && random() < 0.3
            ? target()
            : pick<Outcome>(
                router(`${at}${pick("a", "b")}`),
                noRoute("99"),
                "silent",
                "unknown",
                "late",
                "not-sent",
              ),
      ),
    );
    const { hops, toTarget, paths } = report(rounds);
    for (const { hop, ...row } of hops) {
      const all = rounds
        .filter(
          (round) => !round.slice(0, hop - 1).some((each) => (each as Response).kind === "reply"),
        )
        .flatMap((round) => round[hop - 1] ?? []);
      const count = (matches: (outcome: Outcome) => boolean) => all.filter(matches).length;
      const isError = (each: Outcome) =>
        typeof each !== "string" && each.kind === "error" && each.type === 1;
      const received = count((each) => typeof each !== "string" && !isError(each));
      const unknown = count((each) => each === "unknown");
      const sent = count((each) => each !== "not-sent");
      const lost = sent - received - unknown;
      const late = count((each) => each === "late");
      const loss = sent === unknown ? null : percent(lost / (sent - unknown));
      expect(row).toMatchObject({
        sent,
        received,
        late,
        unknown,
        errors: count(isError),
        loss,
      });
      expect(row.addresses.reduce((sum, each) => sum + each.received, row.others)).toBe(received);
      expect(row.cause === null).toBe(lost === 0);
    }
    const last = rounds.map((round) => round.at(-1) as Outcome);
    expect(toTarget.received).toBe(
      last.filter((each) => (each as Response).kind === "reply").length,
    );
    expect(toTarget.sent).toBe(last.filter((each) => each !== "not-sent").length);
    expect(paths.reduce((sum, path) => sum + path.rounds, 0)).toBeLessThanOrEqual(rounds.length);
  }
});

test("the addresses of a hop are bounded, and further ones are counted", () => {
  const rounds = Array.from({ length: 500 }, (_, at) => [router(at.toString(16))]);
  const { hops, paths, otherRounds } = report(rounds);
  expect(hops[0]).toMatchObject({ received: 500, others: 500 - MAX_LISTED });
  expect(hops[0]?.addresses).toHaveLength(MAX_LISTED);
  expect([paths.length, otherRounds]).toEqual([MAX_LISTED, 500 - MAX_LISTED]);
});

test("no rounds say nothing", () => {
  expect(report([])).toMatchObject({ hops: [], paths: [], reached: false, begin: null });
});
