import type { Context, MiddlewareHandler } from "hono";
import { routePath } from "hono/route";
import { formatIp } from "../addr/ip.ts";
import type { Log } from "../util/log.ts";
import type { AppEnv } from "./context.ts";
import { Repeats } from "./log-throttle.ts";

const FIRST_REFUSAL_STATUS = 400;
const PREFLIGHT_STATUS = 204;

/** What scanners ask for can be as long as a request; nobody reads more of it than this. */
const MAX_PATH_CHARACTERS = 100;

/** What `accessLog` needs. */
export interface AccessLogOptions {
  readonly log: Log;
  /** Whether lines name clients' addresses. */
  readonly clients: boolean;
  /** Milliseconds of a monotonic clock. */
  readonly nowMs?: () => number;
}

/**
 * Writes one line for each request. A flood of what costs its sender nothing, refusals and preflights,
 * is counted instead.
 */
export function accessLog({
  log,
  clients,
  nowMs = () => performance.now(),
}: AccessLogOptions): MiddlewareHandler<AppEnv> {
  const floods = new Repeats(log);

  return async (context, next) => {
    const startMs = nowMs();
    await next();
    const endMs = nowMs();
    const { status } = context.res;
    const isFree = status >= FIRST_REFUSAL_STATUS || status === PREFLIGHT_STATUS;
    if (isFree && !floods.mayLog(`status ${status}`)) return;
    const { requestId, caller, key } = context.get("facts");
    const { address } = caller;
    log.info("request", {
      id: requestId,
      ...(clients ? { client: address === null ? "unknown" : formatIp(address) } : {}),
      method: context.req.method,
      route: routeOf(context),
      status,
      ms: Math.round((endMs - startMs) * 1000) / 1000,
      // Whoever goes away early has not seen the status.
      ...(context.req.raw.signal.aborted ? { clientGone: true } : {}),
      ...(key === null ? {} : { key: key.name }),
    });
  };
}

/** The pattern that the path matched, so that lines of one endpoint look alike; the path where none did. */
function routeOf(context: Context<AppEnv>): string {
  const pattern = routePath(context, -1);
  return pattern === "/*" ? context.req.path.slice(0, MAX_PATH_CHARACTERS) : pattern;
}
