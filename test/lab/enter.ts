/**
 * Preloaded by `bun test`: replaces the process by itself inside a network namespace of its own, so
 * that no test can touch the machine's network and every test may use raw sockets, routes and TUN
 * devices. For all tests, or some folders, it is replaced by `scripts/test.ts`, which gives each file
 * a namespace.
 *
 * An ordinary user enters through a user namespace of its own. Where the kernel forbids that, the
 * suite runs where it is, and tests that need the laboratory skip with the reason (see `lab.ts`).
 */
import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { entry } from "./entrance.ts";
import { LAB_VARIABLE, labEnvironment, TIMEOUT } from "./run.ts";

const ROOT = join(import.meta.dir, "../..");

/** Replaces this process; returns only to say why that is impossible. */
function enter(): string {
  // process.argv does not hold the runner's own arguments.
  const [verb = "test", ...rest] = readFileSync("/proc/self/cmdline", "utf8")
    .split("\0")
    .slice(1, -1);
  const isFile = rest.length === 1 && rest[0]?.endsWith(".test.ts");
  if (verb === "test" && !isFile && rest.every((each) => existsSync(each))) {
    const places = rest.map((each) => relative(ROOT, resolve(each)));
    replaceBy([process.execPath, join(ROOT, "scripts/test.ts"), ...places], {});
  }
  // A worker's connection to its runner does not survive.
  if (rest.includes("--test-worker")) return "bun test --parallel cannot enter a namespace";
  // What a file replaces must not reach the next one. An argument given by hand comes later and wins.
  const options = verb === "test" ? [TIMEOUT, "--isolate", ...rest] : rest;
  const [before, mark] = entry();
  replaceBy([...before, process.execPath, verb, ...options], { [LAB_VARIABLE]: mark });
  return mark;
}

function replaceBy(command: readonly string[], more: Readonly<Record<string, string>>): void {
  process.execve?.(command[0] ?? "", [...command], { ...labEnvironment, ...more });
}

process.env[LAB_VARIABLE] ??= enter();
