import { closeSync, openSync } from "node:fs";
import { C, errnoName, loadLibc, SystemError } from "../../src/platform/libc.ts";

/** linux/sched.h */
const CLONE_NEWNET = 0x4000_0000;

const symbols = { setns: { args: [C.int, C.int], returns: C.int } } as const;
let libc: ReturnType<typeof loadLibc<typeof symbols>> | undefined;

function enter(descriptor: number): void {
  libc ??= loadLibc(symbols);
  if (libc.setns(descriptor, CLONE_NEWNET) === 0) return;
  throw new SystemError("setns", errnoName(libc.errno()));
}

/**
 * Calls a function while this thread is in a network namespace of `ip netns`: sockets that it opens
 * stay there, and `/proc/thread-self/net` and `/proc/sys/net` are those of the namespace. The function
 * must not wait.
 *
 * @throws SystemError when the namespace cannot be entered
 */
export function insideNamespace<Value>(name: string, act: () => Value): Value {
  const own = openSync("/proc/thread-self/ns/net", "r");
  const other = openSync(`/run/netns/${name}`, "r");
  try {
    enter(other);
    return act();
  } finally {
    enter(own);
    closeSync(other);
    closeSync(own);
  }
}
