import type { SocketAddress } from "../addr/socket-address.ts";
import type { Clock } from "./clock.ts";

/** What a schedule runs by. */
export interface Plan<Result> {
  /** In the order of preference; see `alternateFamilies`. */
  readonly servers: readonly SocketAddress[];
  /** When attempts begin as long as none has decided, in milliseconds, ascending from 0. */
  readonly startsMs: readonly number[];
  /** When all ends, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Ends all at once. */
  readonly signal: AbortSignal;
  /** Asks one server until it has a result; null when its signal stops it before. */
  attempt(server: SocketAddress, isFirst: boolean, signal: AbortSignal): Promise<Result | null>;
  /** Whether the result answers the question, so that no other server need be asked. */
  isDecisive(result: Result): boolean;
  /** Whether an attempt that has just begun has to wait until something else ends. */
  isCrowded(): boolean;
}

/** What ended a schedule: a decisive result, attempts that failed at every server, the time, or the signal. */
type EndReason = "decided" | "failed" | "timeout" | "aborted";

/** How a schedule ended. */
export interface ScheduleEnd<Result> {
  readonly reason: EndReason;
  /** What the attempts resulted in, in the order in which they ended. */
  readonly results: readonly Result[];
}

/**
 * Asks the servers in turn until one decides. An attempt begins at each of the plan's moments, and at
 * once where an attempt ends without deciding and a server has not been asked yet; such a server is
 * not asked again. Earlier attempts go on, so that a late answer still counts. When this returns,
 * every attempt has ended.
 */
export async function runSchedule<Result>(plan: Plan<Result>): Promise<ScheduleEnd<Result>> {
  const { promise, resolve: end, reject } = Promise.withResolvers<EndReason>();
  const results: Result[] = [];
  /** Whom to ask next: who was not asked yet, then who has not answered yet. */
  const queue = [...plan.servers];
  const running = new Map<AbortController, Promise<void>>();
  let begun = 0;
  let hasEnded = false;

  const begin = () => {
    const server = queue.shift();
    if (server === undefined) return;
    queue.push(server);
    const isFirst = begun === 0;
    begun += 1;
    const controller = new AbortController();
    const [oldest] = running.keys();
    running.set(controller, run(server, isFirst, controller).catch(reject));
    // Nobody's second socket may wait for somebody else's first: then all would wait to the end.
    if (plan.isCrowded()) oldest?.abort();
  };

  const run = async (server: SocketAddress, isFirst: boolean, controller: AbortController) => {
    const result = await plan.attempt(server, isFirst, controller.signal);
    running.delete(controller);
    if (result === null) return;
    results.push(result);
    if (plan.isDecisive(result)) return end("decided");
    if (hasEnded) return;
    const index = queue.indexOf(server);
    if (index >= 0) queue.splice(index, 1);
    if (begun < plan.servers.length) begin();
    else if (running.size === 0) end("failed");
  };

  const timers = [
    plan.clock.after(plan.timeoutMs, () => end("timeout")),
    ...plan.startsMs.slice(1).map((startMs) => plan.clock.after(startMs, begin)),
  ];
  const abort = () => end("aborted");
  plan.signal.addEventListener("abort", abort);
  begin();
  try {
    return { reason: await promise, results };
  } finally {
    hasEnded = true;
    plan.signal.removeEventListener("abort", abort);
    for (const cancel of timers) cancel();
    for (const controller of running.keys()) controller.abort();
    await Promise.all(running.values());
  }
}

/**
 * The servers in their order, but with the address families taking turns as long as there are both:
 * where one family is dead, the second attempt already goes to the other.
 */
export function alternateFamilies(servers: readonly SocketAddress[]): readonly SocketAddress[] {
  const first = servers.filter(({ address }) => address.version === servers[0]?.address.version);
  const second = servers.filter((server) => !first.includes(server));
  return Array.from({ length: servers.length }, (_, turn) => [first[turn], second[turn]])
    .flat()
    .filter((server) => server !== undefined);
}
