import type { Ipv6Address } from "../addr/ipv6.ts";
import type { HopPacer } from "./hop-pacer.ts";
import { LIMITS } from "./limits.ts";
import type { Prober } from "./prober.ts";
import { type NoResult, type RunRequest, runProbes } from "./run.ts";
import { TraceMachine } from "./trace-machine.ts";
import type { TraceReport } from "./trace-report.ts";

/** A trace to one target. */
export interface TraceRequest extends RunRequest {
  /** The last hop that is asked, from 1 to 255. */
  readonly maxHops: number;
  /** Called for each address as soon as it has answered, so that its name can be asked for meanwhile. */
  readonly onAddress?: (address: Ipv6Address) => void;
}

/** How a trace ended. */
export type TraceOutcome =
  | (TraceReport & {
      readonly kind: "done";
      /** The address that the probes came from. */
      readonly source: Ipv6Address;
      readonly flowLabel: number;
    })
  | NoResult;

/** Traces the way to a target, beside the traces that share the pacer; see `IcmpEngine`. */
export async function traceroute(
  prober: Prober,
  pacer: HopPacer,
  request: TraceRequest,
): Promise<TraceOutcome> {
  const { target, maxHops, timeoutMs } = request;
  // What the caller does with it is none of the receiver's business.
  const onAddress = (address: Ipv6Address) => queueMicrotask(() => request.onAddress?.(address));
  const maxProbes = maxHops * LIMITS.maxTriesPerHop;
  const ended = await runProbes(prober, request, maxProbes, (send, source) => {
    const task = { source, target, maxHops, timeoutMs, onAddress };
    return new TraceMachine(send, task, pacer);
  });
  if (ended.kind !== "done") return ended;
  const { machine, source, flowLabel } = ended;
  return machine.nothingSent ?? { kind: "done", source, flowLabel, ...machine.report() };
}
