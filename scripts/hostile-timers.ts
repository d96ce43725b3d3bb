/**
 * Prints the share of late timers of a process that does nothing else, when it is told to end:
 * `hostile-timers.ts MS`, where a timer that is later than that many milliseconds is late.
 */
const lateMs = Number(Bun.argv[2]);

const INTERVAL_MS = 100;

let all = 0;
let late = 0;
let dueMs = performance.now() + INTERVAL_MS;
setInterval(() => {
  const nowMs = performance.now();
  all++;
  if (nowMs - dueMs > lateMs) late++;
  dueMs = nowMs + INTERVAL_MS;
}, INTERVAL_MS);
process.on("SIGTERM", () => {
  console.log(late / all);
  process.exit(0);
});
