import { test } from "bun:test";

const mark = process.env["SIXSCOPE_TEST_LAB"] ?? "the laboratory was not entered";

/** Why network laboratories cannot be built here, or null where they can. */
export const labMissing: string | null = mark === "inside" ? null : mark;

/** Whether a program that a test needs is installed; the reason for skipping where it is not. */
export function programMissing(program: string): string | null {
  return Bun.which(program, { PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` }) === null
    ? `${program} is not installed`
    : null;
}

/**
 * `test` where nothing is missing; otherwise a test that skips with the first reason in its name,
 * or fails when CI is set, so that CI cannot pass by skipping.
 *
 * @param missing reasons, null for what is there
 */
export function testWith(...missing: readonly (string | null)[]): typeof test {
  const reason = missing.find((entry) => entry !== null);
  if (reason === undefined) return test;
  const skipping = (name: string) => {
    if (process.env["CI"]) {
      test(name, () => {
        throw new Error(`not skipped because CI is set: ${reason}`);
      });
    } else {
      test.skip(`${name} (skipped: ${reason})`, () => {});
    }
  };
  return Object.assign(skipping as unknown as typeof test, {
    each: (rows: readonly unknown[]) => (name: string) => {
      for (const _ of rows) skipping(name);
    },
  });
}
