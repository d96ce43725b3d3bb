import { formatIp } from "../addr/ip.ts";
import { ApiError } from "../api/errors.ts";
import { traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { RequestInfo } from "./request.ts";

/** Characters of an unknown path in a log line. */
const MAX_PATH_CHARACTERS = 100;

/** Lines per error status that are logged each minute at most; the rest is counted. */
const MAX_LINES = 100;

/** The status in log and metrics if the client disconnected first, as nginx has it. */
export const CLIENT_GONE = 499;

const MINUTE_MS = 60_000;

/** The status that the operator sees: `CLIENT_GONE` if the client disconnected first. */
export function loggedStatus(request: Request, status: number): number {
  return status === 500 && request.signal.aborted ? CLIENT_GONE : status;
}

/**
 * Logs requests and faults, within a number of lines per minute for those that cost their sender no quota.
 *
 * @param clients true if lines contain the addresses of clients
 */
export function createAccessLog(log: Log, clients: boolean) {
  /** Lines by kind (a status or an error code) since the minute began. */
  const counts = new Map<string, number>();

  const endMinute = () => {
    for (const [kind, count] of counts) {
      if (count > MAX_LINES) {
        log.warn("not logged in the last minute", { kind, count: count - MAX_LINES });
      }
    }
    counts.clear();
  };

  const mayLog = (kind: string) => {
    if (counts.size === 0) setTimeout(endMinute, MINUTE_MS).unref();
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count <= MAX_LINES;
  };

  return {
    /** Logs a request that was answered after `ms` milliseconds; see `loggedStatus`. */
    answered(
      { request, id, caller, key, route, subject }: RequestInfo,
      status: number,
      ms: number,
    ): void {
      if (!log.writes("info")) return;
      const isFree = status >= 400 || status === 204;
      if (isFree && !mayLog(`status ${status}`)) return;
      const { address } = caller;
      const { method, url } = request;
      log.info("request", {
        id,
        client: clients ? (address === null ? "unknown" : formatIp(address)) : undefined,
        method,
        // The pattern, so that lines of one endpoint look alike.
        route: route ?? (URL.parse(url)?.pathname ?? url).slice(0, MAX_PATH_CHARACTERS),
        status,
        ms: Math.round(ms * 1000) / 1000,
        key: key?.name,
        ...subject,
      });
    },
    /** Logs the cause of a 500, which its client is not told; without a trace if the message explains it. */
    fault({ id }: RequestInfo, code: string, cause: Error): void {
      if (!mayLog(code)) return;
      const message = cause instanceof ApiError ? cause.message : traceOf(cause);
      log.error(message, { code, requestId: id });
    },
  };
}
