import { expect, test } from "bun:test";
import { afterSilence } from "../../src/util/silence.ts";

const SILENT_MS = 200;

function work(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

test("a wait in which this process worked goes on for as long as it worked", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const startMs = performance.now();
  afterSilence(SILENT_MS, resolve);
  work(3 * SILENT_MS);
  await promise;
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(4 * SILENT_MS);
});

test("what comes in after the work is heard", async () => {
  let isSilent = false;
  const { cancel } = afterSilence(SILENT_MS, () => {
    isSilent = true;
  });
  work(2 * SILENT_MS);
  await Bun.sleep(SILENT_MS / 4);
  cancel();
  await Bun.sleep(3 * SILENT_MS);
  expect(isSilent).toBe(false);
});

test("a wait of a process that sleeps is as long as was asked", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const startMs = performance.now();
  afterSilence(SILENT_MS, resolve);
  await promise;
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(SILENT_MS - 1);
});
