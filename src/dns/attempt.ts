import type { Endpoint } from "../addr/endpoint.ts";
import { type ExchangeContext, exchangeTcp, exchangeUdp, type Unreachable } from "./exchange.ts";
import { type Reply, refusesEdns } from "./judge.ts";
import { createQuery } from "./query.ts";
import type { RecordType } from "./record.ts";

/** What carried the message that decided. */
export type Transport = "udp" | "tcp";

/** How one server took the question; null when the signal stopped the attempt. */
export type AttemptEnd = ((Reply | Unreachable) & { readonly transport: Transport }) | null;

/** A question on its way: the name in canonical form, and the type. */
export interface Asked {
  readonly name: string;
  readonly type: RecordType;
}

/**
 * Asks one server: over UDP, over TCP where a datagram cannot be the answer, and once more without
 * EDNS where the server does not take that.
 *
 * @param isFirst whether the query had no socket before
 */
export async function attempt(
  context: ExchangeContext,
  server: Endpoint,
  asked: Asked,
  isFirst: boolean,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  const end = await ask(context, server, asked, true, isFirst, signal);
  return end?.kind === "reply" && refusesEdns(end.message)
    ? ask(context, server, asked, false, false, signal)
    : end;
}

async function ask(
  context: ExchangeContext,
  server: Endpoint,
  { name, type }: Asked,
  withEdns: boolean,
  isFirst: boolean,
  signal: AbortSignal,
): Promise<AttemptEnd> {
  const newQuery = () => createQuery(name, type, withEdns, context.fillRandom);
  const overUdp = await exchangeUdp(context, server, newQuery(), !isFirst, signal);
  if (overUdp?.kind !== "ask-tcp") return overUdp && { ...overUdp, transport: "udp" };
  const overTcp = await exchangeTcp(context, server, newQuery(), signal);
  if (overTcp?.kind !== "reply" && overUdp.fallback !== null) {
    return { kind: "reply", message: overUdp.fallback, transport: "udp" };
  }
  return overTcp && { ...overTcp, transport: "tcp" };
}
