import { formatIpv6 } from "../../addr/format.ts";
import { equalIpv6, type Ipv6Address } from "../../addr/ipv6.ts";
import type { Answer, ProbeRequest, Prober } from "../../icmp/prober/prober.ts";
import { errorName } from "../../icmp/wire/icmp-error.ts";
import { pause } from "../../util/clock.ts";
import type { Attempt } from "./ledger.ts";

/** SYNs to an address, and echo requests beside them. */
export const PAIRS = 20;

/** Milliseconds between two pairs: a port gets ten SYNs a second, and a connection has room between two of them. */
const PAIR_MS = 160;

/** The hop limit of a probe, as the kernel and `ping` choose it. */
const HOP_LIMIT = 64;

/** How a probe ended; null if it was cut. */
function outcomeOf(answer: Answer, source: Ipv6Address, timeoutMs: number) {
  if (answer.kind === "aborted") return null;
  if (answer.kind === "refused") return { reason: "not-sent" };
  if (answer.kind === "error") {
    // This machine's own error, as for a neighbour that does not answer, says nothing of the target.
    if (equalIpv6(answer.from, source)) return { reason: "not-sent" };
    return { reason: errorName(answer.type, answer.code), at: formatIpv6(answer.from) };
  }
  if (answer.kind !== "reply") return { reason: answer.kind };
  if (answer.rttMs > timeoutMs) return { reason: "timeout" };
  return { reason: answer.state === "closed" ? "refused" : null };
}

/**
 * Sends SYNs, each beside an echo request; without a raw socket, echo requests alone.
 *
 * @param tell called with the outcome of each probe, and when it left by `performance.now()`: a busy machine reads
 *   answers late
 */
export async function sendPairs(
  prober: Prober,
  port: number,
  wish: Pick<ProbeRequest, "target" | "timeoutMs" | "caller" | "signal">,
  tell: (probe: Omit<Attempt, "ip" | "atMs">, leftMs?: number) => void,
): Promise<void> {
  const { target, timeoutMs, signal } = wish;
  const route = prober.route(target, 0);
  if (typeof route === "string") {
    for (const kind of ["syn", "echo"] as const) tell({ kind, turn: 1, ms: 0, reason: "not-sent" });
    return;
  }
  const about = { scopeId: 0, ...route, hopLimit: HOP_LIMIT, ...wish };
  let { source } = route;
  const all: Promise<void>[] = [];
  /** Sends a probe, and waits until it has left. */
  const ask = (turn: number, kind: "syn" | "echo") => {
    const { promise: sent, resolve } = Promise.withResolvers<void>();
    const probedPort = kind === "syn" ? ({ protocol: "tcp", port } as const) : undefined;
    let leftMs: number | undefined;
    const onSent = (from: Ipv6Address) => {
      leftMs = performance.now();
      source = from;
      resolve();
    };
    const ended = prober.probe({ ...about, source, probedPort, turn, onSent }).then((answer) => {
      resolve();
      const outcome = outcomeOf(answer, source, timeoutMs);
      if (outcome === null) return;
      tell({ kind, turn, ms: "rttMs" in answer ? answer.rttMs : timeoutMs, ...outcome }, leftMs);
    });
    all.push(ended);
    return sent;
  };
  for (let turn = 1; turn <= PAIRS && !signal.aborted; turn++) {
    // The gate may delay the SYN, and both probes must meet the same path.
    if (prober.withoutRaw === null) await ask(turn, "syn");
    void ask(turn, "echo");
    if (turn < PAIRS) await pause(prober.clock, PAIR_MS, signal);
  }
  await Promise.all(all);
}
