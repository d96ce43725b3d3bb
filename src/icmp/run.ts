import type { Ipv6Address } from "../addr/ipv6.ts";
import { drive, type Machine } from "./drive.ts";
import type { ProbeEvent, ProbeRun, Prober } from "./prober.ts";

/** Sends one probe of a run under a label; see `ProbeRun`. */
export type SendProbe = ProbeRun["send"];

/** A machine that is told of the answers to its probes. */
export interface ProbeMachine extends Machine {
  take(event: ProbeEvent, nowNs: number): void;
}

/** What a ping and a trace have in common. */
export interface RunRequest {
  readonly target: Ipv6Address;
  /** Index of the interface of a link-local target; 0 or absent for none. */
  readonly scopeId?: number;
  /** Milliseconds for which a probe may stay unanswered. */
  readonly timeoutMs: number;
  /** Ends the run early. */
  readonly signal?: AbortSignal;
}

/** Errno names by which the kernel says that it has no room for a packet just now, and may have it in a moment. */
export const NO_ROOM: readonly string[] = ["ENOBUFS", "EAGAIN"];

/** Why a run has no result. */
export type NoResult =
  /** Nothing could be sent: the errno name, such as `ENETUNREACH` where there is no route. */
  | { readonly kind: "unreachable"; readonly code: string }
  /** The signal was given, or the engine closed. */
  | { readonly kind: "aborted" };

type Ended<M> =
  | {
      readonly kind: "done";
      readonly machine: M;
      readonly source: Ipv6Address;
      readonly flowLabel: number;
    }
  | NoResult;

/**
 * Runs a machine that sends up to `maxProbes` probes, until it is done; no timer and no outstanding
 * probe is left behind.
 *
 * @throws Error when the socket's receiver has failed, before or meanwhile
 */
export async function runProbes<M extends ProbeMachine>(
  prober: Prober,
  { target, scopeId = 0, timeoutMs, signal }: RunRequest,
  maxProbes: number,
  create: (send: SendProbe, source: Ipv6Address) => M,
): Promise<Ended<M>> {
  const { ending } = prober;
  if (prober.failure !== null) throw prober.failure;
  const choice = prober.sourceFor(target, scopeId);
  if (choice.kind === "failed") return { kind: "unreachable", code: choice.code };
  const source = choice.address;
  const flowLabel = prober.chooseFlowLabel();
  const plan = { target, scopeId, source, flowLabel, timeoutMs, maxProbes };
  const run = prober.open(plan, (event) => {
    machine.take(event, prober.clock.nowNs());
    driver.wake();
  });
  const machine = create(run.send, source);
  const driver = drive(machine, prober.clock, signal ? AbortSignal.any([signal, ending]) : ending);
  const how = await driver.finished.finally(run.close);
  if (prober.failure !== null) throw prober.failure;
  if (how === "aborted") return { kind: "aborted" };
  return { kind: "done", machine, source, flowLabel: run.flowLabel };
}
