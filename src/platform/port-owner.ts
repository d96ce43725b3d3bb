import { globSync, readlinkSync } from "node:fs";
import { attempt } from "../util/errors.ts";
import { tryRead } from "./regular-file.ts";

/** The state of a listening socket in /proc/net/tcp; the kernel's TCP_LISTEN in hex. */
const LISTENING = "0A";

/**
 * The processes that listen on a TCP port, each like `nginx (pid 7)`. Without root, /proc shows only
 * those of the own user; in a container, only its own.
 */
export function listenersOn(port: number): readonly string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const sockets = ["tcp", "tcp6"].flatMap((table) =>
    (tryRead(`/proc/net/${table}`) ?? "")
      .split("\n")
      .map((row) => row.trim().split(/\s+/))
      .filter(([, local, , state]) => local?.endsWith(suffix) && state === LISTENING)
      .map((columns) => `socket:[${columns[9]}]`),
  );
  if (sockets.length === 0) return [];
  // A descriptor may be closed by now.
  const targetOf = (fd: string) => attempt(() => readlinkSync(fd)) ?? "";
  const held = globSync("/proc/[0-9]*/fd/*").filter((fd) => sockets.includes(targetOf(fd)));
  const pids = new Set(held.map((fd) => fd.split("/")[2]));
  return Array.from(pids, (pid) => `${tryRead(`/proc/${pid}/comm`)?.trim()} (pid ${pid})`);
}
