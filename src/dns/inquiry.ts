import { Exchange, type ExchangeContext, type ServerResult } from "./exchange.ts";
import { inOrder, type Server } from "./memory.ts";
import type { Question } from "./message.ts";
import {
  type Attempt,
  conclude,
  type DnsOutcome,
  isDecisive,
  isShortage,
  outcomeName,
  type Resolution,
  resolutionOf,
} from "./outcome.ts";
import type { Semaphore } from "./semaphore.ts";

/** When attempts begin at the latest while no answer has come, in milliseconds after the question. */
const ATTEMPT_STARTS_MS: readonly number[] = [0, 1000, 2500];

/** The part of the time in which every server has been asked, at even intervals if need be. */
const ASKING_PART = 0.8;

/** How long a question may take, and since when. */
interface Deadline {
  readonly startMs: number;
  readonly timeoutMs: number;
}

interface RunningAttempt {
  readonly server: Server;
  readonly exchange: Exchange;
  readonly startMs: number;
  endMs: number;
  result: ServerResult | null;
}

/**
 * One question under way. Its servers are asked one after the other, a failure leads to the next at
 * once, and earlier attempts go on. If all servers have failed before, all are asked at once, and the
 * question ends early if they stay silent.
 */
export class Inquiry {
  /** Resolves with the outcome; rejects with an error that is not about the network. */
  readonly outcome: Promise<DnsOutcome>;
  readonly #resolve: (outcome: DnsOutcome) => void;
  readonly #reject: (error: unknown) => void;
  readonly #context: ExchangeContext;
  readonly #servers: readonly Server[];
  readonly #question: Question;
  readonly #deadline: Deadline;
  readonly #leave: () => void;
  readonly #attempts: RunningAttempt[] = [];
  readonly #resolutions: Resolution[] = [];
  /** First the servers that were not asked yet, then those that have not answered yet. */
  #queue: Server[] = [];
  /** Milliseconds after the start at which something is due, the last of them the deadline. */
  #dueMs: readonly number[];
  #isHopeless = false;
  #isOver = false;
  #cancelTimer = () => {};

  /** @param permits a question holds one for all its attempts, so that questions cannot wait for each other */
  constructor(
    context: ExchangeContext,
    servers: readonly Server[],
    question: Question,
    deadline: Deadline,
    permits: Semaphore,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<DnsOutcome>();
    this.outcome = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#context = context;
    this.#servers = servers;
    this.#question = question;
    this.#deadline = deadline;
    this.#dueMs = [deadline.timeoutMs];
    this.#leave = permits.acquire(() => this.#start());
    if (this.#attempts.length === 0) this.#wait();
  }

  /** Ends the question with the outcome `aborted`. */
  abort(): void {
    this.#end({ kind: "aborted" });
  }

  get #elapsedMs(): number {
    return this.#context.clock.nowMs() - this.#deadline.startMs;
  }

  #start(): void {
    const { timeoutMs } = this.#deadline;
    this.#queue = inOrder(this.#servers);
    this.#isHopeless = this.#servers.every(({ hasFailed }) => hasFailed);
    if (this.#isHopeless) {
      const patienceMs = Math.max(...this.#servers.map((server) => server.patienceMs));
      this.#dueMs = [Math.min(this.#elapsedMs + patienceMs, timeoutMs), timeoutMs];
      for (const _ of this.#servers) this.#begin();
    } else {
      this.#dueMs = [...startsMs(this.#servers.length, timeoutMs).slice(1), timeoutMs];
      this.#begin();
    }
    this.#wait();
    for (const server of this.#servers) server.check();
  }

  /** Sets the one timer of the question. A question that waited for its permit does not also wait for a silent server. */
  #wait(): void {
    const [nextMs = 0] = this.#dueMs;
    this.#cancelTimer();
    this.#cancelTimer = this.#context.clock.after(Math.max(0, nextMs - this.#elapsedMs), () =>
      this.#tick(),
    );
  }

  #tick(): void {
    this.#dueMs = this.#dueMs.slice(1);
    for (const { server, startMs, result } of this.#attempts) {
      if (result === null) server.fail(startMs);
    }
    const isDead = this.#isHopeless && this.#servers.every(({ hasFailed }) => hasFailed);
    if (this.#dueMs.length === 0 || isDead) {
      this.#end(null);
    } else {
      for (const { server } of this.#attempts) server.check();
      if (!this.#isHopeless) this.#begin();
      this.#wait();
    }
  }

  #begin(): void {
    const server = this.#queue.shift();
    if (server === undefined) return;
    this.#queue.push(server);
    const startMs = this.#context.clock.nowMs();
    const exchange = new Exchange(this.#context, server.address, this.#question, {
      done: (result) => this.#receive(attempt, result),
      broken: (error) => {
        this.#stop();
        this.#reject(error);
      },
    });
    const attempt: RunningAttempt = { server, exchange, startMs, endMs: startMs, result: null };
    this.#attempts.push(attempt);
  }

  #receive(attempt: RunningAttempt, result: ServerResult): void {
    const { server, startMs } = attempt;
    if (result.kind !== "unreachable") server.succeed(startMs);
    else if (!isShortage(result.code)) server.fail(startMs);
    const isAnswered = this.#keep(attempt, result);
    this.#queue = this.#queue.filter((other) => other !== server);
    if (!isAnswered && this.#attempts.length < this.#servers.length) this.#begin();
    else if (isAnswered || this.#attempts.every((one) => one.result !== null)) this.#end(null);
  }

  /** Keeps the result of an attempt; returns whether it answers the question. */
  #keep(attempt: RunningAttempt, result: ServerResult): boolean {
    attempt.result = result;
    attempt.endMs = this.#context.clock.nowMs();
    const resolution = resolutionOf(attempt.server.text, this.#question, result);
    this.#resolutions.push(resolution);
    return isDecisive(resolution);
  }

  /** @param resolution null for the best of what has come */
  #end(resolution: Resolution | null): void {
    if (this.#isOver) return;
    const isTimeout = this.#stop();
    const { name, type } = this.#question;
    this.#resolve({
      ...(resolution ?? conclude(this.#resolutions, isTimeout)),
      question: { name, type },
      queryTimeMs: Math.round(this.#elapsedMs),
      attempts: this.#attempts.map((attempt) => this.#describe(attempt)),
    });
  }

  /** Ends all attempts and returns whether some have not got a response. */
  #stop(): boolean {
    this.#isOver = true;
    this.#cancelTimer();
    let isSilent = false;
    for (const attempt of this.#attempts) {
      if (attempt.result !== null) continue;
      const fallback = attempt.exchange.stop();
      if (fallback === null) isSilent = true;
      else this.#keep(attempt, fallback);
    }
    this.#leave();
    return isSilent;
  }

  #describe({ server, exchange, startMs, endMs, result }: RunningAttempt): Attempt {
    const untilMs = result === null ? this.#context.clock.nowMs() : endMs;
    return {
      server: server.text,
      transport: result?.transport ?? exchange.transport,
      ms: Math.round(untilMs - startMs),
      outcome: result === null ? "timeout" : outcomeName(result),
    };
  }
}

/** When attempts at so many servers begin, in milliseconds after the question. */
function startsMs(servers: number, timeoutMs: number): readonly number[] {
  const evenMs = (ASKING_PART * timeoutMs) / servers;
  const attempts = Math.max(servers, ATTEMPT_STARTS_MS.length);
  return Array.from({ length: attempts }, (_, at) =>
    Math.min(ATTEMPT_STARTS_MS[at] ?? timeoutMs, at * evenMs),
  ).filter((startMs) => startMs < timeoutMs);
}
