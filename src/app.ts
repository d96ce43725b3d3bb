import { type Context, Hono } from "hono";
import type { Config } from "./config.ts";
import { accessLog } from "./http/access-log.ts";
import { type EdgeDependencies, edge, requireKey } from "./http/edge.ts";
import type { AppEnv, Bindings } from "./http/environment.ts";
import { ApiError, internalError } from "./http/errors.ts";
import { Repeats } from "./http/repeats.ts";
import type { Log } from "./log.ts";
import { dnsRoute } from "./routes/dns.ts";
import { myIpRoute } from "./routes/my-ip.ts";
import { pingRoute } from "./routes/ping.ts";
import type { ProbeDependencies } from "./routes/probe.ts";
import { tracerouteRoute } from "./routes/traceroute.ts";
import { validateRoute } from "./routes/validate.ts";

/** Every path of the interface begins with it. */
export const BASE_PATH = "/api/v1";

/** Methods that every endpoint has; HEAD works where GET does. */
const ALLOW = "GET, HEAD, OPTIONS";

/** Stands in for a request target that is not absolute; no route has this path. */
const MALFORMED_TARGET = "http://malformed.invalid/";

export interface AppDependencies extends EdgeDependencies, ProbeDependencies {
  readonly config: Config;
  readonly log: Log;
}

/** The whole HTTP interface: a request and its connection in, a response out. */
export interface App {
  fetch(request: Request, bindings: Bindings): Response | Promise<Response>;
}

/** Builds the app: the edge first, then the five endpoints, then what answers everything else. */
export function createApp(dependencies: AppDependencies): App {
  const app = new Hono<AppEnv>();
  app.use(accessLog({ log: dependencies.log, clients: dependencies.config.logClients }));
  app.use(edge(dependencies));

  const api = new Hono<AppEnv>();
  api.get("/myip", myIpRoute());
  api.get("/validate", validateRoute());
  api.get("/dns/:hostname", dnsRoute(dependencies));
  api.get("/ping/:target", requireKey, pingRoute(dependencies));
  api.get("/traceroute/:target", requireKey, tracerouteRoute(dependencies));
  for (const path of new Set(api.routes.map((route) => route.path))) {
    api.all(path, (context) => {
      throw notFound(context, { Allow: ALLOW });
    });
  }
  app.route(BASE_PATH, api);

  app.notFound((context) => {
    throw notFound(context);
  });
  const faults = new Repeats(dependencies.log);
  // The one place that turns an error into a response.
  app.onError((error, context) => {
    const known = toApiError(error, context.var.requestId);
    const isHeard = !context.req.raw.signal.aborted;
    if (known.status === 500 && isHeard && faults.mayLog(known.code)) {
      logFault(dependencies.log, known, error, context.var.requestId);
    }
    return context.json(known.body, known.status, known.headers);
  });

  return {
    fetch(request, bindings) {
      // Hono would route a relative target by the part behind its first slashes.
      return request.url.startsWith("/")
        ? app.fetch(new Request(MALFORMED_TARGET, { headers: request.headers }), {
            ...bindings,
            malformedTarget: true,
          })
        : app.fetch(request, bindings);
    },
  };
}

function notFound(context: Context<AppEnv>, headers: Record<string, string> = {}): ApiError {
  const { method, path } = context.req;
  const what =
    "Allow" in headers ? `${path} has no method ${method}` : `There is nothing at ${path}`;
  return new ApiError(
    "NOT_FOUND",
    `${what}; see GET ${BASE_PATH}/myip, /validate, /dns/{hostname}, /ping/{target} and /traceroute/{target}.`,
    { method, path },
    headers,
  );
}

function toApiError(error: Error, requestId: string): ApiError {
  return error instanceof ApiError ? error : internalError(requestId);
}

/** What the caller is not told stands in the log, under the id that the caller has. */
function logFault(log: Log, fault: ApiError, cause: Error, requestId: string): void {
  const what = cause instanceof ApiError ? cause.message : (cause.stack ?? String(cause));
  log.error(what, { code: fault.code, requestId });
}
