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
 * Puts this thread into a network namespace of `ip netns` until the result is disposed of: sockets that it opens
 * and programs that it starts stay there, and `/proc/thread-self/net` and `/proc/sys/net` are those of the namespace.
 *
 * @throws SystemError when the namespace cannot be entered
 */
export function enterNamespace(name: string): Disposable {
  using stack = new DisposableStack();
  const own = stack.adopt(openSync("/proc/thread-self/ns/net", "r"), closeSync);
  using other = new DisposableStack();
  enter(other.adopt(openSync(`/run/netns/${name}`, "r"), closeSync));
  stack.defer(() => enter(own));
  return stack.move();
}

/** Calls a function, which must not wait, while this thread is in a namespace; see `enterNamespace`. */
export function insideNamespace<Value>(name: string, act: () => Value): Value {
  using _ = enterNamespace(name);
  return act();
}
