import type { Clock } from "../util/clock.ts";
import type { Question } from "./message/message.ts";
import {
  conclude,
  type DnsOutcome,
  isDecisive,
  isShortage,
  outcomeName,
  type Resolution,
  resolutionOf,
} from "./outcome.ts";
import type { Semaphore } from "./semaphore.ts";
import type { RememberedServer } from "./server-history.ts";
import {
  type Exchange,
  type ExchangeContext,
  type ServerResult,
  startExchange,
} from "./transport/exchange.ts";

/** When attempts begin at the latest while no answer has come, in milliseconds after the question. */
const ATTEMPT_STARTS_MS: readonly number[] = [0, 1000, 2500];

/** The part of the time in which every server has been asked, at even intervals if need be. */
const ASKING_PART = 0.8;

interface RunningAttempt {
  readonly server: RememberedServer;
  readonly exchange: Exchange;
  readonly startMs: number;
  endMs: number;
  result: ServerResult | null;
}

/** How one question is asked. */
interface Terms {
  readonly timeoutMs: number;
  /** A question holds one for all its attempts, so that questions cannot wait for each other. */
  readonly permits: Semaphore;
  /** Ends the question with the outcome `aborted`. */
  readonly signal: AbortSignal | undefined;
  readonly client: string | undefined;
}

/**
 * Asks one question. Its servers are asked one after the other, those that have failed last. A failure leads to
 * the next at once, and earlier attempts go on.
 *
 * @throws what is not an error of the network
 */
export function inquire(
  context: ExchangeContext,
  servers: readonly RememberedServer[],
  question: Question,
  { timeoutMs, permits, signal, client }: Terms,
): Promise<DnsOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<DnsOutcome>();
  const { clock } = context;
  const askedMs = clock.nowMs();
  const attempts: RunningAttempt[] = [];
  const resolutions: Resolution[] = [];
  /** First the servers that were not asked yet, then those that have not answered yet. */
  let queue: RememberedServer[] = [];
  let isOver = false;
  const cancelTimers: (() => void)[] = [];
  let leave = () => {};

  const elapsedMs = () => clock.nowMs() - askedMs;
  const abort = () => end({ kind: "aborted" });
  /** Does something some milliseconds after the question, or at once if that is over. */
  const at = (ms: number, action: () => void) =>
    cancelTimers.push(clock.after(Math.max(0, ms - elapsedMs()), action));

  function start(): void {
    queue = servers.toSorted((a, b) => Number(a.hasFailed) - Number(b.hasFailed));
    begin();
    // A question that waited for its permit does not also wait for a silent server.
    for (const ms of startsMs(servers.length, timeoutMs).slice(1)) at(ms, beginNext);
    for (const server of servers) server.check();
  }

  function beginNext(): void {
    noteSilence();
    for (const { server } of attempts) server.check();
    begin();
  }

  function noteSilence(): void {
    for (const { server, startMs, result } of attempts) if (result === null) server.fail(startMs);
  }

  function begin(): void {
    const server = queue.shift();
    if (server === undefined) return;
    queue.push(server);
    const startMs = clock.nowMs();
    const exchange = startExchange(context, server.address, question);
    const attempt: RunningAttempt = { server, exchange, startMs, endMs: startMs, result: null };
    attempts.push(attempt);
    exchange.result
      .then((result) => receive(attempt, result))
      .catch((error) => {
        if (!isOver) stop();
        reject(error);
      });
  }

  function receive(attempt: RunningAttempt, result: ServerResult): void {
    if (isOver) return;
    const { server, startMs } = attempt;
    if (result.kind !== "unreachable") server.succeed(startMs);
    else if (!isShortage(result.code)) server.fail(startMs);
    const isAnswered = keep(attempt, result);
    queue = queue.filter((other) => other !== server);
    if (!isAnswered && attempts.length < servers.length) begin();
    else if (isAnswered || attempts.every((one) => one.result !== null)) end(null);
  }

  /** Keeps the result of an attempt; returns true if it answers the question. */
  function keep(attempt: RunningAttempt, result: ServerResult): boolean {
    attempt.result = result;
    attempt.endMs = clock.nowMs();
    const resolution = resolutionOf(attempt.server.text, question, result);
    resolutions.push(resolution);
    return isDecisive(resolution);
  }

  /** @param resolution null for the best of what has come */
  function end(resolution: Resolution | null): void {
    const isTimeout = stop();
    const { name, type, class: asked } = question;
    resolve({
      ...(resolution ?? conclude(resolutions, isTimeout)),
      question: { name, type, ...(asked === "CH" && { class: asked }) },
      queryTimeMs: Math.round(elapsedMs()),
      attempts: attempts.map((attempt) => describe(attempt, clock)),
    });
  }

  /** Ends all attempts and returns true if some have not got a response. */
  function stop(): boolean {
    isOver = true;
    for (const cancel of cancelTimers) cancel();
    signal?.removeEventListener("abort", abort);
    let isSilent = false;
    for (const attempt of attempts) {
      if (attempt.result !== null) continue;
      const { fallback } = attempt.exchange;
      attempt.exchange.stop();
      if (fallback === null) isSilent = true;
      else keep(attempt, fallback);
    }
    leave();
    return isSilent;
  }

  if (signal?.aborted) {
    abort();
  } else {
    signal?.addEventListener("abort", abort);
    at(timeoutMs, () => {
      noteSilence();
      end(null);
    });
    leave = permits.acquire(start, client);
  }
  return promise;
}

function describe({ server, exchange, startMs, endMs, result }: RunningAttempt, clock: Clock) {
  const untilMs = result === null ? clock.nowMs() : endMs;
  return {
    server: server.text,
    transport: result?.transport ?? exchange.transport,
    ms: Math.round(untilMs - startMs),
    outcome: result === null ? "timeout" : outcomeName(result),
  };
}

/** When the attempts at a number of servers begin, in milliseconds after the question. */
function startsMs(servers: number, timeoutMs: number): readonly number[] {
  const evenMs = (ASKING_PART * timeoutMs) / servers;
  const attempts = Math.max(servers, ATTEMPT_STARTS_MS.length);
  return Array.from({ length: attempts }, (_, at) =>
    Math.min(ATTEMPT_STARTS_MS[at] ?? timeoutMs, at * evenMs),
  ).filter((startMs) => startMs < timeoutMs);
}
