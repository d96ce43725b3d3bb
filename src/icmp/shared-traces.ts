import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import type { TraceOutcome, TraceRequest } from "./traceroute.ts";

type Trace = (request: TraceRequest) => Promise<TraceOutcome>;

interface Shared {
  readonly outcome: Promise<TraceOutcome>;
  readonly abort: AbortController;
  readonly addresses: Ipv6Address[];
  readonly listeners: Set<(address: Ipv6Address) => void>;
  callers: number;
}

/**
 * Lets callers that ask for the same trace while it is running have the same answer, so that many who
 * look at one target cost its routers no more than one. The trace is aborted when the last of them has
 * gone.
 */
export function shareTraces(trace: Trace): Trace {
  const running = new Map<string, Shared>();

  /** Nobody joins it any more; the next trace for its key may be there already. */
  const retire = (key: string, shared: Shared) => {
    if (running.get(key) === shared) running.delete(key);
  };

  const begin = (key: string, request: TraceRequest): Shared => {
    const abort = new AbortController();
    const addresses: Ipv6Address[] = [];
    const listeners = new Set<(address: Ipv6Address) => void>();
    const onAddress = (address: Ipv6Address) => {
      addresses.push(address);
      for (const listener of listeners) listener(address);
    };
    const outcome = trace({ ...request, onAddress, signal: abort.signal });
    const shared = { outcome, abort, addresses, listeners, callers: 0 };
    running.set(key, shared);
    const end = () => retire(key, shared);
    outcome.then(end, end);
    return shared;
  };

  return async (request) => {
    const { signal, onAddress } = request;
    if (signal?.aborted) return { kind: "aborted" };
    const key = keyOf(request);
    const shared = running.get(key) ?? begin(key, request);
    shared.callers++;
    if (onAddress !== undefined) {
      for (const address of shared.addresses) onAddress(address);
      shared.listeners.add(onAddress);
    }
    const aborted = Promise.withResolvers<TraceOutcome>();
    const abort = () => aborted.resolve({ kind: "aborted" });
    signal?.addEventListener("abort", abort);
    try {
      return await Promise.race([shared.outcome, aborted.promise]);
    } finally {
      signal?.removeEventListener("abort", abort);
      if (onAddress !== undefined) shared.listeners.delete(onAddress);
      if (--shared.callers === 0) {
        retire(key, shared);
        shared.abort.abort();
      }
    }
  };
}

function keyOf({ target, scopeId, maxHops, timeoutMs }: TraceRequest): string {
  return [formatIpv6(target), scopeId ?? 0, maxHops, timeoutMs].join(" ");
}
