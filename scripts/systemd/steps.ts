/** Helpers that the tests in a machine share. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ROOT } from "../build/source.ts";

const DEADLINE_MS = 60_000;

const operations = await Bun.file(join(ROOT, "docs/operations.md")).text();

/** Runs a step of a test, and says whether it succeeds. */
export async function step(name: string, prove: () => Promise<void>): Promise<void> {
  const startMs = performance.now();
  try {
    await prove();
    console.log(`ok ${name} (${Math.round(performance.now() - startMs)} ms)`);
  } catch (error) {
    console.log(`FAILED ${name}`);
    throw error;
  }
}

/** Waits until a condition is true; throws if that takes a minute. */
export async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + DEADLINE_MS;
  while (!(await holds())) {
    if (performance.now() > deadlineMs)
      throw new Error("the condition did not become true in time");
    await Bun.sleep(100);
  }
}

/** The first block in docs/operations.md, of shell commands if nothing else is said, that is below a heading and begins with a text. */
export function part(heading: string, beginning: string, language = "sh"): string {
  const section = operations.slice(operations.indexOf(`\n${heading}\n`) + 1);
  const fence = `\`\`\`${language}\n`;
  const code = section.slice(section.indexOf(fence + beginning) + fence.length);
  assert.ok(operations.includes(`\n${heading}\n`) && code.startsWith(beginning), heading);
  return code.slice(0, code.indexOf("```"));
}

/** The last command in a row of the table of what to do in docs/operations.md. */
export function row(purpose: string): string {
  const [line = ""] = new RegExp(`^\\| ${purpose} \\|.*$`, "m").exec(operations) ?? [];
  const command = [...line.matchAll(/`([^`]+)`/g)].at(-1)?.[1];
  assert.ok(command !== undefined, purpose);
  return command;
}
