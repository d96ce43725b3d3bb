/** Writes heap and timers of the service once a second, which only its process knows; `soak.ts` loads this before the service. */
import { heapStats } from "bun:jsc";
import { writeFileSync } from "node:fs";

/** The file with the figures of a process. */
export const figuresFile = (pid: number) => `/tmp/sixscope-soak-${pid}.json`;

/** Figures of the service from inside. */
export interface Inside {
  readonly heapMiB: number;
  readonly timers: number;
}

if (process.argv[1]?.endsWith("src/main.ts") && process.argv[2] === undefined) {
  setInterval(() => {
    const { heapSize, objectTypeCounts } = heapStats();
    const figures: Inside = {
      heapMiB: heapSize / 2 ** 20,
      timers: objectTypeCounts["Timeout"] ?? 0,
    };
    writeFileSync(figuresFile(process.pid), JSON.stringify(figures));
  }, 1000).unref();
}
