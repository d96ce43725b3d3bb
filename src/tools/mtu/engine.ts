import type { Prober } from "../../icmp/prober/prober.ts";
import type { RunOptions } from "../engine.ts";
import { type TraceRequest, traceroute } from "../trace/engine.ts";
import { describeHop, type TraceHop } from "../trace/responses.ts";
import { createPackets } from "./packets.ts";
import type { MtuHop, TooBig } from "./result.ts";
import { ECHO, searchPath, TRACE_BYTES, UDP } from "./size-search.ts";
import { conclude } from "./verdict.ts";

/** How a measurement ended. */
export type MtuOutcome = Awaited<ReturnType<typeof measureMtu>>;

/** How the caller takes part in a measurement. */
export interface MtuOptions extends RunOptions {
  /** Called with each hop as soon as it is measured; other hops can still change its row. */
  readonly onHop?: ((hop: MtuHop) => void) | undefined;
}

/** Milliseconds after which a measurement ends with the bounds that are known. */
export const LONGEST_SEARCH_MS = 14_500;

/**
 * Measures the path MTU and where the path narrows. Packet Too Big (RFC 8201) says which size to try next. Without it,
 * the sizes that are answered decide (RFC 8899). Routers are measured with packets that expire there. The target's echo
 * reply is as large as the request; only UDP to a closed port shows the way there alone.
 */
export async function measureMtu(
  prober: Prober,
  request: TraceRequest,
  { signal: callersSignal, onHop }: MtuOptions = {},
) {
  const { target, scopeId = 0, timeoutMs, caller } = request;
  const { clock } = prober;
  const route = prober.route(target, scopeId, request.flowLabel);
  if (typeof route === "string") return { kind: "unreachable", code: route } as const;
  const end = new AbortController();
  using held = new DisposableStack();
  held.defer(clock.after(LONGEST_SEARCH_MS, () => end.abort()));
  held.defer(() => end.abort());
  const callers = prober.signalFor(callersSignal);
  const signal = AbortSignal.any([callers, end.signal]);
  const rows: TraceHop[] = [];
  const wish = { target, scopeId, ...route, timeoutMs, caller, signal };
  const packets = createPackets(prober, wish, rows, (bytes) => path.pass(UDP, bytes));
  const { believed } = packets;

  const rowOf = ({ hop, ip, hostname, end, details: { zone } = {} }: TraceHop): MtuHop => {
    const { atLeast, atMost } = path.boundsOf(end === "reached" ? UDP : hop);
    const isKnown = ip !== null && atLeast > 0;
    const sizes = { mtu: isKnown ? atLeast : null, atMost: isKnown ? atMost : null };
    return { hop, ip, hostname, ...sizes, ...(zone && { details: { zone } }) };
  };

  const path = searchPath({ send: packets.send, clock, signal }, (hop) => {
    if (!signal.aborted) onHop?.(rowOf(rows[hop - 1] as TraceHop));
  });
  const onRow = (row: TraceHop) => {
    rows[row.hop - 1] = row;
    if (row.end === "reached") path.pass(ECHO, TRACE_BYTES);
    else if (row.ip !== null) path.add(row.hop);
  };
  const traceRequest = { ...request, flowLabel: route.flowLabel };
  const tracing = traceroute(prober, traceRequest, { signal, onHop: onRow });
  // If the target is silent, the result does not wait for the rest of the trace.
  const isSilent = path.settle().then(() => (path.boundsOf(ECHO).atLeast > 0 ? tracing : null));
  const traced = await Promise.race([tracing, isSilent]);
  if (traced?.kind === "unreachable") return traced;
  await path.finish();
  if (callers.aborted) return { kind: "aborted" } as const;
  const ended = rows.findIndex((row) => row?.end === "reached");
  const known = rows.slice(0, ended < 0 ? undefined : ended + 1);
  const shown = Array.from(known, (row, at) => row ?? describeHop(at + 1, [], target, target));
  const hops = (traced?.kind === "done" ? traced.hops : shown).map(rowOf);
  for (const hop of hops) onHop?.(hop);
  const [echo, way] = [path.boundsOf(ECHO), path.boundsOf(UDP)];
  for (const message of believed) {
    if (message.mtu < Math.max(echo.atLeast, way.atLeast))
      packets.doubt({ ...message, doubt: "disproved" });
  }
  const placed = <Message extends TooBig>(message: Message) => {
    const hop = hops.find(({ ip }) => ip === message.from)?.hop ?? null;
    return { ...message, hop };
  };
  return {
    kind: "done" as const,
    ...route,
    /** From 1 to the end of the path, or the last hop that answered. */
    hops,
    ...conclude(echo, way, hops, believed.map(placed)),
    /** The last other error that answered an echo request; null without one, and if the target answers all that gets through. */
    error: echo.atLeast > 0 && echo.limit !== "silence" ? null : packets.error(),
    doubtful: packets.doubtful().map(placed),
  };
}
