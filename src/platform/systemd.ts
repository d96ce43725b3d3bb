import type { Environment } from "../util/environment.ts";
import { errnoName, libc, SystemError } from "./libc.ts";
import { AF_UNIX, encodeUnixAddress, MSG_NOSIGNAL, SOCK } from "./linux.ts";

/** What a service manager is told of the service; without one, nobody is. */
export interface ServiceManager {
  /** The service answers requests. */
  ready(): void;
  /** Reads the service's files again; before `ready`, nobody is told of it. */
  reload(read: () => void): void;
  /** The service takes no new requests. */
  stopping(): void;
  /**
   * Gives the status again and again, and a sign of life as long as there is one, until `stopping`.
   *
   * @param status one line for people, as `systemctl status` shows it
   * @param isAlive asked before each sign of life
   */
  watch(status: () => string, isAlive: () => boolean): void;
}

/** The sign of life comes so many times before the service manager gives up. */
const BEATS_PER_WATCHDOG = 3;

/** How often the status is given where there is no watchdog. */
const STATUS_INTERVAL_MS = 5000;

/**
 * The service manager that the environment names; sd_notify(3).
 *
 * @param send takes a message of `NAME=value` lines
 * @throws SystemError where NOTIFY_SOCKET is set and no socket can be had
 */
export function serviceManager(
  environment: Environment,
  send: (message: string) => void = sender(environment["NOTIFY_SOCKET"]),
): ServiceManager {
  const isWatched = [undefined, String(process.pid)].includes(environment["WATCHDOG_PID"]);
  const watchdogMs = isWatched ? Number(environment["WATCHDOG_USEC"] ?? 0) / 1000 : 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  let isReady = false;
  return {
    ready() {
      isReady = true;
      send("READY=1");
    },
    reload(read) {
      if (isReady) send("RELOADING=1");
      read();
      // It ends the reload, and would end the start too.
      if (isReady) send("READY=1");
    },
    stopping() {
      clearInterval(timer);
      send("STOPPING=1\nSTATUS=stopping; running requests may finish");
    },
    watch(status, isAlive) {
      let said = "";
      const beat = () => {
        const now = status();
        const lines = [
          ...(isAlive() ? ["WATCHDOG=1"] : []),
          ...(now === said ? [] : [`STATUS=${now}`]),
        ];
        said = now;
        if (lines.length > 0) send(lines.join("\n"));
      };
      beat();
      timer = setInterval(
        beat,
        watchdogMs > 0 ? watchdogMs / BEATS_PER_WATCHDOG : STATUS_INTERVAL_MS,
      );
      timer.unref();
    },
  };
}

/** Says at each call whether a number has changed since the one before. */
export function growing(count: () => number): () => boolean {
  let seen: number | null = null;
  return () => {
    const now = count();
    const hasGrown = now !== seen;
    seen = now;
    return hasGrown;
  };
}

/** Sends datagrams to a unix socket by its path, or by its abstract name behind an `@`. */
function sender(path: string | undefined): (message: string) => void {
  if (path === undefined || path === "") return () => {};
  const fd = libc().socket(AF_UNIX, SOCK.dgram | SOCK.cloexec, 0);
  if (fd < 0) throw new SystemError("socket(AF_UNIX)", errnoName(libc().errno()));
  const address = encodeUnixAddress(path);
  return (message) => {
    const bytes = new TextEncoder().encode(message);
    libc().sendto(fd, bytes, bytes.length, MSG_NOSIGNAL, address, address.length);
  };
}
