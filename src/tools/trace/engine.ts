import type { Ipv6Address } from "../../addr/ipv6.ts";
import { type Prober, SILENCE_MS } from "../../icmp/prober/prober.ts";
import type { Response } from "../../icmp/prober/response.ts";
import type { NoResult, RunOptions, RunRequest } from "../engine.ts";
import { createSharing } from "../sharing.ts";
import {
  describeHop,
  describeTrace,
  endOf,
  finalHop,
  findLoop,
  lastResponding,
  type TraceHop,
  type TraceReport,
} from "./responses.ts";
import { type Bounds, createSchedule, type Hop } from "./schedule.ts";
import { createSightings } from "./sightings.ts";

/** A trace to one target. */
export interface TraceRequest extends RunRequest, Bounds {
  /** The last hop that is asked, from 1 to 255. */
  readonly maxHops: number;
  /** The flow label of the probes, 20 bits; by default a random one. */
  readonly flowLabel?: number | undefined;
  /**
   * True if the last router that answers gets the time to find that the target does not exist: three seconds with Linux
   * (RFC 4861 section 10).
   */
  readonly awaitsRouters?: boolean | undefined;
}

/** How the caller takes part in a trace. */
export interface TraceOptions extends RunOptions {
  /** Called with a hop's row whenever a response changes it. */
  readonly onHop?: ((hop: TraceHop) => void) | undefined;
}

/** A trace that has a result. */
export interface Traced extends TraceReport {
  readonly kind: "done";
  /** The address that the probes came from. */
  readonly source: Ipv6Address;
  readonly flowLabel: number;
  /** Probes that left. */
  readonly sent: number;
}

/** How a trace ended. */
export type TraceOutcome = Traced | NoResult;

/** The memory that the traces of one prober share. */
const memories = new WeakMap<Prober, ReturnType<typeof newMemory>>();

const newMemory = () => ({
  /** When a repeated request of a trace was last answered, by hop. */
  repeatAnsweredMs: [] as number[],
  sightings: createSightings(),
  share: createSharing<TraceHop, TraceOutcome>({ kind: "aborted" }),
});

/** Finds the routers on the path to a target; callers who ask for the same trace at the same time share it. */
export function traceroute(
  prober: Prober,
  request: TraceRequest,
  { signal, onHop }: TraceOptions = {},
): Promise<TraceOutcome> {
  const memory = memories.getOrInsertComputed(prober, newMemory);
  return memory.share(
    JSON.stringify({ ...request, caller: undefined }),
    (runSignal, onRow) => trace(prober, request, memory, runSignal, onRow),
    signal,
    onHop,
  );
}

/**
 * Traces the path to a target. All hops are asked nearly at once, and silent ones again.
 *
 * Routers rate-limit their errors to one address, so when many traces run at once, most are not answered at
 * first. The traces learn from each other: when a repeated request is answered, the others keep asking at the same
 * distance. A trace shares the answers of hops that limit them with the traces to the same network.
 */
async function trace(
  prober: Prober,
  request: TraceRequest,
  { repeatAnsweredMs, sightings }: ReturnType<typeof newMemory>,
  callersSignal: AbortSignal,
  onHop: (hop: TraceHop) => void,
): Promise<TraceOutcome> {
  const { clock } = prober;
  const { target, scopeId = 0, maxHops, timeoutMs, flowLabel, probedPort, caller } = request;
  const { awaitsRouters, hops, longestMs = Infinity } = request;
  const route = prober.route(target, scopeId, flowLabel);
  if (typeof route === "string") return { kind: "unreachable", code: route };
  const end = new AbortController();
  const signal = prober.signalFor(callersSignal, end.signal);
  const seen = sightings(route, target, clock);
  const startMs = clock.nowMs();
  const schedule = createSchedule(maxHops, timeoutMs, repeatAnsweredMs, startMs, request);
  const { responses } = schedule;
  const refused: { hop: number; errno: string }[] = [];
  let sent = 0;
  let sentMs = -Infinity;
  /** When the first probe left, by hop. */
  const firstSentMs: number[] = [];
  /** Probes that an error has ended, unless a reply follows. */
  const ending: Promise<unknown>[] = [];
  let wake = () => {};
  signal.addEventListener("abort", () => wake(), { once: true });

  // With a callback, as the probes of a ping.
  const ask = (hop: Hop) => {
    const tries = ++hop.tries;
    hop.askedMs = Infinity;
    const onSent = () => {
      sent++;
      sentMs = clock.nowMs();
      hop.askedMs = sentMs;
      firstSentMs[hop.hop] ??= sentMs;
      wake();
    };
    const onResponse = (response: Response, isAnswer: boolean) => {
      if (!isAnswer || (response.kind === "reply" && response.rttMs > timeoutMs)) return;
      hop.responses.push(response);
      const isEnd = endOf(response) !== null;
      // The target too may limit its replies, as to a search for paths.
      if (tries > 1 && !(isEnd && hops === undefined)) repeatAnsweredMs[hop.hop] = clock.nowMs();
      if (!isEnd) {
        seen.note(hop.hop, response, tries > 1);
      } else ending.push(answering);
      onHop(describeHop(hop.hop, hop.responses, route.source, target));
      wake();
    };
    const about = { target, scopeId, ...route, probedPort, caller };
    // All UDP packets leave from one port, as routers can choose a path by the port.
    const turn = probedPort?.protocol === "tcp" ? tries : 1;
    const probe = { ...about, hopLimit: hop.hop, timeoutMs, signal };
    const answering = prober.probe({ ...probe, turn, onSent, onResponse });
    return answering.then((answer) => {
      if (answer.kind === "refused") {
        refused.push({ hop: hop.hop, errno: answer.code });
        hop.isClosed = true;
      }
      wake();
    });
  };
  for (;;) {
    prober.readArrived();
    const nowMs = clock.nowMs();
    const step = signal.aborted ? null : schedule.next(nowMs);
    if (step === null) break;
    const { promise, resolve } = Promise.withResolvers<void>();
    wake = resolve;
    for (const hop of step.due) void ask(hop);
    const waitMs = Math.max(0, step.wakeMs - nowMs);
    const cancel = waitMs === Infinity ? () => {} : clock.after(waitMs, wake);
    await promise;
    cancel();
  }
  const asked = hops?.length ?? maxHops;
  const silenceMs = () => {
    const last = lastResponding(responses);
    if (last === 0) return asked === 1 ? -Infinity : sentMs + SILENCE_MS;
    const isCertain = !awaitsRouters || asked < maxHops || finalHop(responses) !== null;
    if (isCertain || findLoop(responses)) return -Infinity;
    const rttMs = Math.max(...(responses[last - 1] ?? []).map((response) => response.rttMs));
    return (firstSentMs[last + 1] ?? -Infinity) + rttMs + SILENCE_MS;
  };
  const listenMs = () => Math.min(startMs + longestMs, silenceMs());
  while (!signal.aborted && clock.nowMs() < listenMs()) await prober.listen(signal, listenMs());
  await Promise.all(ending);
  if (signal.aborted) return { kind: "aborted" };
  // The trace does not wait for the other probes.
  end.abort();
  const [refusal] = refused;
  if (sent === 0 && refusal) return { kind: "unreachable", code: refusal.errno };
  const report = describeTrace(responses, refused, route.source, target);
  const last = lastResponding(responses);
  const isSilent = ({ ip, hop }: TraceHop) =>
    ip === null && hop < last && (hops?.includes(hop) ?? true);
  const rows = report.hops.map((row) =>
    isSilent(row) ? { ...row, others: seen.at(row.hop) } : row,
  );
  return { kind: "done", ...route, sent, ...report, hops: rows };
}
