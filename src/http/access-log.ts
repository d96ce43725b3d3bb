import { formatIp } from "../addr/ip.ts";
import { ApiError } from "../api/errors.ts";
import { traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { RequestInfo } from "./request.ts";

/** Characters of an unknown path in a log line. */
const MAX_PATH_CHARACTERS = 100;

/** The status in log and metrics if the client disconnected first; nginx uses the same. */
export const CLIENT_GONE = 499;

/**
 * Logs requests and faults. Requests that cost their sender no quota have the level debug, so that a flood does not fill
 * the log.
 *
 * @param clients true if lines contain the addresses of clients
 * @param onAnswered called with each request, logged or not: its status as in the log, and the milliseconds to the
 *   response or to the end of its events
 */
export function createAccessLog(
  log: Log,
  clients: boolean,
  onAnswered?: (info: RequestInfo, status: number, ms: number) => void,
) {
  const ended = (info: RequestInfo, sent: number) => {
    const { request, startMs, id, caller, key, route, subject, isFree } = info;
    const isGone = sent === 500 && request.signal.aborted;
    const status = isGone ? CLIENT_GONE : sent;
    const ms = performance.now() - startMs;
    onAnswered?.(info, status, ms);
    const level = isFree ? "debug" : "info";
    if (!log.writes(level)) return;
    const { address } = caller;
    const { method, url } = request;
    log[level]("request", {
      id,
      client: clients ? (address === null ? "unknown" : formatIp(address)) : undefined,
      method,
      // The pattern of the path, so that lines of one endpoint look alike.
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
    /** Turns a thrown error into an error of the API. Logs the cause of a 500, which the client does not get. */
    explain(error: Error, info: RequestInfo): ApiError {
      const { request, id } = info;
      const isExplained = error instanceof ApiError;
      const explained = isExplained ? error : new ApiError("INTERNAL_ERROR", { requestId: id });
      const { code, status } = explained;
      info.code = code;
      if (status === 500 && !request.signal.aborted) {
        log.error(isExplained ? error.message : traceOf(error), { code, requestId: id });
      }
      return explained;
    },
  };
}
