import { type Context, Hono, type HonoRequest } from "hono";
import { ENDPOINTS } from "../routes/endpoints.ts";
import { AccessLog } from "./access-log.ts";
import { BASE_PATH, type Call, type Endpoint, type RequestInfo, type Tools } from "./endpoint.ts";
import { ApiError, type ErrorCode } from "./errors.ts";
import {
  type Bindings,
  createMiddleware,
  type MiddlewareDependencies,
  sentKey,
} from "./middleware.ts";
import { readParameters } from "./parameters.ts";
import { respond, respondError } from "./respond.ts";

/** What is known of a request that is answered. */
export interface Answered {
  readonly route: string | null;
  readonly status: number;
  /** The code of an error. */
  readonly code: ErrorCode | undefined;
  /** Milliseconds from the request to the response. */
  readonly ms: number;
}

/** What the service is made of. */
export interface AppDependencies extends Tools, MiddlewareDependencies {
  readonly onAnswered?: ((answered: Answered) => void) | undefined;
}

/** The whole HTTP API: a request and its connection in, a response out. */
export interface App {
  /** The patterns of all paths, for `Bindings.route`. */
  readonly routes: readonly string[];
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
  const { log, config, onAnswered } = dependencies;
  const accessLog = new AccessLog(log, config.logClients);
  const admit = createMiddleware(dependencies);
  const router = new Hono<Env>();
  const endpoints = new Map<string, Endpoint>();
  for (const endpoint of ENDPOINTS) {
    for (const route of routesOf(endpoint)) {
      endpoints.set(route, endpoint);
      const handler = handlerOf(endpoint, dependencies);
      router.all(route, (context) => {
        const { req, env: info } = context;
        if (info.route !== null && endpoints.get(info.route) === endpoint) return handler(context);
        info.route = null;
        throw notFound(req);
      });
    }
  }
  router.notFound(({ req, env }) => respondError(env, notFound(req)));
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
    routes: [...endpoints.keys()],
    fetch(request, bindings) {
      const startMs = performance.now();
      const { info, response } = admit(request, bindings);
      return whenDone(response ?? router.fetch(request, info), (response) => {
        const { status } = response;
        const ms = performance.now() - startMs;
        accessLog.answered(info, status, ms);
        onAnswered?.({ route: info.route, status, code: info.code, ms });
        return response;
      });
    },
  };
}

/** Like `then`, but without a promise where the value is known. */
function whenDone<T, U>(value: T | Promise<T>, next: (value: T) => U): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

function notFound({ method, path }: HonoRequest): ApiError {
  return new ApiError("NOT_FOUND", { method, path });
}

/** The patterns of an endpoint's path: with and without a slash at the end, and without its last segment if that may be empty. */
function routesOf({ path, parameters }: Endpoint): string[] {
  const pattern = BASE_PATH + path.replace(/\{(\w+)\}/g, ":$1");
  const last = parameters[path.split(/[{}]/).at(-2) ?? ""];
  return last?.in === "path" && last.whenEmpty !== undefined
    ? [pattern, `${pattern}/`, pattern.replace(/[^/]+$/, "")]
    : [pattern, `${pattern}/`];
}

function handlerOf({ parameters, needsKey, handle }: Endpoint, tools: Tools) {
  return ({ req, env: info }: Context<Env>): Response | Promise<Response> => {
    const { method, path } = req;
    if (method !== "GET" && method !== "HEAD") {
      throw new ApiError("NOT_FOUND", { method, path }, `${path} has no method ${method}`);
    }
    if (needsKey && info.key === null) {
      const invalid = "The API key is unknown, revoked or expired; ask the operator for a new one";
      const note = sentKey(info.request.headers) === null ? undefined : invalid;
      throw new ApiError("UNAUTHORIZED", {}, note);
    }
    return whenDone(handle(readParameters(parameters, req), callOf(info), tools), (body) =>
      respond(info, typeof body === "string" ? body : JSON.stringify(body)),
    );
  };
}

function callOf({ request, caller, key, allowSeconds }: RequestInfo): Call {
  return {
    // Bun makes the signal when it is first read, which costs time.
    get signal() {
      return request.signal;
    },
    address: caller.address,
    owner: key?.sha256 ?? "",
    allowSeconds,
  };
}
