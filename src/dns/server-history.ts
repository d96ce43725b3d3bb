import { createQuestion } from "./message/message.ts";
import { type DnsServer, formatDnsServer } from "./server.ts";
import { type Exchange, type ExchangeContext, startExchange } from "./transport/exchange.ts";

/** Milliseconds in which an answer shows that a server is alive, as long as a question waits for one. */
const TRIAL_MS = 5000;

/** Milliseconds between two checks of a server that has failed. */
const CHECK_INTERVAL_MS = 1000;

/** Milliseconds between two exchanges with a server that has failed that go on when their question has ended. */
const LEFT_INTERVAL_MS = 250;

/** The least milliseconds to wait where no server has answered lately. */
const MIN_PATIENCE_MS = 250;

/**
 * Milliseconds for which a server counts as dead after a question that it did not answer: within two more
 * seconds, the first question or check after its return is answered, also by a slow server.
 */
const DEAD_MS = 3000;

/** Milliseconds between a question and the next attempt: servers that usually take longer are asked behind the others. */
const SLOW_MS = 1000;

/** The part of a new response time in the smoothed one; RFC 6298 section 2. */
const SMOOTHING = 1 / 8;

/** Every resolver knows the name servers of the root, so that only a dead one is silent. */
const CHECK = createQuestion(".", "NS");

/** A server, and what is remembered of it. */
export type RememberedServer = ReturnType<typeof rememberServer>;

/** Begins to remember how a server answers. */
export function rememberServer(address: DnsServer, context: ExchangeContext) {
  const { clock } = context;
  let hasFailed = false;
  let lastSuccessMs = Number.NEGATIVE_INFINITY;
  /** The end of the last question that it did not answer. */
  let deadMs = Number.NEGATIVE_INFINITY;
  let lastCheckMs = Number.NEGATIVE_INFINITY;
  let lastLeftMs = Number.NEGATIVE_INFINITY;
  let smoothedMs = 0;

  /** Remembers any response to what was sent at `sentMs`. */
  const succeed = (sentMs: number) => {
    const nowMs = clock.nowMs();
    smoothedMs += (nowMs - sentMs - smoothedMs) * (lastSuccessMs < 0 ? 1 : SMOOTHING);
    lastSuccessMs = nowMs;
    hasFailed = false;
  };
  const isSlow = () => smoothedMs >= SLOW_MS;
  /** Ends an exchange when an answer would not be in time. */
  const expire = (exchange: Exchange, sentMs: number) =>
    clock.after(Math.max(0, sentMs + TRIAL_MS - clock.nowMs()), () => exchange.stop());
  return {
    address,
    /** As results show it: `[2001:db8::53]:53`. */
    text: formatDnsServer(address),
    /** The place among the servers to ask: 0 for one that answers fast, 2 for one that was silent or unreachable when it was asked last. */
    get rank() {
      return hasFailed ? 2 : Number(isSlow());
    },
    /** True if it has failed, and a question has ended lately without its answer. */
    get isDead() {
      return hasFailed && clock.nowMs() - deadMs < DEAD_MS;
    },
    /** Milliseconds after which a dead server is given up: four times its usual response time. */
    get patienceMs() {
      return Math.max(4 * smoothedMs, MIN_PATIENCE_MS);
    },
    succeed,
    /**
     * Remembers that there was no response to what was sent at `sentMs`, unless it answered something else since.
     *
     * @param isFinal true if the question does not wait for it any longer
     */
    fail(sentMs: number, isFinal: boolean): void {
      if (lastSuccessMs >= sentMs) return;
      hasFailed = true;
      if (isFinal) deadMs = clock.nowMs();
    },
    /** Asks a server that has failed or is slow in the background if it answers, at most once a second. */
    check(): void {
      const sentMs = clock.nowMs();
      if (!(hasFailed || isSlow()) || sentMs - lastCheckMs < CHECK_INTERVAL_MS) return;
      lastCheckMs = sentMs;
      const exchange = startExchange(context, address, CHECK, {
        done: ({ kind }) => {
          cancel();
          if (kind !== "unreachable") succeed(sentMs);
        },
        // A question that meets the same error reports it.
        broken: () => cancel(),
      });
      const cancel = expire(exchange, sentMs);
    },
    /** Ends an exchange whose question has ended. Of a server that has failed, some go on: any answer shows that it is alive. */
    leave(exchange: Exchange, sentMs: number): void {
      const nowMs = clock.nowMs();
      if (!hasFailed || nowMs - lastLeftMs < LEFT_INTERVAL_MS) {
        exchange.stop();
      } else {
        lastLeftMs = nowMs;
        expire(exchange, sentMs);
      }
    },
  };
}

/** The servers in the order in which to ask them: those that are slow and those that have failed come last. */
export function inOrder(servers: readonly RememberedServer[]): RememberedServer[] {
  return servers.toSorted((a, b) => a.rank - b.rank);
}
