import { type Context, Hono } from "hono";
import { ENDPOINTS } from "../routes/endpoints.ts";
import { AccessLog } from "./access-log.ts";
import { BASE_PATH, type Endpoint, type RequestInfo, type Tools } from "./endpoint.ts";
import { ApiError } from "./errors.ts";
import { type Bindings, createMiddleware, type MiddlewareDependencies } from "./middleware.ts";
import { readParameters } from "./parameters.ts";
import { respond, respondError } from "./respond.ts";

/** What the service is made of. */
export type AppDependencies = Tools & MiddlewareDependencies;

/** The whole HTTP API: a request and its connection in, a response out. */
export interface App {
  fetch(request: Request, bindings: Bindings): Response | Promise<Response>;
}

interface Env {
  readonly Bindings: RequestInfo;
}

/**
 * Builds the app: the middleware, then the endpoint, then the access log.
 *
 * Each path has one handler, because Hono calls a single handler directly.
 */
export function createApp(dependencies: AppDependencies): App {
  const { log, config } = dependencies;
  const accessLog = new AccessLog(log, config.logClients);
  const admit = createMiddleware(dependencies);
  const router = new Hono<Env>();
  for (const endpoint of ENDPOINTS) {
    for (const route of routesOf(endpoint)) {
      router.all(route, handlerOf(endpoint, route, dependencies));
    }
  }
  router.notFound(({ req, env }) =>
    respondError(env, new ApiError("NOT_FOUND", { method: req.method, path: req.path })),
  );
  // The only place that turns a thrown error into a response.
  router.onError((error, { env }) => {
    const known =
      error instanceof ApiError ? error : new ApiError("INTERNAL_ERROR", { requestId: env.id });
    if (known.status === 500 && !env.request.signal.aborted) {
      accessLog.fault(env, known.code, error);
    }
    return respondError(env, known);
  });

  return {
    fetch(request, bindings) {
      const startMs = performance.now();
      const { info, response } = admit(request, bindings);
      return whenDone(response ?? router.fetch(request, info), (response) => {
        accessLog.answered(info, response.status, performance.now() - startMs);
        return response;
      });
    },
  };
}

/** Like `then`, but without a promise where the value is known. */
function whenDone<T, U>(value: T | Promise<T>, next: (value: T) => U): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** The path as Hono writes it, also without its last segment if that may be empty. */
function routesOf({ path, parameters }: Endpoint): string[] {
  const route = BASE_PATH + path.replace(/\{(\w+)\}/g, ":$1");
  const last = parameters[path.split(/[{}]/).at(-2) ?? ""];
  return last?.in === "path" && last.whenEmpty !== undefined
    ? [route, route.replace(/[^/]+$/, "")]
    : [route];
}

function handlerOf({ parameters, needsKey, handle }: Endpoint, route: string, tools: Tools) {
  return ({ req, env: info }: Context<Env>): Response | Promise<Response> => {
    info.route = route;
    const { method, path } = req;
    if (method !== "GET" && method !== "HEAD") {
      throw new ApiError("NOT_FOUND", { method, path }, `${path} has no method ${method}`);
    }
    if (needsKey && info.key === null) {
      const invalid =
        "The key in X-API-Key is unknown, revoked or expired; ask the operator for a new one";
      const note = info.request.headers.has("x-api-key") ? invalid : undefined;
      throw new ApiError("UNAUTHORIZED", {}, note);
    }
    return whenDone(handle(readParameters(parameters, req), info, tools), (body) =>
      respond(info, typeof body === "string" ? body : JSON.stringify(body)),
    );
  };
}
