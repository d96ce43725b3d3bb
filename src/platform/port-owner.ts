import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The state of a listening socket in /proc/net/tcp; the kernel's TCP_LISTEN in hex. */
const LISTENING = "0A";

/**
 * The processes that listen on a TCP port, each like `nginx (pid 7)`. Without root, /proc shows only
 * those of the own user; in a container, only its own.
 */
export function listenersOn(port: number): readonly string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const sockets = ["tcp", "tcp6"].flatMap((table) =>
    read(`/proc/net/${table}`)
      .split("\n")
      .map((row) => row.trim().split(/\s+/))
      .filter(([, local, , state]) => local?.endsWith(suffix) && state === LISTENING)
      .map((columns) => `socket:[${columns[9]}]`),
  );
  if (sockets.length === 0) return [];
  const pids = namesIn("/proc").filter((name) => /^\d+$/.test(name));
  return pids
    .filter((pid) => namesIn(`/proc/${pid}/fd`).some((fd) => sockets.includes(linkOf(pid, fd))))
    .map((pid) => `${read(`/proc/${pid}/comm`).trim()} (pid ${pid})`);
}

function linkOf(pid: string, fd: string): string {
  return attempt(() => readlinkSync(`/proc/${pid}/fd/${fd}`), "");
}

function namesIn(folder: string): readonly string[] {
  return attempt(() => readdirSync(folder), []);
}

function read(path: string): string {
  return attempt(() => readFileSync(path, "utf8"), "");
}

/** A process that has ended, or that belongs to another user, tells nothing. */
function attempt<T>(look: () => T, otherwise: T): T {
  try {
    return look();
  } catch {
    return otherwise;
  }
}
