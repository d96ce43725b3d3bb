import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import { Coalescer } from "../util/coalesce.ts";
import type { TraceOutcome, TraceRequest } from "./traceroute.ts";

type Trace = (request: TraceRequest) => Promise<TraceOutcome>;

/**
 * Lets callers that ask for the same trace while it is running have the same answer, so that many who
 * look at one target cost its routers no more than one. The trace is aborted when the last of them has
 * gone.
 */
export function shareTraces(trace: Trace): Trace {
  const running = new Coalescer<TraceOutcome, Ipv6Address>();
  return async (request) => {
    const outcome = await running.join(
      keyOf(request),
      request.signal,
      (signal, onAddress) => trace({ ...request, signal, onAddress }),
      request.onAddress,
    );
    return outcome ?? { kind: "aborted" };
  };
}

function keyOf({ target, scopeId, maxHops, timeoutMs }: TraceRequest): string {
  return [formatIpv6(target), scopeId ?? 0, maxHops, timeoutMs].join(" ");
}
