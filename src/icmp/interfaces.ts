import { C, loadLibc } from "../platform/libc.ts";

const load = () => loadLibc({ if_nametoindex: { args: [C.pointer], returns: C.uint } });

/** Loaded at the first use: a service without link-local targets needs none. */
let libc: ReturnType<typeof load> | null = null;

/** Length of a name with its final zero byte; linux/if.h, IFNAMSIZ. */
const MAX_NAME_BYTES = 16;

/**
 * The index of the interface with this name, which is the scope of its link-local addresses; RFC 4007
 * section 6. Null where there is none.
 *
 * @throws SystemError with code ENOSYS where there is no C library
 */
export function interfaceIndex(name: string): number | null {
  const bytes = new TextEncoder().encode(name);
  if (bytes.length === 0 || bytes.length >= MAX_NAME_BYTES || bytes.includes(0)) return null;
  const text = new Uint8Array(new ArrayBuffer(MAX_NAME_BYTES));
  text.set(bytes);
  libc ??= load();
  return libc.if_nametoindex(text) || null;
}
