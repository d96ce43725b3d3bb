import { describe, expect, test } from "bun:test";
import {
  formatSocketAddress,
  type SocketAddress,
  tryParseSocketAddress,
} from "../../src/addr/socket-address.ts";
import { createDnsClient } from "../../src/dns/client.ts";
import type { DnsSocket, Sockets } from "../../src/dns/transport/transport.ts";
import { randomFrom } from "../lab/simulation.ts";
import { FakeClock } from "../util/fake-clock.ts";
import { aaaa, askedName, replyTo } from "./messages.ts";

/* Servers behind slow and lossy paths that are out for a while: whoever asks again finds them. */

/** A server and the path to it. */
interface Path {
  /** Milliseconds for a query to arrive and its answer to come back. */
  readonly delayMs: number;
  /** The part of the packets that is lost, each way. */
  readonly loss: number;
  /** True while nothing gets through. */
  isOut(nowMs: number): boolean;
}

/** Sockets over these paths, by their servers. */
function simulate(
  paths: Readonly<Record<string, Path>>,
  clock: FakeClock,
  random: () => number,
): Sockets {
  return {
    async open(_, server, message, events): Promise<DnsSocket> {
      const { loss, delayMs, isOut } = paths[formatSocketAddress(server)] as Path;
      let isOpen = true;
      /** Calls `arrive` when a packet is through. */
      const pass = (arrive: () => void) => {
        if (random() < loss || isOut(clock.nowMs())) return;
        clock.after(delayMs / 2, () => isOut(clock.nowMs()) || arrive());
      };
      const answer = (query: Uint8Array) => () => {
        const answers = [aaaa(askedName(query), "::1")];
        if (isOpen) events.message(replyTo(query, { answers }));
      };
      // As a socket takes a moment to open.
      await null;
      pass(() => pass(answer(message)));
      return {
        close() {
          isOpen = false;
        },
      };
    },
  };
}

const OUTAGE_MS = [20_000, 50_000] as const;
const isOut = (nowMs: number) => nowMs >= OUTAGE_MS[0] && nowMs < OUTAGE_MS[1];
const isNeverOut = () => false;
const isDeadForEver = (nowMs: number) => nowMs >= OUTAGE_MS[0];

/**
 * Asks every `everyMs`, give or take a fifth, before, during and after the outage; returns the questions that
 * began 5 s or more after it, and how many of them were answered.
 */
async function ask(paths: readonly Path[], everyMs: number, seed: number, remembers = true) {
  const random = randomFrom(seed);
  const clock = new FakeClock();
  const servers = paths.map(
    (_, at) => tryParseSocketAddress(`192.0.2.${at + 1}`, 53) as SocketAddress,
  );
  const byServer = Object.fromEntries(
    servers.map((server, at) => [formatSocketAddress(server), paths[at] as Path]),
  );
  const sockets = simulate(byServer, clock, random);
  const make = () => createDnsClient({ servers, sockets, clock });
  const client = make();
  const outcomes: Promise<boolean>[] = [];
  for (const untilMs = OUTAGE_MS[1] + 5000 + 10 * everyMs; clock.nowMs() < untilMs; ) {
    const isLate = clock.nowMs() >= OUTAGE_MS[1] + 5000;
    const outcome = (remembers ? client : make()).query("a", "AAAA");
    if (isLate) outcomes.push(outcome.then(({ kind }) => kind === "answer"));
    await clock.advance(everyMs * (0.8 + 0.4 * random()));
  }
  await clock.advance(20_000);
  expect(clock.pending).toBe(0);
  return { asked: outcomes.length, answered: (await Promise.all(outcomes)).filter(Boolean).length };
}

/** Milliseconds between questions: from a burst to now and then. */
const INTERVALS_MS = [300, 1100, 2900, 3100, 4900, 7000, 20_000];

describe("5 s after an outage every question is answered", () => {
  test.each<[string, Path[]]>([
    ["at no delay", [{ delayMs: 1, loss: 0, isOut }]],
    ["at 300 ms", [{ delayMs: 300, loss: 0, isOut }]],
    ["at 1.2 s", [{ delayMs: 1200, loss: 0, isOut }]],
    [
      "at 1.2 s, with a second server",
      [1200, 1200].map((delayMs) => ({ delayMs, loss: 0, isOut })),
    ],
    [
      "at 1.2 s, though three others never come back",
      [isDeadForEver, isDeadForEver, isOut, isDeadForEver].map((each) => ({
        delayMs: 1200,
        loss: 0,
        isOut: each,
      })),
    ],
    [
      "at 1.2 s, out from the start",
      [{ delayMs: 1200, loss: 0, isOut: (nowMs) => nowMs < OUTAGE_MS[1] }],
    ],
    ["at 2 s", [{ delayMs: 2000, loss: 0, isOut }]],
  ])("%s", async (_, paths) => {
    for (const everyMs of INTERVALS_MS) {
      for (let seed = 1; seed <= 3; seed++) {
        const { asked, answered } = await ask(paths, everyMs, seed);
        expect([everyMs, seed, answered]).toEqual([everyMs, seed, asked]);
      }
    }
  });
});

test.each([
  [20, 0.1],
  [20, 0.3],
  [1200, 0.1],
  [1200, 0.3],
])(
  "at %d ms with a loss of %d, a client that remembers is answered as often as one that does not",
  async (delayMs, loss) => {
    const sums = { asked: 0, ours: 0, plain: 0 };
    for (const everyMs of [300, 2900, 7000]) {
      for (let seed = 1; seed <= 8; seed++) {
        const paths = [{ delayMs, loss, isOut }];
        const ours = await ask(paths, everyMs, seed);
        sums.asked += ours.asked;
        sums.ours += ours.answered;
        const plain = await ask(paths, everyMs, seed + 1000, false);
        sums.plain += (plain.answered * ours.asked) / plain.asked;
      }
    }
    expect(sums.ours / sums.asked).toBeGreaterThan(sums.plain / sums.asked - 0.04);
  },
);

test("a slow server does not keep a fast one waiting", async () => {
  const clock = new FakeClock();
  const path = { loss: 0, isOut: isNeverOut };
  const paths = {
    "192.0.2.1:53": { ...path, delayMs: 1200 },
    "192.0.2.2:53": { ...path, delayMs: 5 },
  };
  const servers = Object.keys(paths).map((text) => tryParseSocketAddress(text) as SocketAddress);
  const client = createDnsClient({
    servers,
    sockets: simulate(paths, clock, randomFrom(1)),
    clock,
  });
  const times: unknown[] = [];
  for (let turn = 0; turn < 20; turn++) {
    void client.query("a", "AAAA").then(({ queryTimeMs }) => times.push(queryTimeMs));
    await clock.advance(2000);
  }
  // It is asked first again after half a minute.
  expect(times).toEqual([1005, ...Array(15).fill(5), 1005, ...Array(3).fill(5)]);
});
