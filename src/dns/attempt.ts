import type { SocketAddress } from "../addr/socket-address.ts";
import type { Clock } from "./clock.ts";
import { exchangeTcp, exchangeUdp, type Unreachable } from "./exchange.ts";
import { CONFIRM_TIMEOUT_MS } from "./limits.ts";
import { type Reply, refusesEdns } from "./match-response.ts";
import { createQuery, type RandomSource } from "./query.ts";
import type { RecordType } from "./record.ts";
import type { SocketPlaces } from "./semaphore.ts";
import type { Sockets } from "./socket.ts";

/** What an attempt needs of the world. */
export interface AttemptContext {
  readonly clock: Clock;
  readonly sockets: Sockets;
  readonly places: SocketPlaces;
  readonly fillRandom: RandomSource;
}

/** A question on its way: the name in canonical form, and the type. */
export interface Asked {
  readonly name: string;
  readonly type: RecordType;
}

/** What carried the message that decided. */
export type Transport = "udp" | "tcp";

/** How one server took the question; null when the signal stopped the attempt. */
export type AttemptEnd = ((Reply | Unreachable) & { readonly transport: Transport }) | null;

/**
 * Asks one server: over UDP, over TCP where a datagram cannot be the answer, and once more without
 * EDNS where the server does not take that. All of it takes one place, for it has one socket at a time.
 *
 * @param isFirst whether no other attempt for the same question has begun
 */
export async function attempt(
  context: AttemptContext,
  server: SocketAddress,
  asked: Asked,
  isFirst: boolean,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  if (!(await context.places.take(!isFirst, signal))) return null;
  try {
    const end = await ask(context, server, asked, true, signal);
    return end?.kind === "reply" && refusesEdns(end.message)
      ? await ask(context, server, asked, false, signal)
      : end;
  } finally {
    context.places.give();
  }
}

async function ask(
  { sockets, fillRandom, clock }: AttemptContext,
  server: SocketAddress,
  { name, type }: Asked,
  withEdns: boolean,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  const newQuery = () => createQuery(name, type, withEdns, fillRandom);
  const overUdp = await exchangeUdp(sockets, server, newQuery(), signal);
  if (overUdp?.kind !== "ask-tcp") return overUdp && { ...overUdp, transport: "udp" };
  const { fallback } = overUdp;
  const askTcp = (stop: AbortSignal) => exchangeTcp(sockets, server, newQuery(), stop);
  const overTcp = await (fallback === null
    ? askTcp(signal)
    : forAtMost(CONFIRM_TIMEOUT_MS, clock, signal, askTcp));
  if (overTcp?.kind !== "reply" && fallback !== null) return { ...fallback, transport: "udp" };
  return overTcp && { ...overTcp, transport: "tcp" };
}

/** Runs something with a signal that is given after so many milliseconds, or with the other signal. */
async function forAtMost<T>(
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
  run: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = new AbortController();
  const cancel = clock.after(timeoutMs, () => timeout.abort());
  try {
    return await run(AbortSignal.any([signal, timeout.signal]));
  } finally {
    cancel();
  }
}
