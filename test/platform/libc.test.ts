import { expect, test } from "bun:test";
import { addressOf, C, errnoName, loadLibc, SystemError } from "../../src/platform/libc.ts";

const libc = loadLibc({
  getpid: { args: [], returns: C.int },
  close: { args: [C.int], returns: C.int },
  write: { args: [C.int, C.pointer, C.size], returns: C.long },
});

test("a function of the C library can be called", () => {
  expect(libc.getpid()).toBe(process.pid);
});

test("errno is that of the failed call", () => {
  expect([libc.close(-1), libc.errno()]).toEqual([-1, 9]);
  const bytes = new Uint8Array(new ArrayBuffer(1));
  expect([Number(libc.write(-1, addressOf(bytes), 1)), libc.errno()]).toEqual([-1, 9]);
});

test.each([
  [1, "EPERM"],
  [101, "ENETUNREACH"],
  [113, "EHOSTUNREACH"],
])("errno %p is %s", (errno, name) => {
  expect(errnoName(errno)).toBe(name);
});

test("a function that the C library does not have throws SystemError", () => {
  expect(() => loadLibc({ no_such_function: { args: [], returns: C.int } })).toThrow(SystemError);
});
