import { statSync } from "node:fs";
import { C, errnoName, loadLibc } from "../platform/libc.ts";
import { AF_UNIX, encodeUnixAddress, SOCK } from "../platform/linux.ts";

/**
 * Whether a socket file belongs to nobody any more. Only a refusal says so: one that is busy, or
 * another user's, does not answer either. (node:net of Bun calls every failure a refusal.)
 *
 * @returns false also where there is no file, or one that is no socket
 */
export function isAbandoned(path: string): boolean {
  const libc = loadLibc({
    socket: { args: [C.int, C.int, C.int], returns: C.int },
    connect: { args: [C.int, C.pointer, C.uint], returns: C.int },
    close: { args: [C.int], returns: C.int },
  });
  const address = encodeUnixAddress(path);
  const socket = libc.socket(AF_UNIX, SOCK.stream | SOCK.nonblock | SOCK.cloexec, 0);
  const isRefused =
    libc.connect(socket, address, address.length) !== 0 &&
    errnoName(libc.errno()) === "ECONNREFUSED";
  libc.close(socket);
  return isRefused && statSync(path).isSocket();
}
