import { createQuestion } from "./message/message.ts";
import { type DnsServer, formatDnsServer } from "./server.ts";
import { type ExchangeContext, startExchange } from "./transport/exchange.ts";

/** Milliseconds in which an answer to a check shows that a server is alive. */
const TRIAL_MS = 5000;

/** Milliseconds between two checks of a server that has failed. */
const CHECK_INTERVAL_MS = 1000;

/** Milliseconds between a question and the next attempt: a server that takes longer counts as failed. */
const SLOW_MS = 1000;

/** Every resolver knows the name servers of the root, so that only a dead one is silent. */
const CHECK = createQuestion(".", "NS");

/** A server, and what is remembered of it. */
export type RememberedServer = ReturnType<typeof rememberServer>;

/** Begins to remember how a server answers. */
export function rememberServer(address: DnsServer, context: ExchangeContext) {
  const { clock } = context;
  let hasFailed = false;
  let lastResponseMs = Number.NEGATIVE_INFINITY;
  let lastCheckMs = Number.NEGATIVE_INFINITY;

  /** Remembers any response to what was sent at `sentMs`. */
  const succeed = (sentMs: number) => {
    lastResponseMs = clock.nowMs();
    hasFailed = lastResponseMs - sentMs >= SLOW_MS;
  };
  return {
    address,
    /** As results show it: `[2001:db8::53]:53`. */
    text: formatDnsServer(address),
    /** True if it was silent, slow or unreachable when it was asked last. */
    get hasFailed() {
      return hasFailed;
    },
    succeed,
    /** Remembers that there was no response to what was sent at `sentMs`, unless it answered something else since. */
    fail(sentMs: number): void {
      if (lastResponseMs < sentMs) hasFailed = true;
    },
    /** Asks a server that has failed in the background if it answers, at most once a second. */
    check(): void {
      const sentMs = clock.nowMs();
      if (!hasFailed || sentMs - lastCheckMs < CHECK_INTERVAL_MS) return;
      lastCheckMs = sentMs;
      const exchange = startExchange(context, address, CHECK);
      const cancel = clock.after(TRIAL_MS, () => exchange.stop());
      exchange.result
        .then(({ kind }) => kind === "unreachable" || succeed(sentMs))
        // A question that meets the same error reports it.
        .catch(() => {})
        .finally(cancel);
    },
  };
}
