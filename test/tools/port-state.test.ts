/** What the answers of a port say, and which SYN-ACKs were sent again: by hand, and in runs whose truth is known. */
import { expect, test } from "bun:test";
import type { PortState } from "../../src/icmp/socket/socket.ts";
import { retransmittedFromMs } from "../../src/tools/ledger.ts";
import { portStateOf } from "../../src/tools/port-state.ts";
import { randomFrom } from "../lab/simulation.ts";

const of = (open: number, closed: number): PortState[] => [
  ...Array<PortState>(closed).fill("closed"),
  ...Array<PortState>(open).fill("open"),
];

// biome-ignore format: a table
test.each<["tcp" | "udp", open: number, closed: number, state: string | undefined, text: string | undefined]>([
  ["tcp", 0, 0, undefined, undefined],
  ["tcp", 4, 0, "open", "TCP port 53 is open (SYN-ACK)."],
  ["tcp", 0, 1, "closed", "TCP port 53 is closed (RST)."],
  ["tcp", 7, 3, "mixed", "TCP port 53 is mixed: of 10 answers, 7 SYN-ACK and 3 RST."],
  ["tcp", 1, 1, "mixed", "TCP port 53 is mixed: of 2 answers, 1 SYN-ACK and 1 RST."],
  ["udp", 2, 0, "open", "UDP port 53 is open (a UDP packet)."],
  ["udp", 0, 2, "closed", "UDP port 53 is closed (Port Unreachable, which systems send only so often)."],
])("%s with %i answers that accept and %i that refuse", (protocol, open, closed, state, text) => {
  const found = portStateOf({ protocol, port: 53 }, of(open, closed));
  expect(found?.state).toBe(state as never);
  expect(found?.text).toBe(text as never);
});

const RUNS = 2000;

/** Runs of SYNs over a path that takes `rttMs`, up to twice that, and loses a share of the answers, which a target sends again. */
function* runs(syns: number, rttMs: number, loss: number) {
  for (let seed = 1; seed <= RUNS; seed++) {
    const random = randomFrom(seed);
    const answers = Array.from({ length: syns }, () => {
      const pathMs = rttMs * (1 + random() ** 4);
      // The second is sent 1 s behind the first, the third 2 s behind that.
      for (const afterMs of [0, 1000, 3000]) {
        if (random() >= loss) return { ms: pathMs + afterMs, isAgain: afterMs > 0 };
      }
      return null;
    }).filter((answer) => answer !== null);
    const fromMs = retransmittedFromMs(answers.map(({ ms }) => ms));
    yield answers.map(({ ms, isAgain }) => ({ isAgain, isSaid: ms >= fromMs }));
  }
}

// biome-ignore format: a table
test.each<[syns: number, rttMs: number, loss: number, missed: number]>([
  [4, 10, 0.3, 0.2],
  [10, 10, 0.3, 0.08],
  [20, 10, 0.3, 0.03],
  [10, 200, 0.3, 0.18],
  [20, 400, 0.1, 0.3],
])("of %i SYNs over %i ms that lose %d of the answers, few are missed and none is made up", (syns, rttMs, loss, most) => {
  let [again, missed, wrong] = [0, 0, 0];
  for (const answers of runs(syns, rttMs, loss)) {
    for (const { isAgain, isSaid } of answers) {
      if (isAgain) again++;
      if (isAgain && !isSaid) missed++;
      if (!isAgain && isSaid) wrong++;
    }
  }
  expect(wrong).toBe(0);
  expect(again).toBeGreaterThan(RUNS / 2);
  expect(missed / again).toBeLessThanOrEqual(most);
});

test("a path without loss that takes up to a second has no retransmission", () => {
  const said = [...runs(20, 500, 0)].flat().filter(({ isSaid }) => isSaid);
  expect(said).toEqual([]);
});
