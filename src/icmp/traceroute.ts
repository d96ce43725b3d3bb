import type { Ipv6Address } from "../addr/ipv6.ts";
import type { InterfaceInformation, MplsLabel } from "./extensions.ts";
import { LIMITS } from "./limits.ts";
import type { Prober } from "./prober.ts";
import { type NoResult, type RunRequest, runProbes } from "./run.ts";
import { TraceMachine } from "./trace-machine.ts";

/** A trace to one target. */
export interface TraceRequest extends RunRequest {
  /** The last hop that is asked, from 1 to 255. */
  readonly maxHops: number;
  /** Called for each address as soon as it has answered, so that its name can be asked for meanwhile. */
  readonly onAddress?: (address: Ipv6Address) => void;
}

/** A hop of a trace; one that was silent has null and empty lists. */
export interface TraceHop {
  /** From 1. */
  readonly hop: number;
  readonly address: Ipv6Address | null;
  /** Milliseconds, not rounded. */
  readonly rttMs: number | null;
  /** All times, `rttMs` first. */
  readonly rttsMs: readonly number[];
  /** All addresses that answered, `address` first. */
  readonly addresses: readonly Ipv6Address[];
  readonly mpls: readonly MplsLabel[];
  readonly interfaces: readonly InterfaceInformation[];
  /** The MTU of the link behind the hop, where it reported one. */
  readonly mtuBytes: number | null;
}

/** Why a trace ended. */
export type TraceReason =
  | "reached"
  | "unreachable"
  | "prohibited"
  | "packet-too-big"
  | "parameter-problem"
  | "gap-limit"
  | "max-hops";

/** The ICMPv6 error that ended a trace. */
export interface TraceError {
  readonly type: number;
  readonly code: number;
  /** See `errorName`. */
  readonly name: string;
  /** Who sent it; the trace's own source where a neighbour did not resolve. */
  readonly from: Ipv6Address;
  /** Whether the target itself sent it, as a firewall on it does. */
  readonly fromTarget: boolean;
}

/** What a trace found. */
export interface TraceReport {
  /** From 1 to where the trace ended, without gaps; at most `LIMITS.gapLimit` silent ones at the end. */
  readonly hops: readonly TraceHop[];
  /** Whether the target replied. */
  readonly reached: boolean;
  readonly reason: TraceReason;
  readonly error: TraceError | null;
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

/** Traces the way to a target; see `IcmpEngine`. */
export async function traceroute(prober: Prober, request: TraceRequest): Promise<TraceOutcome> {
  const maxProbes = request.maxHops * LIMITS.maxTriesPerHop;
  const ended = await runProbes(
    prober,
    request,
    maxProbes,
    (send, source) => new TraceMachine(send, source, request),
  );
  if (ended.kind !== "done") return ended;
  const { machine, source, flowLabel } = ended;
  return machine.nothingSent ?? { kind: "done", source, flowLabel, ...machine.report() };
}
