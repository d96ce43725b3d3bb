/** The common part of all engines: the request, how the caller takes part, and how a run ends without a result. */
import type { Ipv6Address } from "../addr/ipv6.ts";
import type { Caller } from "../gate/gate.ts";
import { interfaceName } from "../icmp/socket/interfaces.ts";
import type { ProbedPort } from "../icmp/socket/socket.ts";
import type { RunBudget } from "./budget.ts";

/** The target of a run, and how it is probed. */
export interface RunRequest {
  readonly target: Ipv6Address;
  /** Index of the interface of a link-local target; 0 or absent for none. */
  readonly scopeId?: number;
  /** How long a probe may stay unanswered, in milliseconds. */
  readonly timeoutMs: number;
  /** The port that is probed; absent for ICMPv6. */
  readonly probedPort?: ProbedPort | undefined;
  /** The client that the probes are for; absent for a client that shares the gate with nobody. */
  readonly caller?: Caller | undefined;
}

/** How the caller takes part in a run. */
export interface RunOptions {
  /** Ends the run early, without a result. */
  readonly signal?: AbortSignal | undefined;
  /** Bounds the data that can grow with the answers, in mtr and the search for paths. */
  readonly budget?: RunBudget | undefined;
}

/** Why a run has no result. */
export type NoResult =
  /** Nothing could be sent: the errno name, such as `ENETUNREACH` without a route. */
  | { readonly kind: "unreachable"; readonly code: string }
  /** The signal aborted, or the prober closed. */
  | { readonly kind: "aborted" };

/** The interface to a link-local address, for the details of a hop. */
export const zoneOf = (scopeId: number): { readonly zone?: string } =>
  scopeId === 0 ? {} : { zone: interfaceName(scopeId) ?? String(scopeId) };
