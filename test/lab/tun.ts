import { closeSync, constants, openSync } from "node:fs";
import { addressOf, C, errnoName, loadLibc, SystemError } from "../../src/platform/libc.ts";

/** linux/if_tun.h */
const TUNSETIFF = 0x400454ca;
const IFF_TUN_WITHOUT_PACKET_INFORMATION = 0x1001;

/** struct ifreq: 16 bytes of name, then the flags. */
const IFREQ_BYTES = 40;
const IFREQ_FLAGS_AT = 16;

/** The file behind every TUN device. */
export const TUN_FILE = "/dev/net/tun";

/**
 * Makes a TUN device and returns the file descriptor of its other end, which does not block. The
 * device lives until the descriptor is closed.
 */
export function openTun(device: string): number {
  const libc = loadLibc({ ioctl: { args: [C.int, C.long, C.pointer], returns: C.int } });
  const request = new Uint8Array(new ArrayBuffer(IFREQ_BYTES));
  new TextEncoder().encodeInto(device, request);
  new DataView(request.buffer).setUint16(IFREQ_FLAGS_AT, IFF_TUN_WITHOUT_PACKET_INFORMATION, true);
  const descriptor = openSync(TUN_FILE, constants.O_RDWR | constants.O_NONBLOCK);
  if (libc.ioctl(descriptor, TUNSETIFF, addressOf(request)) < 0) {
    const code = errnoName(libc.errno());
    closeSync(descriptor);
    throw new SystemError("ioctl TUNSETIFF", code);
  }
  return descriptor;
}
