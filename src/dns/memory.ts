import { Exchange, type ExchangeContext } from "./exchange.ts";
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
export class Server {
  readonly address: DnsServer;
  /** As results show it: `[2001:db8::53]:53`. */
  readonly text: string;
  readonly #context: ExchangeContext;
  #hasFailed = false;
  #lastSuccessMs = Number.NEGATIVE_INFINITY;
  #smoothedMs = 0;
  #isChecking = false;

  constructor(address: DnsServer, context: ExchangeContext) {
    this.address = address;
    this.text = formatDnsServer(address);
    this.#context = context;
  }

  /** Whether it was silent or unreachable when it was asked last. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Milliseconds after which a server that has failed is taken for dead: four times its usual response time. */
  get patienceMs(): number {
    return Math.min(Math.max(4 * this.#smoothedMs, MIN_PATIENCE_MS), MAX_PATIENCE_MS);
  }

  /** Remembers any response to what was sent at `sentMs`. */
  succeed(sentMs: number): void {
    const nowMs = this.#context.clock.nowMs();
    const isFirst = this.#lastSuccessMs < 0;
    this.#smoothedMs += (nowMs - sentMs - this.#smoothedMs) * (isFirst ? 1 : SMOOTHING);
    this.#lastSuccessMs = nowMs;
    this.#hasFailed = false;
  }

  /** Remembers that there was no response to what was sent at `sentMs`, unless it answered something else since. */
  fail(sentMs: number): void {
    if (this.#lastSuccessMs < sentMs) this.#hasFailed = true;
  }

  /** Asks a server that has failed in the background whether it answers again, at most once a second. */
  check(): void {
    if (!this.#hasFailed || this.#isChecking) return;
    this.#isChecking = true;
    const { clock } = this.#context;
    const sentMs = clock.nowMs();
    const end = () => {
      exchange.stop();
      cancel();
      this.#isChecking = false;
    };
    const cancel = clock.after(CHECK_TIMEOUT_MS, end);
    const exchange = new Exchange(this.#context, this.address, CHECK, {
      done: ({ kind }) => {
        if (kind === "unreachable") return;
        this.succeed(sentMs);
        end();
      },
      // A question that meets the same error reports it.
      broken: () => {},
    });
  }
}

/** The servers in the order in which to ask them: those that have failed come last. */
export function inOrder(servers: readonly Server[]): Server[] {
  return [
    ...servers.filter(({ hasFailed }) => !hasFailed),
    ...servers.filter(({ hasFailed }) => hasFailed),
  ];
}
