import { formatIpv6 } from "../../addr/format.ts";
import type { Ipv6Address } from "../../addr/ipv6.ts";
import { type Prober, SILENCE_MS } from "../../icmp/prober/prober.ts";
import type { Response } from "../../icmp/prober/response.ts";
import type { PortState } from "../../icmp/socket/socket.ts";
import { errorName } from "../../icmp/wire/icmp-error.ts";
import { pause } from "../../util/clock.ts";
import { round } from "../../util/numbers.ts";
import { ENOUGH } from "../budget.ts";
import type { NoResult, RunOptions, RunRequest } from "../engine.ts";
import { retransmittedFromMs } from "../ledger.ts";
import type { PingSample, Sample } from "./result.ts";
import { describePing } from "./verdict.ts";

/** A ping of one target. */
export interface PingRequest extends RunRequest {
  /** Echo requests to send. */
  readonly count: number;
  /** Milliseconds between two of them. */
  readonly intervalMs: number;
}

/** How the caller takes part in a ping. */
export interface PingOptions extends RunOptions {
  /** Called with each sample at once. A sample can come again; the result has the last one of each `seq`. */
  readonly onSample?: ((sample: Sample) => void) | undefined;
}

/**
 * How a ping ended: `source` is the address that the last requests came from, `results` and `lost` together have one
 * entry for each request, and `duplicates` counts further answers to an answered request.
 */
export type PingOutcome = Awaited<ReturnType<typeof ping>>;

/** The hop limit of an echo request, as the kernel and `ping` choose it. */
const HOP_LIMIT = 64;

/** The delay of a timer, in milliseconds, up to which the next pause makes up for it. */
const TIMER_MS = 2;

/**
 * Sends echo requests at an interval, and resolves as soon as the outcome of each is certain: if nothing has answered,
 * `SILENCE_MS` after the last request.
 */
export async function ping(prober: Prober, request: PingRequest, options: PingOptions = {}) {
  const { target, scopeId = 0, count, intervalMs, timeoutMs, probedPort, caller } = request;
  const { clock } = prober;
  const end = new AbortController();
  const signal = prober.signalFor(options.signal, options.budget?.enough, end.signal);
  const route = prober.route(target, scopeId);
  if (typeof route === "string") return unreachable(route);
  const about = { target, scopeId, ...route, probedPort, caller };
  const probe = { ...about, hopLimit: HOP_LIMIT, timeoutMs, signal };
  let { source } = route;
  const all: Sample[] = [];
  const answers: PortState[] = [];
  const synAcks: PingSample[] = [];
  let lastSentMs = -Infinity;
  let duplicates = 0;

  const note = (sample: Sample) => {
    all[sample.seq - 1] = sample;
    options.onSample?.(sample);
  };
  let leave = () => {};
  const onSent = (from: Ipv6Address) => {
    source = from;
    lastSentMs = clock.nowMs();
    leave();
  };
  // With a callback, because an async function in its wait takes more memory than all else of a probe.
  const ask = (seq: number) => {
    const onResponse = (response: Response, isAnswer: boolean) => {
      if (!isAnswer) {
        duplicates++;
        return;
      }
      const sample = sampleOf(seq, response, timeoutMs);
      // A late answer also shows the state of the port.
      const state = response.kind === "reply" && response.state;
      if (state) answers.push(state);
      if (state === "open" && probedPort?.protocol === "tcp" && !("reason" in sample))
        synAcks.push(sample);
      note(sample);
    };
    return prober.probe({ ...probe, source, turn: seq, onSent, onResponse }).then((answer) => {
      const isSilent = answer.kind === "timeout" || answer.kind === "unknown";
      // A late reply may have been noted already.
      if (isSilent && !(seq - 1 in all)) note({ seq, reason: answer.kind });
      if (answer.kind === "refused") note({ seq, reason: "not-sent", errno: answer.code });
      // The next request waits for this one to leave.
      if (answer.kind === "refused" || answer.kind === "aborted") leave();
    });
  };
  const pending: Promise<void>[] = [];
  let dueMs = clock.nowMs();
  for (let seq = 1; seq <= count && !signal.aborted; seq++) {
    const { promise: sent, resolve } = Promise.withResolvers<void>();
    leave = resolve;
    pending.push(ask(seq));
    await sent;
    const nowMs = clock.nowMs();
    dueMs = (nowMs <= dueMs + TIMER_MS ? dueMs : nowMs) + intervalMs;
    if (seq < count && dueMs > nowMs) await pause(clock, dueMs - nowMs, signal);
  }
  await Promise.all(pending);
  const untilMs = lastSentMs + SILENCE_MS;
  while (!signal.aborted && clock.nowMs() < untilMs && isSilence(all, source))
    await prober.listen(signal, untilMs);
  if (signal.aborted && signal.reason !== ENOUGH) return { kind: "aborted" } as const;
  end.abort();
  const fromMs = retransmittedFromMs(synAcks.map(({ rtt }) => rtt));
  for (const { seq, rtt } of synAcks) {
    if (rtt >= fromMs) note({ seq, reason: "retransmitted", rtt });
  }

  // Without the requests that had not left when the run had enough.
  const samples = Object.values(all);
  const refused = samples.filter((sample) => "errno" in sample);
  const last = refused.at(-1);
  if (refused.length === count && last !== undefined) return unreachable(last.errno);
  return { kind: "done" as const, source, answers, duplicates, ...describePing(samples) };
}

const unreachable = (code: string): NoResult => ({ kind: "unreachable", code });

function sampleOf(seq: number, response: Response, timeoutMs: number): Sample {
  const { kind, hopLimit } = response;
  const from = formatIpv6(response.from);
  const rtt = round(response.rttMs, 3);
  if (kind === "error") {
    const { type, code } = response;
    return { seq, reason: errorName(type, code), type, code, from, rtt };
  }
  if (response.rttMs > timeoutMs) return { seq, reason: "timeout", rtt };
  const details = { reason: "other-source", from } as const;
  return { seq, ttl: hopLimit, rtt, ...(response.isOtherSource && { details }) };
}

/** True if only this machine has answered so far, and a probe has no answer. */
function isSilence(all: readonly Sample[], source: Ipv6Address): boolean {
  const own = formatIpv6(source);
  const isOwnError = (sample: Sample) => "from" in sample && sample.from === own;
  const hasTime = (sample: Sample) => "rtt" in sample;
  const isHeard = all.some((sample) => hasTime(sample) && !isOwnError(sample));
  return !isHeard && all.some((sample) => !hasTime(sample) && !("errno" in sample));
}
