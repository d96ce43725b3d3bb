import { expect, test } from "bun:test";
import { createSharing } from "../../src/tools/sharing.ts";

/** Runs that end when the test says so. */
function start() {
  const running: {
    readonly signal: AbortSignal;
    onRow(row: number): void;
    end(outcome: string): void;
  }[] = [];
  const share = createSharing<number, string>("aborted");
  const ask = (key = "a", signal?: AbortSignal, onRow?: (row: number) => void) =>
    share(
      key,
      (runSignal, report) => {
        const { promise, resolve } = Promise.withResolvers<string>();
        runSignal.addEventListener("abort", () => resolve("aborted"));
        running.push({ signal: runSignal, onRow: report, end: resolve });
        return promise;
      },
      signal,
      onRow,
    );
  return { running, ask };
}

test("callers at the same time share one run and its outcome; another key is another run", async () => {
  const { running, ask } = start();
  const callers = [ask(), ask(), ask()];
  const other = ask("b");
  expect(running).toHaveLength(2);
  running[0]?.end("done");
  expect(await Promise.all(callers)).toEqual(["done", "done", "done"]);
  running[1]?.end("else");
  expect(await other).toBe("else");
});

test("a caller after the end has a run of its own", async () => {
  const { running, ask } = start();
  const first = ask();
  running[0]?.end("done");
  await first;
  const second = ask();
  expect(running).toHaveLength(2);
  running[1]?.end("done");
  await second;
});

test("the run ends at once when its last caller leaves", () => {
  const { running, ask } = start();
  const [first, second] = [new AbortController(), new AbortController()];
  for (const { signal } of [first, second]) void ask("a", signal);
  first.abort();
  expect(running[0]?.signal.aborted).toBe(false);
  second.abort();
  expect(running[0]?.signal.aborted).toBe(true);
});

// The caller gets the outcome a few turns after the run has ended.
test.each([0, 1, 2, 3, 4, 5])(
  "a caller that leaves an ended run does not hide the next one that began %i turns after the end",
  async (turns) => {
    const { running, ask } = start();
    const first = ask();
    running[0]?.end("done");
    for (let turn = 0; turn < turns; turn++) await null;
    const second = ask();
    await first;
    const third = ask();
    expect(running).toHaveLength(2);
    running[1]?.end("done");
    expect(await Promise.all([second, third])).toEqual(["done", "done"]);
  },
);

test("a caller that joins gets the rows that were reported before", async () => {
  const { running, ask } = start();
  const seen: Record<string, number[]> = { early: [], late: [] };
  const join = (name: string) => ask("a", undefined, (row) => seen[name]?.push(row));
  const early = join("early");
  running[0]?.onRow(1);
  const late = join("late");
  running[0]?.onRow(2);
  running[0]?.end("done");
  await Promise.all([early, late]);
  expect(seen).toEqual({ early: [1, 2], late: [1, 2] });
});

test("a caller that goes away does not end the run of the others; the last one does", async () => {
  const { running, ask } = start();
  const [first, second] = [new AbortController(), new AbortController()];
  const callers = [first, second].map(({ signal }) => ask("a", signal));
  first.abort();
  expect(await callers[0]).toBe("aborted");
  expect(running[0]?.signal.aborted).toBe(false);
  second.abort();
  expect(await callers[1]).toBe("aborted");
  expect(running[0]?.signal.aborted).toBe(true);
});

test("a caller whose signal has aborted starts no run", async () => {
  const { running, ask } = start();
  expect(await ask("a", AbortSignal.abort())).toBe("aborted");
  expect(running).toEqual([]);
});
