import { formatIpv6 } from "../../addr/format.ts";
import { equalIpv6, type Ipv6Address } from "../../addr/ipv6.ts";
import type { Prober } from "../../icmp/prober/prober.ts";
import type { Response } from "../../icmp/prober/response.ts";
import type { PortState } from "../../icmp/socket/socket.ts";
import { pause } from "../../util/clock.ts";
import { ENOUGH, UNBOUNDED } from "../budget.ts";
import type { RunOptions } from "../engine.ts";
import { retransmittedFromMs } from "../ledger.ts";
import { type TraceOptions, type TraceRequest, traceroute } from "../trace/engine.ts";
import { describeError, endOf, GAP_LIMIT, type TraceError } from "../trace/responses.ts";
import { type MtrReport, MtrRounds, type Round } from "./rounds.ts";
import { MAX_TIMES } from "./times.ts";

/** Repeated probes of all hops to one target. */
export interface MtrRequest extends TraceRequest {
  readonly rounds: number;
  /** Milliseconds between two rounds; routers rate-limit their errors, Linux to one in 100 ms. */
  readonly intervalMs: number;
}

/** How the caller takes part. */
export interface MtrOptions extends RunOptions {
  /** Called with the rows of the trace before the first round, and with the silent ones at its end; see `TraceOptions`. */
  readonly onHop?: TraceOptions["onHop"];
  /** Called after each round, in order, with the report on the rounds so far. */
  readonly onRound?: ((round: number, report: MtrReport) => void) | undefined;
  /** Waits before a round while none may begin. */
  readonly mayGoOn?: (() => Promise<void> | undefined) | undefined;
}

/** How it ended. */
export type MtrOutcome = Awaited<ReturnType<typeof mtr>>;

/** Turns that only the trace uses: a port that still holds one of its SYNs does not answer a round with the same turn. */
const TRACE_TURNS = 32;

/** After this number of rounds in a row with a silent end, the path may be longer, and the next rounds go a hop further. */
const SILENT_ROUNDS = 10;

/**
 * Traces a target, and then asks every hop once a round. The path may become shorter or longer meanwhile. The hop of
 * the target's reply ends the following rounds, and if a router answers the last probe of a round, the round goes on
 * behind it. So the last probe of each round goes to the target.
 */
export async function mtr(
  prober: Prober,
  request: MtrRequest,
  { signal: callersSignal, budget = UNBOUNDED, onHop, onRound, mayGoOn }: MtrOptions = {},
) {
  const { rounds, intervalMs, ...traceRequest } = request;
  const { target, scopeId = 0, maxHops, timeoutMs, probedPort, caller } = request;
  const finished = new AbortController();
  const signal = prober.signalFor(callersSignal, budget.enough, finished.signal);
  const traced = await traceroute(prober, traceRequest, { signal: callersSignal, onHop });
  if (traced.kind !== "done") return traced;
  for (const hop of traced.hops) if (hop.ip === null) onHop?.(hop);
  const { flowLabel } = traced;
  let { source } = traced;
  const probe = { target, scopeId, flowLabel, probedPort, caller, timeoutMs, signal };
  const counted = new MtrRounds();
  let end = traced.hops.length;
  /** The last hop at which a target that falls silent is looked for. */
  const furthest = traced.reached ? Math.min(maxHops, end + GAP_LIMIT) : 0;
  let silentRounds = 0;
  let error: TraceError | null = null;
  const isTcp = probedPort?.protocol === "tcp";
  const answers: PortState[] = [];
  /** Round-trip times of SYN-ACKs, of which the trace may have had one. */
  const synAcksMs = traced.hops.flatMap(({ state, rtt }) => (state === "open" && rtt ? [rtt] : []));
  /** Probes that have not left yet. */
  let leaving = 0;
  /** Ends the wait for the last of them. */
  let wake = () => {};
  const leave = () => {
    leaving--;
    if (leaving === 0) wake();
  };
  const onSent = (from: Ipv6Address) => {
    source = from;
    leave();
  };

  // This machine's own error says that a neighbour does not answer.
  const isOwn = ({ kind, from }: Response) => kind === "error" && equalIpv6(from, source);
  // With a callback, as the probes of a ping.
  const ask = (round: Round, hopLimit: number, turn: number): Promise<void> => {
    const at = hopLimit - 1;
    leaving++;
    const onResponse = (response: Response, isAnswer: boolean) => {
      if (response.rttMs <= timeoutMs || isOwn(response)) return;
      counted.late(round, at);
      if (isAnswer && response.kind === "reply" && response.state) answers.push(response.state);
    };
    const request = { ...probe, source, hopLimit, turn, onSent, onResponse };
    return prober.probe(request).then((answer) => {
      if (answer.kind === "refused" || answer.kind === "aborted") leave();
      if (answer.kind === "error" && endOf(answer) !== null) error = describeError(answer, target);
      if (answer.kind === "unknown") round[at] = "unknown";
      if (answer.kind === "refused") round[at] = "not-sent";
      if ((answer.kind !== "reply" && answer.kind !== "error") || isOwn(answer)) return undefined;
      round[at] = answer;
      if (answer.kind === "reply") {
        end = Math.min(end, hopLimit);
        if (answer.state) answers.push(answer.state);
        if (answer.state === "open") synAcksMs.push(answer.rttMs);
        if (synAcksMs.length > MAX_TIMES) synAcksMs.shift();
      }
      if (endOf(answer) !== null || hopLimit < round.length || hopLimit >= maxHops)
        return undefined;
      end = Math.max(end, hopLimit + 1);
      round.push("silent");
      return ask(round, hopLimit + 1, turn);
    });
  };
  let told = Promise.resolve();
  const tell = async (number: number) => {
    const before = told;
    const round: Round = Array.from({ length: end }, () => "silent");
    const turn = TRACE_TURNS + (isTcp ? number : 0);
    await Promise.all(round.map((_, at) => ask(round, at + 1, turn)));
    await before;
    if (signal.aborted) return;
    const fromOf = (outcome: Round[number]) =>
      typeof outcome === "object" ? formatIpv6(outcome.from) : undefined;
    if (!round.every((outcome, at) => budget.admit(at + 1, fromOf(outcome)))) return;
    // Only now, as later rounds have had answers too.
    const fromMs = isTcp ? retransmittedFromMs(synAcksMs) : Infinity;
    for (const [at, outcome] of round.entries()) {
      if (typeof outcome === "string" || outcome.kind === "error") continue;
      if (outcome.state === "open" && outcome.rttMs >= fromMs) round[at] = "retransmitted";
    }
    counted.count(round);
    silentRounds = round.at(-1) === "silent" ? silentRounds + 1 : 0;
    if (silentRounds === SILENT_ROUNDS) {
      silentRounds = 0;
      end = Math.max(end, Math.min(end + 1, furthest));
    }
    budget.work(() => onRound?.(number, counted.report()));
  };
  for (let number = 1; number <= rounds && !signal.aborted; number++) {
    told = tell(number);
    // So rounds do not pile up where a bound for the target delays their probes.
    if (number === rounds) break;
    await pause(prober.clock, intervalMs, signal);
    await mayGoOn?.();
    const { promise: left, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    if (leaving > 0 && !signal.aborted) await left;
  }
  await told;
  if (signal.aborted && signal.reason !== ENOUGH) return { kind: "aborted" as const };
  finished.abort();
  const report = counted.report();
  error ??= report.reached ? null : traced.error;
  return {
    kind: "done" as const,
    /** The address that the last probes came from. */
    source,
    flowLabel,
    ...report,
    /** The error that ended the path last; null if nothing says that the path ends. */
    error,
    /** The answers of the port, if one was probed. */
    answers,
  };
}
