import { describe, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import { findProgram, LAB_VARIABLE } from "./run.ts";
import { TUN_FILE } from "./tun.ts";

const mark = process.env[LAB_VARIABLE] ?? "the laboratory was not entered";

/** Why chains of kernel routers cannot be built here and raw sockets not opened; null where they can. */
export const labMissing: string | null = mark === "inside" ? null : mark;

/** Why simulated internets cannot be built here, or null where they can. */
export const tunMissing: string | null = labMissing ?? whyNoTun();

function whyNoTun(): string | null {
  try {
    closeSync(openSync(TUN_FILE, "r+"));
    return null;
  } catch (error) {
    return `no ${TUN_FILE}: ${(error as Error).message}`;
  }
}

/** Whether a program that a test needs is installed; the reason for skipping where it is not. */
export function programMissing(program: string): string | null {
  return findProgram(program) === null ? `${program} is not installed` : null;
}

/** Puts the first reason among the test results, as a failure when CI is set; null where nothing is missing. */
function explain(missing: readonly (string | null)[]): string | null {
  const reason = missing.find((entry) => entry !== null) ?? null;
  if (reason !== null && process.env["CI"]) {
    test(`tests below, which CI may not skip: ${reason}`, () => {
      throw new Error(reason);
    });
  } else if (reason !== null) {
    test.skip(`tests below: ${reason}`, () => {});
  }
  return reason;
}

/**
 * `test` where nothing is missing; otherwise `test.skip`, and the first reason is among the
 * results. When CI is set that is a failure, so that CI cannot pass by skipping.
 *
 * @param missing reasons, null for what is there
 */
export function testWith(...missing: readonly (string | null)[]): typeof test {
  return explain(missing) === null ? test : test.skip;
}

/** `describe` in the manner of `testWith`; its hooks do not run when it skips, as others do. */
export function describeWith(...missing: readonly (string | null)[]): typeof describe {
  return explain(missing) === null ? describe : describe.skip;
}
