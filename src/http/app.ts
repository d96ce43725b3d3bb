import { type Context, Hono } from "hono";
import type { Config } from "../config/settings.ts";
import { ENDPOINTS, type EndpointDependencies } from "../routes/endpoints.ts";
import { traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { accessLog } from "./access-log.ts";
import type { AppEnv, Bindings } from "./context.ts";
import { BASE_PATH } from "./endpoint.ts";
import { ApiError, internalError, OperatorError } from "./errors.ts";
import { Repeats } from "./log-throttle.ts";
import { type EdgeDependencies, edge, requireKey } from "./middleware.ts";
import type { Parameters } from "./parameters.ts";
import { answerJson } from "./respond.ts";
import { ERROR_HEADERS } from "./response-headers.ts";

/** Stands in for a request target that is not absolute; no route has this path. */
const MALFORMED_TARGET = "http://malformed.invalid/";

export interface AppDependencies extends EdgeDependencies, EndpointDependencies {
  readonly config: Config;
  readonly log: Log;
}

/** The whole HTTP interface: a request and its connection in, a response out. */
export interface App {
  fetch(request: Request, bindings: Bindings): Response | Promise<Response>;
}

/** Builds the app: the edge first, then the endpoints, then what answers everything else. */
export function createApp(dependencies: AppDependencies): App {
  const app = new Hono<AppEnv>();
  const { log, config } = dependencies;
  if (log.writes("info")) app.use(accessLog({ log, clients: config.logClients }));
  app.use(edge(dependencies));

  const api = new Hono<AppEnv>();
  for (const { path, needsKey, parameters, createHandler } of ENDPOINTS) {
    const handler = createHandler(dependencies);
    for (const route of routesOf(path, parameters)) {
      if (needsKey) api.get(route, requireKey);
      api.get(route, handler);
      api.all(route, (context) => {
        throw notFound(context, { Allow: ERROR_HEADERS.Allow.example });
      });
    }
  }
  app.route(BASE_PATH, api);

  app.notFound((context) => {
    throw notFound(context);
  });
  const faults = new Repeats(log);
  // The one place that turns an error into a response.
  app.onError((error, context) => {
    const { requestId } = context.get("facts");
    const known = error instanceof ApiError ? error : internalError(requestId);
    const isHeard = !context.req.raw.signal.aborted;
    if (known.status === 500 && isHeard && faults.mayLog(known.code)) {
      logFault(log, known, error, requestId);
    }
    return answerJson(context, known.body, known.status, known.headers);
  });

  return {
    fetch(request, bindings) {
      // Hono would route a relative target by the part behind its first slashes.
      if (!request.url.startsWith("/")) return app.fetch(request, bindings);
      const { method, headers } = request;
      return app.fetch(new Request(MALFORMED_TARGET, { method, headers }), {
        ...bindings,
        malformedTarget: true,
      });
    },
  };
}

/** The path as Hono writes it; and without its last segment, where that may be empty. */
function routesOf(path: string, parameters: Parameters): string[] {
  const route = path.replace(/\{(\w+)\}/g, ":$1");
  const last = parameters[path.split(/[{}]/).at(-2) ?? ""];
  return last?.in === "path" && last.whenEmpty !== undefined
    ? [route, route.replace(/[^/]+$/, "")]
    : [route];
}

function notFound(context: Context<AppEnv>, headers: Record<string, string> = {}): ApiError {
  const { method, path } = context.req;
  const what =
    "Allow" in headers ? `${path} has no method ${method}` : `There is nothing at ${path}`;
  return new ApiError(
    "NOT_FOUND",
    `${what}; GET ${BASE_PATH}/openapi.json describes every endpoint.`,
    { method, path },
    headers,
  );
}

/** What the caller is not told stands in the log, under the id that the caller has. */
function logFault(log: Log, fault: ApiError, cause: Error, requestId: string): void {
  const isForeseen = cause instanceof ApiError || cause instanceof OperatorError;
  const what = isForeseen ? cause.message : traceOf(cause);
  log.error(what, { code: fault.code, requestId });
}
