import { type ExchangeContext, startExchange } from "./exchange.ts";
import { createQuestion } from "./message.ts";
import { type DnsServer, formatDnsServer } from "./server.ts";

/** Milliseconds that a server has to answer a check, and at least between two checks of it. */
const CHECK_TIMEOUT_MS = 1000;

/** The least and the most milliseconds to wait where no server has answered lately. */
const MIN_PATIENCE_MS = 250;
const MAX_PATIENCE_MS = 750;

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
  let smoothedMs = 0;
  let isChecking = false;

  /** Remembers any response to what was sent at `sentMs`. */
  const succeed = (sentMs: number) => {
    const nowMs = clock.nowMs();
    smoothedMs += (nowMs - sentMs - smoothedMs) * (lastSuccessMs < 0 ? 1 : SMOOTHING);
    lastSuccessMs = nowMs;
    hasFailed = false;
  };
  return {
    address,
    /** As results show it: `[2001:db8::53]:53`. */
    text: formatDnsServer(address),
    /** True if it was silent or unreachable when it was asked last. */
    get hasFailed() {
      return hasFailed;
    },
    /** Milliseconds after which a server that has failed is taken for dead: four times its usual response time. */
    get patienceMs() {
      return Math.min(Math.max(4 * smoothedMs, MIN_PATIENCE_MS), MAX_PATIENCE_MS);
    },
    succeed,
    /** Remembers that there was no response to what was sent at `sentMs`, unless it answered something else since. */
    fail(sentMs: number): void {
      if (lastSuccessMs < sentMs) hasFailed = true;
    },
    /** Asks a server that has failed in the background if it answers again, at most once a second. */
    check(): void {
      if (!hasFailed || isChecking) return;
      isChecking = true;
      const sentMs = clock.nowMs();
      const end = () => {
        exchange.stop();
        cancel();
        isChecking = false;
      };
      const cancel = clock.after(CHECK_TIMEOUT_MS, end);
      const exchange = startExchange(context, address, CHECK, {
        done: ({ kind }) => {
          if (kind === "unreachable") return;
          succeed(sentMs);
          end();
        },
        // A question that meets the same error reports it.
        broken: () => {},
      });
    },
  };
}

/** The servers in the order in which to ask them: those that have failed come last. */
export function inOrder(servers: readonly RememberedServer[]): RememberedServer[] {
  return servers.toSorted((a, b) => Number(a.hasFailed) - Number(b.hasFailed));
}
