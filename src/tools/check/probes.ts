import { formatIpv6 } from "../../addr/format.ts";
import { equalIpv6, type Ipv6Address, tryParseIpv6 } from "../../addr/ipv6.ts";
import type { Caller } from "../../gate/gate.ts";
import type { Answer, Prober } from "../../icmp/prober/prober.ts";
import { errorName } from "../../icmp/wire/icmp-error.ts";
import { pause } from "../../util/clock.ts";
import type { Attempt } from "./ledger.ts";

/** SYNs to an address, and echo requests beside them. */
export const PAIRS = 20;

/** Milliseconds between two pairs: a connection has room between two SYNs, of which a port gets ten a second. */
const PAIR_MS = 160;

/** The hop limit of a probe, as the kernel and `ping` choose it. */
const HOP_LIMIT = 64;

/** What a check sends beside its transactions. */
export interface ProbeWish {
  readonly ip: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly caller: Caller;
  readonly signal: AbortSignal;
}

/** How a probe ended; null if it was cut. */
function outcomeOf(
  answer: Answer,
  source: Ipv6Address,
  timeoutMs: number,
): Pick<Attempt, "reason" | "at"> | null {
  if (answer.kind === "aborted") return null;
  if (answer.kind === "refused") return { reason: "not-sent" };
  if (answer.kind === "error") {
    // As of a neighbour that does not answer: an error of this machine itself blames nobody else.
    if (equalIpv6(answer.from, source)) return { reason: "not-sent" };
    return { reason: errorName(answer.type, answer.code), at: formatIpv6(answer.from) };
  }
  if (answer.kind !== "reply") return { reason: answer.kind };
  if (answer.rttMs > timeoutMs) return { reason: "timeout" };
  return { reason: answer.state === "closed" ? "refused" : null };
}

/** Sends SYNs, each beside an echo request, and tells how each probe ended; without a raw socket, echo requests alone. */
export async function sendPairs(
  prober: Prober,
  { ip, port, timeoutMs, caller, signal }: ProbeWish,
  tell: (probe: Omit<Attempt, "atMs">) => void,
): Promise<void> {
  const target = tryParseIpv6(ip) as Ipv6Address;
  const route = prober.route(target, 0);
  if (typeof route === "string") {
    const notSent = { ip, turn: 1, ms: 0, reason: "not-sent" };
    for (const kind of ["syn", "echo"] as const) tell({ kind, ...notSent });
    return;
  }
  const about = { target, scopeId: 0, ...route, hopLimit: HOP_LIMIT, timeoutMs, caller, signal };
  let { source } = route;
  const ask = (turn: number, kind: "syn" | "echo") => {
    const { promise: sent, resolve } = Promise.withResolvers<void>();
    const probedPort = kind === "syn" ? ({ protocol: "tcp", port } as const) : undefined;
    const onSent = (from: Ipv6Address) => {
      source = from;
      resolve();
    };
    const ended = prober.probe({ ...about, source, probedPort, turn, onSent }).then((answer) => {
      resolve();
      const outcome = outcomeOf(answer, source, timeoutMs);
      if (outcome === null) return;
      tell({ kind, ip, turn, ms: "rttMs" in answer ? answer.rttMs : timeoutMs, ...outcome });
    });
    return { sent, ended };
  };
  const all: Promise<void>[] = [];
  for (let turn = 1; turn <= PAIRS && !signal.aborted; turn++) {
    if (prober.withoutRaw === null) {
      const syn = ask(turn, "syn");
      all.push(syn.ended);
      // The gate may keep it, and the two are to meet the same path.
      await syn.sent;
    }
    all.push(ask(turn, "echo").ended);
    if (turn < PAIRS) await pause(prober.clock, PAIR_MS, signal);
  }
  await Promise.all(all);
}
