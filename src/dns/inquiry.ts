import { addAbortListener } from "node:events";
import type { FairSlots } from "../gate/fair-slots.ts";
import type { Question } from "./message/message.ts";
import {
  conclude,
  type DnsOutcome,
  isDecisive,
  NO_SERVER,
  outcomeName,
  type Resolution,
  resolutionOf,
} from "./outcome.ts";
import type { DnsServer } from "./server.ts";
import {
  type Exchange,
  type ExchangeContext,
  type ServerResult,
  startExchange,
} from "./transport/exchange.ts";

/** Milliseconds from a question to its outcome, whatever the servers do. */
export const QUERY_TIMEOUT_MS = 5000;

/** The latest starts of attempts while there is no answer, in milliseconds after the question. */
const ATTEMPT_STARTS_MS: readonly number[] = [0, 1000, 2500];

/** The part of the timeout in which every server is asked, at even intervals if there are many. */
const ASKING_PART = 0.8;

/** Milliseconds for which a server that did not answer is asked last, unless it answers meanwhile. */
const FAILURE_MS = 30_000;

/** A server, and when it answered and failed last, by the client's clock. */
export interface RememberedServer {
  readonly address: DnsServer;
  /** As results show it: `[2001:db8::53]:53`. */
  readonly text: string;
  answeredMs: number;
  failedMs: number;
}

interface RunningAttempt {
  readonly server: RememberedServer;
  readonly exchange: Exchange;
  readonly startMs: number;
  endMs?: number;
  result?: ServerResult;
}

/** The timeout, signal and client of a question. */
export interface Terms {
  /** Milliseconds until the outcome is `timeout`. */
  readonly timeoutMs?: number;
  /** Ends the question with the outcome `aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** The client whose share of the questions under way it uses. */
  readonly client?: string;
}

/**
 * Asks one question. Its servers are asked one after the other, those that have failed last. A failure leads to
 * the next at once, and earlier attempts go on.
 *
 * @param slots a question holds one for all its attempts, so that questions cannot wait for each other
 * @throws errors that are not of the network
 */
export async function inquire(
  context: ExchangeContext,
  servers: readonly RememberedServer[],
  slots: FairSlots,
  question: Question,
  { timeoutMs = QUERY_TIMEOUT_MS, signal, client = "" }: Terms,
): Promise<DnsOutcome> {
  const { clock } = context;
  const askedMs = clock.nowMs();
  const attempts: RunningAttempt[] = [];
  const resolutions: Resolution[] = [];
  /** The servers that were not asked yet, then those that have not answered yet. */
  let queue: RememberedServer[] = [];
  const ending = new AbortController();
  const { promise: ended, resolve, reject } = Promise.withResolvers<Resolution | undefined>();
  using held = new DisposableStack();
  held.defer(() => ending.abort());

  const elapsedMs = () => clock.nowMs() - askedMs;
  const waitUntil = (ms: number, action: () => void) =>
    held.defer(clock.after(Math.max(0, ms - elapsedMs()), action));

  /** Ends all attempts, by default with the best result so far. */
  const end = (resolution?: Resolution) => {
    ending.abort();
    resolve(resolution);
  };

  async function start(): Promise<void> {
    const leave = await slots.wait(client, ending.signal);
    // The question can end at the moment at which it gets its slot.
    if (ending.signal.aborted) return leave?.();
    if (leave) held.defer(leave);
    const hasFailed = ({ answeredMs, failedMs }: RememberedServer) =>
      failedMs > answeredMs && clock.nowMs() - failedMs < FAILURE_MS;
    queue = servers.toSorted((a, b) => Number(hasFailed(a)) - Number(hasFailed(b)));
    begin();
    // A question that waited for its slot does not also wait for a silent server.
    for (const startMs of startsMs(servers.length, timeoutMs).slice(1)) {
      waitUntil(startMs, () => {
        noteSilence();
        begin();
      });
    }
  }

  /** A server that has answered another question since is only slow with this one. */
  function noteFailure({ server, startMs }: RunningAttempt): void {
    if (server.answeredMs < startMs) server.failedMs = clock.nowMs();
  }

  function noteSilence(): void {
    for (const attempt of attempts) if (!attempt.result) noteFailure(attempt);
  }

  function begin(): void {
    const server = queue.shift();
    if (server === undefined) return;
    queue.push(server);
    const startMs = clock.nowMs();
    // A server that drops queries with EDNS answers one without it, but cannot send signatures then.
    const isLast = attempts.length > 1 && attempts.some((other) => other.server === server);
    const withEdns = question.dnssec === true || !isLast;
    const exchange = startExchange(context, server.address, question, withEdns, ending.signal);
    const attempt: RunningAttempt = { server, exchange, startMs };
    attempts.push(attempt);
    exchange.result.then((result) => receive(attempt, result), reject);
  }

  function receive(attempt: RunningAttempt, result: ServerResult): void {
    if (ending.signal.aborted) return;
    const { server } = attempt;
    attempt.result = result;
    attempt.endMs = clock.nowMs();
    const resolution = resolutionOf(server.text, question, result);
    resolutions.push(resolution);
    if (resolution.kind !== "unreachable") server.answeredMs = attempt.endMs;
    else if (resolution.rcode !== "SHORTAGE") noteFailure(attempt);
    const isAnswered = isDecisive(resolution);
    queue = queue.filter((other) => other !== server);
    if (!isAnswered && attempts.length < servers.length) begin();
    else if (isAnswered || attempts.every((one) => one.result)) end();
  }

  if (signal?.aborted) end({ kind: "aborted" });
  else if (servers.length === 0) end(NO_SERVER);
  else {
    if (signal) held.use(addAbortListener(signal, () => end({ kind: "aborted" })));
    waitUntil(timeoutMs, () => {
      noteSilence();
      end();
    });
    start().catch(reject);
  }
  const resolution = await ended;
  const isTimeout = attempts.some(({ result }) => !result);
  const { name, type, class: questionClass } = question;
  return {
    ...(resolution ?? conclude(resolutions, isTimeout)),
    question: { name, type, ...(questionClass === "CH" && { class: questionClass }) },
    queryTimeMs: Math.round(elapsedMs()),
    attempts: attempts.map(({ server, exchange, startMs, endMs = clock.nowMs(), result }) => ({
      server: server.text,
      transport: (result ?? exchange).transport,
      ms: Math.round(endMs - startMs),
      outcome: result ? outcomeName(result) : "timeout",
    })),
  };
}

/** The starts of the attempts at a number of servers, in milliseconds after the question. */
function startsMs(servers: number, timeoutMs: number): readonly number[] {
  const evenMs = (ASKING_PART * timeoutMs) / servers;
  const attempts = Math.max(servers, ATTEMPT_STARTS_MS.length);
  return Array.from({ length: attempts }, (_, at) =>
    Math.min(ATTEMPT_STARTS_MS[at] ?? timeoutMs, at * evenMs),
  ).filter((startMs) => startMs < timeoutMs);
}
