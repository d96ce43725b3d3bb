/** Verdicts on sites and paths where chance plays a part: each truth in 200 runs, with the share of right and wrong ones. */
import { expect, test } from "bun:test";
import type { Attempt } from "../../src/tools/check/ledger.ts";
import { checkVerdict } from "../../src/tools/check/verdict.ts";
import { stepOf } from "../../src/tools/check/views.ts";
import { randomFrom } from "../lab/simulation.ts";

const RUNS = 200;

const IP = "2001:db8::80";

/** How long a probe may stay unanswered, in milliseconds. */
const TIMEOUT_MS = 2000;

/** A site and the path to it, whose truth is known. */
interface World {
  /** Round-trip time in milliseconds. */
  readonly rttMs?: number;
  /** The share of all packets that the path loses on the way there and back. */
  readonly there?: number;
  readonly back?: number;
  /** The share of SYNs that a firewall drops, of bare ones alone or of all. */
  readonly syns?: { readonly share: number; readonly isBare?: boolean };
  /** New connections a second that the target takes, and how many at once. */
  readonly limit?: { readonly aSecond: number; readonly burst: number };
  /** The share of echo requests that are not answered. */
  readonly echo?: number;
  /** The share of connections that meet a bad server behind the address, and what that does. */
  readonly bad?: {
    readonly share: number;
    readonly how: "refuses" | "silent" | "fails" | "certificate";
  };
  /** When the site dies, in milliseconds. */
  readonly diesMs?: (random: () => number) => number;
}

/** The ledger of a check of a world: ten transactions, and twenty SYNs, each beside an echo request. */
function ledgerOf(world: World, random: () => number): Attempt[] {
  const { rttMs = 20, there = 0, back = 0, syns, limit, echo = 0, bad } = world;
  const diesMs = world.diesMs?.(random) ?? Infinity;
  const isLost = (share: number) => random() < share;
  let [tokens, tokensMs] = [limit?.burst ?? Infinity, 0];
  const takes = (atMs: number) => {
    if (limit === undefined) return true;
    tokens = Math.min(limit.burst, tokens + ((atMs - tokensMs) / 1000) * limit.aSecond);
    tokensMs = atMs;
    if (tokens < 1) return false;
    tokens--;
    return true;
  };
  /** When a SYN that leaves is answered, in milliseconds behind it; the server sends its answer again. */
  const answerMs = (atMs: number, isBare: boolean, isSilent: boolean) => {
    const isDropped = syns && (!syns.isBare || isBare) && isLost(syns.share);
    if (isDropped || isLost(there) || atMs >= diesMs || !takes(atMs) || isSilent) return null;
    const againMs = [0, 1000, 3000].find(() => !isLost(back));
    return againMs === undefined ? null : againMs + rttMs * (1 + 0.2 * random());
  };
  type Action = { readonly atMs: number; readonly act: () => void };
  const rows: Attempt[] = [];
  const add = (row: Pick<Attempt, "kind" | "turn" | "atMs" | "ms" | "reason">, more: object = {}) =>
    rows.push({ ip: IP, text: row.reason ?? "It works.", ...row, ...more });
  const server = () => (bad && random() < bad.share ? bad.how : null);
  const actions: Action[] = [];
  for (let turn = 1; turn <= 20; turn++) {
    const atMs = 160 * (turn - 1);
    const syn = () => {
      const how = server();
      const ms = answerMs(atMs, true, how === "silent");
      const isAnswered = ms !== null && ms <= TIMEOUT_MS;
      const reason = isAnswered ? (how === "refuses" ? "refused" : null) : "timeout";
      add({ kind: "syn", turn, atMs, ms: isAnswered ? ms : TIMEOUT_MS, reason });
    };
    const ping = () => {
      const isSilent = isLost(there) || isLost(echo) || isLost(back) || atMs >= diesMs;
      const reason = isSilent ? "timeout" : null;
      add({
        kind: "echo",
        turn,
        atMs,
        ms: isSilent ? TIMEOUT_MS : rttMs * (1 + 0.2 * random()),
        reason,
      });
    };
    actions.push({ atMs, act: syn }, { atMs, act: ping });
  }
  for (let turn = 1; turn <= 10; turn++) {
    const atMs = 320 * (turn - 1) + 80;
    const connect = () => {
      const how = server();
      // A kernel sends a SYN again after 1 s and 3 s, and a connection may take as long as three.
      const answers = [0, 1000, 3000].map((afterMs) => {
        const ms = answerMs(atMs + afterMs, false, how === "silent");
        return ms === null ? Infinity : ms + afterMs;
      });
      const ms = Math.min(...answers);
      if (ms > 7000) return void add({ kind: "connect", turn, atMs, ms: 7000, reason: "timeout" });
      const isRefused = how === "refuses";
      add({ kind: "connect", turn, atMs, ms, reason: isRefused ? "refused" : null });
      if (isRefused) return;
      // Of two flights, each is sent five times within the time for an answer.
      const isHung = [1, 2].some(() => [1, 2, 3, 4, 5].every(() => isLost(there) || isLost(back)));
      if (isHung) {
        const silent = { kind: "handshake", reason: "tls-silent", ms: 4000 } as const;
        add({ ...silent, turn, atMs: atMs + ms }, { finding: "tls-silent" });
        return;
      }
      const isOther = how === "certificate";
      const finding = { finding: "certificate-name" } as const;
      const shaken = isOther ? "certificate-name" : null;
      add(
        { kind: "handshake", turn, atMs: atMs + ms, ms: rttMs, reason: shaken },
        isOther ? finding : {},
      );
      if (isOther) return;
      const status = how === "fails" ? 500 : 200;
      const failed = status === 500 ? "http-error" : null;
      const more = {
        httpStatus: status,
        isRead: turn % 4 === 1,
        ...(failed && { finding: failed }),
      };
      add({ kind: "request", turn, atMs: atMs + ms + rttMs, ms: rttMs, reason: failed }, more);
    };
    actions.push({ atMs, act: connect });
  }
  for (const { act } of actions.toSorted((a, b) => a.atMs - b.atMs)) act();
  return rows;
}

/** How often each verdict was drawn, as `code fault`. */
function verdictsOf(world: World): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let seed = 1; seed <= RUNS; seed++) {
    const steps = [stepOf("names", null, { text: "One address." }, 5)];
    const rows = ledgerOf(world, randomFrom(seed));
    const near = { here: null, isPathHeard: true };
    const { code, fault } = checkVerdict(
      "www.example.com",
      443,
      { steps, rows, addresses: 1 },
      near,
    );
    const key = `${code} ${fault}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

const shareOf = (counts: Readonly<Record<string, number>>, pattern: RegExp) =>
  Object.entries(counts).reduce((sum, [key, count]) => sum + (pattern.test(key) ? count : 0), 0) /
  RUNS;

const QUARTER = 0.25;

// What must be said in at least so many of the runs, and what may be said in at most so many.
// biome-ignore format: a table
test.each<[name: string, World, right: RegExp, atLeast: number, wrong: RegExp, atMost: number]>([
  ["without a fault", {}, /^works null$/, 1, /./, 1],
  ["that loses one packet in a thousand", { there: 0.0005, back: 0.0005 }, /^(works|path-doubtful)/, 0.99, /path-loss|unknown unknown/, 0.01],
  ["that loses 30 % on the way there", { there: 0.3 }, /^(path-loss path|sometimes (path|unknown))/, 0.95, /^(works|unknown)| site$/, 0.02],
  ["that loses 30 % on the way back", { back: 0.3 }, /^(path-loss path|sometimes (path|unknown))/, 0.95, /^(works|unknown)| site$/, 0.02],
  ["that loses 15 % both ways", { there: 0.15, back: 0.15 }, /^(path-loss path|sometimes (path|unknown))/, 0.9, /^(works|unknown)| site$/, 0.02],
  ["that loses 10 % on the way back, far away", { back: 0.1, rttMs: 250 }, /^path-/, 0.8, /^unknown/, 0.02],
  ["that takes two new connections a second", { limit: { aSecond: 2, burst: 4 } }, /^(unknown|stopped|sometimes)/, 0.95, /path/, 0.02],
  ["with a firewall that drops half of the SYNs", { syns: { share: 0.5 } }, /^(unknown|stopped|sometimes) (unknown|site)/, 0.9, / path$/, 0.02],
  ["with a firewall that drops a quarter of the bare SYNs", { syns: { share: QUARTER, isBare: true } }, /(unknown|null)$/, 0.9, / (path|site)$/, 0.05],
  ["that answers few echo requests", { echo: 0.7 }, /^works null$/, 0.95, /path-loss/, 0.01],
  ["of four servers, one of which is silent", { bad: { share: QUARTER, how: "silent" } }, /^(sometimes|stopped|unknown) (site|unknown)/, 0.93, / path$/, 0.05],
  ["of four servers, one of which refuses", { bad: { share: QUARTER, how: "refuses" } }, /^(sometimes|stopped) site/, 0.98, / path$/, 0],
  ["of four servers, one of which fails", { bad: { share: QUARTER, how: "fails" } }, /^(sometimes|stopped) site/, 0.9, / path$/, 0],
  ["of four servers, one of which has another certificate", { bad: { share: QUARTER, how: "certificate" } }, /^(sometimes|stopped) site/, 0.9, / path$/, 0],
  ["that dies in the middle", { diesMs: (random) => 800 + 1200 * random() }, /^stopped/, 0.98, /^(works|path-loss)/, 0],
])("a site %s", (_, world, right, atLeast, wrong, atMost) => {
  const counts = verdictsOf(world);
  expect({ counts, share: shareOf(counts, right) >= atLeast }).toEqual({ counts, share: true });
  expect({ counts, wrong: shareOf(counts, wrong) <= atMost }).toEqual({ counts, wrong: true });
});
