import { describe, test } from "bun:test";
import { closeSync, openSync, readFileSync } from "node:fs";
import { findProgram, LAB_VARIABLE, QUICK } from "./run.ts";
import { TUN_FILE } from "./tun.ts";

const mark = process.env[LAB_VARIABLE] ?? "the laboratory was not entered";

/** Why chains of kernel routers cannot be built here and raw sockets not opened; null where they can. */
export const labMissing: string | null = mark === "inside" ? null : mark;

/** Why groups and files of several users cannot be had here; null where they can. The root of a user namespace is one user only. */
export const usersMissing: string | null =
  labMissing ??
  (readFileSync("/proc/self/uid_map", "utf8").trim().endsWith("4294967295")
    ? null
    : "groups and files of several users need root");

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

/** The reason to skip a test that needs a program which is not installed; null if it is installed. */
export function programMissing(program: string): string | null {
  if (mark === QUICK) return QUICK;
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
