import { dlopen, type FFIFunction, FFIType, type Pointer, ptr, read } from "bun:ffi";
import { getSystemErrorName } from "node:util";

/** glibc first, then musl on each processor that sixscope is built for. */
const LIBC_NAMES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"] as const;

/** A system call failed, or the C library could not be loaded. */
export class SystemError extends Error {
  override readonly name = "SystemError";
  /** The errno name, such as `EPERM`; `ENOSYS` without a C library. */
  readonly code: string;

  constructor(call: string, code: string, options?: ErrorOptions) {
    super(`${call}: ${code}`, options);
    this.code = code;
  }
}

/** The error of the call that just failed, by its errno. */
export function lastError(call: string): SystemError {
  return new SystemError(call, errnoName(libc().errno()));
}

/** The name of an errno value: `EPERM` for 1. */
export function errnoName(errno: number): string {
  return getSystemErrorName(-errno);
}

/** C types of arguments and results. */
export const C = {
  int: FFIType.i32,
  uint: FFIType.u32,
  long: FFIType.i64_fast,
  size: FFIType.u64_fast,
  pointer: FFIType.ptr,
} as const;

/** The address of a buffer. The caller keeps the buffer referenced for as long as C may use it. */
export { ptr as addressOf };

/** The value of an integer option of a socket; undefined if a descriptor has none. */
export function socketOption(fd: number, [level, name]: readonly [number, number]) {
  const value = new Int32Array(1);
  const length = Uint32Array.of(value.byteLength);
  return libc().getsockopt(fd, level, name, value, length) === 0 ? value[0] : undefined;
}

/** A text as a C string. The caller keeps it referenced for as long as C may use it. */
export function cString(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\0`);
}

/**
 * Loads functions of the C library.
 *
 * A negative result means failure; read `errno()` in the same statement, before anything else can
 * make a system call on this thread.
 *
 * @throws SystemError with code ENOSYS if no C library can be loaded (not Linux, or executable memory
 *   is forbidden, as with MemoryDenyWriteExecute)
 */
export function loadLibc<const Symbols extends Record<string, FFIFunction>>(symbols: Symbols) {
  let cause: unknown;
  for (const name of LIBC_NAMES) {
    try {
      const location = dlopen(name, { __errno_location: { returns: FFIType.ptr } }).symbols;
      const errno = () => read.i32(location.__errno_location() as Pointer);
      return Object.assign(dlopen(name, symbols).symbols, { errno });
    } catch (error) {
      cause = error;
    }
  }
  throw new SystemError("dlopen libc", "ENOSYS", { cause });
}

/** Every C library function that sixscope calls; each man page is in section 2 or 3. */
const FUNCTIONS = {
  adjtimex: { args: [C.pointer], returns: C.int },
  bind: { args: [C.int, C.pointer, C.uint], returns: C.int },
  clock_gettime: { args: [C.int, C.pointer], returns: C.int },
  close: { args: [C.int], returns: C.int },
  connect: { args: [C.int, C.pointer, C.uint], returns: C.int },
  dup2: { args: [C.int, C.int], returns: C.int },
  execv: { args: [C.pointer, C.pointer], returns: C.int },
  // Variadic in C; on the supported processors, integers are passed as for any other function.
  fcntl: { args: [C.int, C.int, C.size], returns: C.int },
  flock: { args: [C.int, C.int], returns: C.int },
  getpeername: { args: [C.int, C.pointer, C.pointer], returns: C.int },
  getsockname: { args: [C.int, C.pointer, C.pointer], returns: C.int },
  getsockopt: { args: [C.int, C.int, C.int, C.pointer, C.pointer], returns: C.int },
  if_indextoname: { args: [C.uint, C.pointer], returns: C.pointer },
  if_nametoindex: { args: [C.pointer], returns: C.uint },
  initgroups: { args: [C.pointer, C.uint], returns: C.int },
  prctl: { args: [C.int, C.size, C.size, C.size, C.size], returns: C.int },
  recvfrom: { args: [C.int, C.pointer, C.size, C.int, C.pointer, C.pointer], returns: C.long },
  recvmsg: { args: [C.int, C.pointer, C.int], returns: C.long },
  sendmsg: { args: [C.int, C.pointer, C.int], returns: C.long },
  sendto: { args: [C.int, C.pointer, C.size, C.int, C.pointer, C.uint], returns: C.long },
  setsockopt: { args: [C.int, C.int, C.int, C.pointer, C.uint], returns: C.int },
  shutdown: { args: [C.int, C.int], returns: C.int },
  socket: { args: [C.int, C.int, C.int], returns: C.int },
} as const;

let loaded: ReturnType<typeof loadLibc<typeof FUNCTIONS>> | undefined;

/**
 * The C library, loaded at the first call; see `loadLibc`.
 *
 * @throws SystemError with code ENOSYS if it cannot be loaded
 */
export function libc() {
  loaded ??= loadLibc(FUNCTIONS);
  return loaded;
}
