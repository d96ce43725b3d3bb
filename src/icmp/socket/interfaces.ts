import { cString, errnoName, libc, SystemError } from "../../platform/libc.ts";

/** Length of an interface name with its final zero byte; linux/if.h, IFNAMSIZ. */
const MAX_NAME_BYTES = 16;
/** A zone that is a number; RFC 4007 section 11.2. */
const NUMBER = /^[1-9][0-9]{0,8}$/;

/**
 * The index of the interface with this name or number: the scope of its link-local addresses; RFC 4007
 * section 11. Null if there is no such interface.
 *
 * @throws SystemError `ENOSYS` without a C library, another code if the process has no descriptor left
 */
export function interfaceIndex(zone: string): number | null {
  const name = cString(zone);
  if (zone === "" || zone.includes("\0") || name.length > MAX_NAME_BYTES) return null;
  const index = libc().if_nametoindex(name) || -libc().errno();
  if (index > 0) return index;
  const code = errnoName(-index);
  if (code !== "ENODEV") {
    throw new SystemError("if_nametoindex, perhaps at the limit of open files (LimitNOFILE)", code);
  }
  return NUMBER.test(zone) && interfaceName(Number(zone)) !== null ? Number(zone) : null;
}

/** The name of the interface with this index; null if there is none. */
export function interfaceName(index: number): string | null {
  const text = new Uint8Array(new ArrayBuffer(MAX_NAME_BYTES));
  if (libc().if_indextoname(index, text) === null) return null;
  return new TextDecoder().decode(text.subarray(0, text.indexOf(0)));
}
