import { statSync } from "node:fs";
import { errnoName, libc } from "../platform/libc.ts";
import { AF_UNIX, encodeUnixAddress, SOCK } from "../platform/linux.ts";

/**
 * Whether a socket file belongs to nobody any more. Only a refusal says so: one that is busy, or
 * another user's, does not answer either. (node:net of Bun calls every failure a refusal.)
 *
 * @returns false also where there is no file, or one that is no socket
 */
export function isAbandoned(path: string): boolean {
  const address = encodeUnixAddress(path);
  const socket = libc().socket(AF_UNIX, SOCK.stream | SOCK.nonblock | SOCK.cloexec, 0);
  const isRefused =
    libc().connect(socket, address, address.length) !== 0 &&
    errnoName(libc().errno()) === "ECONNREFUSED";
  libc().close(socket);
  return isRefused && statSync(path).isSocket();
}
