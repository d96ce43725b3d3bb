import { readFileSync } from "node:fs";
import { attempt } from "./errors.ts";

/** The share of a wait in which this thread may be deaf: a longer one prolongs the wait. */
const DEAF_SHARE = 0.05;

/**
 * Milliseconds that the main thread has run or waited for a processor, as Linux counts them
 * (Documentation/scheduler/sched-stats.rst); 0 if it does not.
 */
function awakeMs(): number {
  const counts = attempt(() => readFileSync("/proc/self/schedstat", "latin1")) ?? "0 0";
  const [ran, waited] = counts.split(" ");
  return (Number(ran) + Number(waited)) / 1e6;
}

/**
 * Calls `action` when a peer was silent for some milliseconds in which this process listened. While the process works,
 * or waits for a processor, it hears nothing, and its own packets are late.
 */
export function afterSilence(silentMs: number, action: () => void) {
  let heardMs = performance.now();
  let awakeBefore = awakeMs();
  const end = () => {
    const leftMs = heardMs + silentMs - performance.now();
    const awake = awakeMs();
    const deafMs = awake - awakeBefore;
    awakeBefore = awake;
    if (leftMs > 0) timer = setTimeout(end, leftMs);
    else if (deafMs > DEAF_SHARE * silentMs) timer = setTimeout(end, deafMs);
    else action();
  };
  let timer = setTimeout(end, silentMs);
  return {
    /** Begins the silence anew. */
    hear() {
      heardMs = performance.now();
    },
    cancel: () => clearTimeout(timer),
  };
}
