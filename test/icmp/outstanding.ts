/**
 * Fills a prober with the probes of real engines to silent targets, and says what they take. Run by `memory.test.ts`
 * in a process of its own, because it measures resident memory.
 *
 * Argument: how many probes. Prints one line of JSON.
 */

import { Prober } from "../../src/icmp/prober/prober.ts";
import type { IcmpSocket, OutgoingPacket, ReceivedPacket } from "../../src/icmp/socket/socket.ts";
import { mtr } from "../../src/tools/mtr/engine.ts";
import { ping } from "../../src/tools/ping/engine.ts";
import { traceroute } from "../../src/tools/trace/engine.ts";
import { LOOK_AHEAD } from "../../src/tools/trace/schedule.ts";
import { echoReply, icmpError, ROUTER, SOURCE, TARGET } from "./fake.ts";

const wanted = Number(process.argv[2]);
/** As the longest runs of a service have it, and as fast as a machine without load sends them. */
const [HOPS, ROUNDS, COUNT, INTERVAL_MS] = [30, 100, 10, 10];
/** Longer than it takes to send all. */
const timeoutMs = 200_000;
/** The turns of the trace of an mtr; the rounds behind it get no answer. */
const TRACE_TURNS = 32;

/** The network answers the traces with which each mtr begins, and nothing else. */
const traced = new Set<number>();
const arrived: ReceivedPacket[] = [];
let onArrival = () => {};

function answer(packet: OutgoingPacket): void {
  const isTarget = packet.hopLimit === HOPS;
  const message = isTarget ? echoReply(packet) : icmpError(packet, 3, 0);
  const source = isTarget ? packet.target : { ...ROUTER, word3: packet.hopLimit };
  const receivedMs = performance.now();
  arrived.push({ source, message, hopLimit: 60, scopeId: 0, receivedMs, readMs: receivedMs });
  setTimeout(onArrival, 1);
}

const openSocket = (): IcmpSocket => ({
  route: (_target, _scopeId, flowLabel) => ({ source: SOURCE, flowLabel }),
  send(packet) {
    if (traced.has(packet.target.word1) && (packet.turn ?? 0) < TRACE_TURNS) answer(packet);
    return performance.now();
  },
  dropped: () => 0,
  onArrival(action) {
    onArrival = action;
  },
  receive: () => arrived.shift() ?? null,
  close() {},
});

const prober = new Prober({ openSocket });
let networks = 0;

/** Begins runs of each kind until they send so many probes, a third each. */
async function begin(count: number, signal: AbortSignal): Promise<void> {
  const third = count / 3;
  // Each to a /64 of its own, because those have a bound.
  const next = () => ({ target: { ...TARGET, word1: ++networks }, timeoutMs });
  for (let sent = 0; sent < third; sent += HOPS * ROUNDS) {
    const rounds = Math.ceil(Math.min(ROUNDS, (third - sent) / HOPS));
    const request = { ...next(), maxHops: HOPS, rounds, intervalMs: INTERVAL_MS };
    traced.add(networks);
    void mtr(prober, request, { signal });
  }
  // Those behind are asked later.
  for (let sent = 0; sent < third; sent += LOOK_AHEAD)
    void traceroute(prober, { ...next(), maxHops: HOPS }, { signal });
  for (let sent = 0; sent < third; sent += COUNT)
    void ping(prober, { ...next(), count: COUNT, intervalMs: INTERVAL_MS }, { signal });
  let before = -1;
  for (; prober.counters.sent > before; await Bun.sleep(1000)) before = prober.counters.sent;
}

function residentBytes(): number {
  Bun.gc(true);
  return process.memoryUsage.rss();
}

// What is loaded and compiled once does not count.
const first = new AbortController();
await begin(1000, first.signal);
first.abort();
const before = residentBytes();
await begin(wanted, new AbortController().signal);
const bytes = residentBytes() - before;
const { outstanding, counters, isFull } = prober;
console.log(JSON.stringify({ outstanding, refused: counters.refused, isFull, bytes }));
process.exit(0);
