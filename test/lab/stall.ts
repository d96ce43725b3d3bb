/** Watches for how long the event loop of this process has no turn. */
export function watchStalls() {
  let [lastMs, longestMs] = [performance.now(), 0];
  const turn = () => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
  };
  const timer = setInterval(turn, 10);
  return {
    /** The longest time so far. */
    longestMs() {
      turn();
      return longestMs;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
