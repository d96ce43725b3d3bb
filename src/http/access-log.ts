import { formatIp } from "../addr/ip.ts";
import { traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { RequestInfo } from "./endpoint.ts";
import { ApiError } from "./errors.ts";

/** Characters of an unknown path in a log line. */
const MAX_PATH_CHARACTERS = 100;

/** At most so many lines per error status are logged each minute; the rest is counted. */
const MAX_LINES = 100;

/** The status in log and metrics if the client disconnected first, as nginx has it. */
export const CLIENT_GONE = 499;

const MINUTE_MS = 60_000;

/** The status that the operator sees: `CLIENT_GONE` if the client disconnected first. */
export function loggedStatus(request: Request, status: number): number {
  return status === 500 && request.signal.aborted ? CLIENT_GONE : status;
}

/** Logs requests and faults, within a number of lines per minute for those that cost their sender no quota. */
export class AccessLog {
  readonly #log: Log;
  readonly #clients: boolean;
  /** Lines by kind (a status or an error code) since the minute began. */
  readonly #counts = new Map<string, number>();

  /** @param clients whether lines contain the addresses of clients */
  constructor(log: Log, clients: boolean) {
    this.#log = log;
    this.#clients = clients;
  }

  /** Logs a request that was answered after so many milliseconds; see `loggedStatus`. */
  answered({ request, id, caller, key, route }: RequestInfo, status: number, ms: number): void {
    if (!this.#log.writes("info")) return;
    const isFree = status >= 400 || status === 204;
    if (isFree && !this.#mayLog(`status ${status}`)) return;
    const { address } = caller;
    this.#log.info("request", {
      id,
      client: this.#clients ? (address === null ? "unknown" : formatIp(address)) : undefined,
      method: request.method,
      // The pattern, so that lines of one endpoint look alike.
      route: route ?? pathOf(request).slice(0, MAX_PATH_CHARACTERS),
      status,
      ms: Math.round(ms * 1000) / 1000,
      key: key?.name,
    });
  }

  /** Logs what the client of a 500 is not told; without a trace if the message explains it. */
  fault({ id }: RequestInfo, code: string, cause: Error): void {
    if (!this.#mayLog(code)) return;
    const what = cause instanceof ApiError ? cause.message : traceOf(cause);
    this.#log.error(what, { code, requestId: id });
  }

  #mayLog(kind: string): boolean {
    if (this.#counts.size === 0) setTimeout(() => this.#endMinute(), MINUTE_MS).unref();
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    return count <= MAX_LINES;
  }

  #endMinute(): void {
    for (const [kind, count] of this.#counts) {
      if (count > MAX_LINES) {
        this.#log.warn("not logged in the last minute", { kind, count: count - MAX_LINES });
      }
    }
    this.#counts.clear();
  }
}

/** The path of a request, also of one whose target is not absolute. */
function pathOf({ url }: Request): string {
  return URL.parse(url)?.pathname ?? url;
}
