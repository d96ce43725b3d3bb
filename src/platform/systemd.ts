import { fstatSync } from "node:fs";
import { attempt } from "../util/errors.ts";
import { lastError, libc } from "./libc.ts";
import { AF_UNIX, encodeUnixAddress, MSG_NOSIGNAL, SOCK } from "./linux.ts";

const KEEP_ALIVES_PER_WATCHDOG = 3;

/** The time between reports of the status if no watchdog is set. */
const STATUS_INTERVAL_MS = 5000;

/** The time in which the service ends after its last request. */
const STOP_MARGIN_MS = 5000;

/**
 * Reports the state of the service to the service manager that the environment names, if it names one; sd_notify(3).
 *
 * @param send takes a message of `NAME=value` lines
 * @throws SystemError if NOTIFY_SOCKET is set and no socket can be opened
 */
export function serviceManager(
  environment: NodeJS.ProcessEnv,
  send: (message: string) => void = sender(environment["NOTIFY_SOCKET"]),
) {
  const isWatched = [undefined, String(process.pid)].includes(environment["WATCHDOG_PID"]);
  const watchdogMs = isWatched ? Number(environment["WATCHDOG_USEC"] ?? 0) / 1000 : 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  return {
    /** The service answers requests. */
    ready: () => send("READY=1"),
    /** Runs `read`, which reads the service's files again, and reports its beginning and its end. */
    reload(read: () => void): void {
      send("RELOADING=1");
      read();
      send("READY=1");
    },
    /**
     * The service accepts no new requests; its end may take longer than TimeoutStopSec= of the unit.
     *
     * @param graceMs the time for running requests, in milliseconds
     */
    stopping(graceMs: number): void {
      clearInterval(timer);
      const extensionUsec = (graceMs + STOP_MARGIN_MS) * 1000;
      send(
        `STOPPING=1\nEXTEND_TIMEOUT_USEC=${extensionUsec}\nSTATUS=stopping; running requests may finish`,
      );
    },
    /**
     * Sends the watchdog's keep-alive and the status again and again, until `stopping`. An event loop that
     * hangs sends none, so the service manager restarts the service.
     *
     * @param status one line for people, as `systemctl status` shows it
     */
    watch(status: () => string): void {
      const keepAlive = () => send(`WATCHDOG=1\nSTATUS=${status()}`);
      keepAlive();
      timer = setInterval(keepAlive, watchdogMs / KEEP_ALIVES_PER_WATCHDOG || STATUS_INTERVAL_MS);
      timer.unref();
    },
  };
}

/** Sends datagrams to a unix socket, by its path or by its abstract name after an `@`. */
function sender(path: string | undefined): (message: string) => void {
  if (path === undefined || path === "") return () => {};
  const fd = libc().socket(AF_UNIX, SOCK.dgram | SOCK.cloexec, 0);
  if (fd < 0) throw lastError("socket(AF_UNIX)");
  const address = encodeUnixAddress(path);
  return (message) => {
    const bytes = new TextEncoder().encode(message);
    libc().sendto(fd, bytes, bytes.length, MSG_NOSIGNAL, address, address.length);
  };
}

/** True if standard error leads to the journal, by device and inode; systemd.exec(5), JOURNAL_STREAM. */
export function isJournal(environment: NodeJS.ProcessEnv): boolean {
  const STANDARD_ERROR = 2;
  const found = attempt(() => fstatSync(STANDARD_ERROR, { bigint: true }));
  return environment["JOURNAL_STREAM"] === `${found?.dev}:${found?.ino}`;
}
