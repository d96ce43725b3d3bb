import { formatIp } from "../addr/ip.ts";
import { ApiError, type ErrorCode } from "../api/errors.ts";
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

/** A request that is answered. */
export interface Answered {
  /** As in `RequestInfo`. */
  readonly route: string | null;
  /** The code of an error; undefined if the client disconnected first. */
  readonly code: ErrorCode | undefined;
  /** As in the access log. */
  readonly status: number;
  /** Milliseconds from the request to the response, or to the end of its events. */
  readonly ms: number;
}

/**
 * Logs requests and faults, within a number of lines per minute for those that cost their sender no quota.
 *
 * @param clients true if lines contain the addresses of clients
 * @param onAnswered called with each request, logged or not
 */
export function createAccessLog(
  log: Log,
  clients: boolean,
  onAnswered?: (answered: Answered) => void,
) {
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

  const ended = (info: RequestInfo, sent: number) => {
    const { request, startMs, id, caller, key, route, subject } = info;
    const isGone = sent === 500 && request.signal.aborted;
    const status = isGone ? CLIENT_GONE : sent;
    const ms = performance.now() - startMs;
    onAnswered?.({ route, status, code: status === CLIENT_GONE ? undefined : info.code, ms });
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
  };
  return {
    /** Logs a request with its response, or at the end of its events. Returns the response. */
    answered(info: RequestInfo, response: Response): Response {
      if (info.ended === undefined) ended(info, response.status);
      else void info.ended.then((status) => ended(info, status));
      return response;
    },
    /** Makes the error of the API of what was thrown; logs the cause of a 500, which its client is not told. */
    explain(error: Error, info: RequestInfo): ApiError {
      const { request, id } = info;
      const isExplained = error instanceof ApiError;
      const explained = isExplained ? error : new ApiError("INTERNAL_ERROR", { requestId: id });
      const { code, status } = explained;
      info.code = code;
      if (status === 500 && !request.signal.aborted && mayLog(code)) {
        log.error(isExplained ? error.message : traceOf(error), { code, requestId: id });
      }
      return explained;
    },
  };
}
