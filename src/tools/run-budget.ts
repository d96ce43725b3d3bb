import type { Ipv6Address } from "../addr/ipv6.ts";

/** The reason with which `RunBudget.enough` aborts: a run that aborts for another reason has no result. */
export const ENOUGH = "enough";

/** The bounds of a run, which its caller decides. */
export interface RunBudget {
  /** Aborts with `ENOUGH` when a bound is met: the run sends nothing more, and ends with what it has. */
  readonly enough: AbortSignal;
  /** Counts an address that answered at a hop, once. False if it is one too many: then it must not be kept. */
  admit(hop: number, address: Ipv6Address | undefined): boolean;
  /** Does work that grows with what a network answers, and charges its time. */
  work(task: () => void): void;
}

/** A budget without bounds. */
export const UNBOUNDED: RunBudget = {
  enough: new AbortController().signal,
  admit: () => true,
  work: (task) => task(),
};
