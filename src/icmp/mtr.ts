import { equalIpv6, type Ipv6Address } from "../addr/ipv6.ts";
import { pause } from "../util/clock.ts";
import { describeRounds, type MtrReport, type Round } from "./mtr-report.ts";
import type { NoResult, RunOptions } from "./ping.ts";
import type { Answer, Prober } from "./prober.ts";
import { ENOUGH, UNBOUNDED } from "./run-budget.ts";
import { describeError, endOf, type TraceError } from "./trace-report.ts";
import type { TraceRequest, Traceroute } from "./traceroute.ts";

/** Repeated probes of all hops to one target. */
export interface MtrRequest extends TraceRequest {
  readonly rounds: number;
  /** Milliseconds between two rounds; routers rate-limit their errors, Linux to one in 100 ms. */
  readonly intervalMs: number;
}

/** How the caller takes part. */
export interface MtrOptions extends RunOptions {
  /** Called after each round, in order, with what the rounds so far say. */
  readonly onRound?: ((round: number, report: MtrReport) => void) | undefined;
}

/** How it ended. */
export type MtrOutcome =
  | (MtrReport & {
      readonly kind: "done";
      readonly source: Ipv6Address;
      readonly flowLabel: number;
      /** The error that ended the path last; null if the target ever replied, or nothing says that the path ends. */
      readonly error: TraceError | null;
    })
  | NoResult;

/**
 * Traces a target, and then asks every hop once a round. The path may become shorter or longer meanwhile:
 * a round ends at the target's reply, and goes one hop further where a router answers at its end.
 */
export async function mtr(
  prober: Prober,
  traceroute: Traceroute,
  request: MtrRequest,
  { signal: callersSignal, budget = UNBOUNDED, onRound }: MtrOptions = {},
): Promise<MtrOutcome> {
  const { rounds, intervalMs, ...traceRequest } = request;
  const { target, scopeId = 0, maxHops, timeoutMs } = request;
  const signal = prober.signalFor(callersSignal, budget.enough);
  const traced = await traceroute(traceRequest, { signal: callersSignal });
  if (traced.kind !== "done") return traced;
  const { source, flowLabel } = traced;
  const probe = { target, scopeId, source, flowLabel, timeoutMs, signal };
  let end = traced.hops.length;
  let { error } = traced;
  const ask = async (hopLimit: number) => {
    const answer = await prober.probe({ ...probe, hopLimit });
    if (answer.kind === "reply") end = Math.min(end, hopLimit);
    if (answer.kind === "error" && endOf(answer) !== null) error = describeError(answer, target);
    const counted = countedAnswer(answer, source);
    if (counted && endOf(counted) === null && hopLimit === end) end = Math.min(maxHops, end + 1);
    return counted;
  };
  const done: Round[] = [];
  const pending: Promise<void>[] = [];
  for (let number = 1; number <= rounds && !signal.aborted; number++) {
    const answers = Promise.all(Array.from({ length: end }, (_, index) => ask(index + 1)));
    const before = pending.at(-1);
    pending.push(
      answers.then(async (round) => {
        await before;
        if (signal.aborted) return;
        if (!round.every((answer, at) => budget.admit(at + 1, answer?.from))) return;
        done.push(round);
        budget.work(() => onRound?.(number, describeRounds(done)));
      }),
    );
    if (number < rounds) await pause(prober.clock, intervalMs, signal);
  }
  await Promise.all(pending);
  if (signal.aborted && signal.reason !== ENOUGH) return { kind: "aborted" };
  const report = describeRounds(done);
  return { kind: "done", source, flowLabel, ...report, error: report.reached ? null : error };
}

/** This machine's own error says that a neighbour does not answer. */
function countedAnswer(answer: Answer, source: Ipv6Address): Round[number] {
  if (answer.kind === "error") return equalIpv6(answer.from, source) ? null : answer;
  if (answer.kind === "reply") return answer;
  return answer.kind === "timeout" ? null : undefined;
}
