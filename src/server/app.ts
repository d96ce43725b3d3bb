import { type Context, Hono } from "hono";
import { formatIp, type IpAddress, networkOf } from "../addr/ip.ts";
import { BASE_PATH, type Call, FROM, isOfSeveral, SEVERAL } from "../api/endpoint.ts";
import { ApiError } from "../api/errors.ts";
import { priceOf, readParameters } from "../api/parameters.ts";
import { createAccessLog } from "../http/access-log.ts";
import { isFromOtherSite } from "../http/client-address.ts";
import { streamEvents } from "../http/event-stream.ts";
import {
  type Bindings,
  createMiddleware,
  type Env,
  type MiddlewareDependencies,
  type Route,
  sentKey,
  whenDone,
} from "../http/middleware.ts";
import { prefers, type RequestInfo } from "../http/request.ts";
import { respond, respondError, respondZipped } from "../http/respond.ts";
import type { Keyring } from "../keys/keyring.ts";
import { addressOf } from "../tools/my-ip/endpoint.ts";
import type { Endpoint, Services } from "../tools/services.ts";
import type { WatchServices } from "../watch/endpoint.ts";
import { ENDPOINTS } from "./endpoints.ts";

/** Reasons why a request is not authorised, other than a missing key. */
const INVALID_KEY = "The API key is unknown, revoked or expired; ask the operator for a new one";
const FOREIGN_PAGE =
  "This network needs no API key here, but a page of another site does; send one in the header X-API-Key";

/** Responds with the page or the file of pages at a request's path; null if there is none. */
export type Pages = (
  info: RequestInfo,
  address: IpAddress,
  services: WatchServices,
) => Promise<Response | null>;

/** The parts of the service that the app uses. */
export interface AppDependencies extends WatchServices, MiddlewareDependencies {
  readonly keyring: Pick<Keyring, "find" | "whileValid">;
  readonly pages: Pages;
  readonly onAnswered?: Parameters<typeof createAccessLog>[2];
}

/** The whole HTTP API: a request and its connection in, a response out. */
export interface App {
  fetch(request: Request, bindings: Bindings): Response | Promise<Response>;
}

/** Handles a request that has been admitted. */
type Handler = (info: RequestInfo, context: Context<Env>) => Response | Promise<Response>;

/** Builds the app: for each path the middleware, then its handler, then the access log. */
export function createApp(dependencies: AppDependencies): App {
  const { log, config, pages, onAnswered } = dependencies;
  const { answered, explain } = createAccessLog(log, config.logClients, onAnswered);
  const admit = createMiddleware(dependencies);
  const app = new Hono<Env>();
  const serve = (route: Route, handler: Handler) => (context: Context<Env>) =>
    whenDone(admit(route, context), (preflight) => {
      const info = context.get("info");
      const response = preflight ?? handler(info, context);
      return whenDone(response, (response) => answered(info, response));
    });
  const add = (route: Route, handler: Handler) =>
    app.on("ALL", [...route.patterns], serve(route, handler));
  const missing: Handler = (_, { req: { method, path } }) => {
    throw new ApiError("NOT_FOUND", { method, path });
  };
  app.notFound(serve({ patterns: [] }, missing));
  // The only place that turns a thrown error into a response.
  app.onError((error, { var: { info } }) => {
    // The middleware itself has failed.
    if (info === undefined) throw error;
    return answered(info, respondError(info, explain(error, info)));
  });

  for (const endpoint of ENDPOINTS) {
    add(routeOf(endpoint, dependencies), handlerOf(endpoint, dependencies, explain));
  }
  const asText = (info: RequestInfo, headers = {}) => {
    const text = `${formatIp(addressOf(callOf(info)))}\n`;
    return respond(info, text, 200, { "Content-Type": "text/plain", ...headers });
  };
  const page: Handler = async (info, context) =>
    (await pages(info, addressOf(callOf(info)), dependencies)) ?? missing(info, context);
  // A shell gets the caller's address as plain text here, and a browser the page.
  add(
    { patterns: ["/"], isPage: (accept) => prefers(accept, "text/html", "text/plain") },
    (info, context) => (info.isPage ? page(info, context) : asText(info, { Vary: "Accept" })),
  );
  add({ patterns: ["/ip"] }, (info) => asText(info));
  for (const path of ["/docs", "/assets/:file"])
    add({ patterns: [path], isPage: () => true }, page);
  return app;
}

/** The route of an endpoint: with and without a slash at the end, and without its last segment if that may be empty. */
function routeOf(endpoint: Endpoint, { locations }: Services): Route {
  const { path, parameters, price = 1 } = endpoint;
  const pattern = BASE_PATH + path.replace(/\{(\w+)\}/g, ":$1");
  const last = parameters[path.split(/[{}]/).at(-2) ?? ""];
  const empty =
    last?.whenEmpty === undefined ? [] : [pattern.slice(0, pattern.lastIndexOf("/") + 1)];
  const byWord = () => locations?.byWord() ?? new Map();
  return {
    patterns: [pattern, `${pattern}/`, ...empty],
    price: ({ req }) => (req.url.includes("?") ? priceOf(endpoint, req.queries(), byWord) : price),
  };
}

function handlerOf(
  endpoint: Endpoint,
  services: AppDependencies,
  explain: (error: Error, info: RequestInfo) => ApiError,
): Handler {
  const { keyring, shared, config } = services;
  const { parameters, needsKey, handle, events, isLive } = endpoint;
  const subject = Object.keys(parameters).find((name) => parameters[name]?.in === "path");
  return (info, context) => {
    const { request, caller, key } = info;
    const isKeyed = needsKey && caller.needsKey;
    if (isKeyed && shared?.keys.areOutdated()) throw new ApiError("KEYS_UNAVAILABLE", {});
    if (needsKey && key === null && (isKeyed || isFromOtherSite(request.headers))) {
      const reason = isKeyed ? undefined : FOREIGN_PAGE;
      const hasSentKey = sentKey(request.headers) !== null;
      throw new ApiError("UNAUTHORIZED", {}, hasSentKey ? INVALID_KEY : reason);
    }
    const values = readParameters(parameters, context.req);
    if (config.logTargets && subject !== undefined) {
      const { [subject]: target, [FROM]: from } = values;
      info.subject = { target: target as string, from: from as string | undefined };
    }
    const perform = (call: Call) => {
      if (!isKeyed || key === null) return handle(values, call, services);
      const run = (signal: AbortSignal) => handle(values, { ...call, signal }, services);
      const invalid = () => new ApiError("UNAUTHORIZED", {}, INVALID_KEY);
      return keyring.whileValid(key, call.signal, run, invalid);
    };
    const call = callOf(info);
    const accept = request.headers.get("accept");
    const wantsEvents = events && prefers(accept, "text/event-stream", "application/json");
    if (wantsEvents && request.method === "GET") {
      const run: Parameters<typeof streamEvents>[1] = async (onEvent, signal) =>
        JSON.stringify(await perform({ ...call, signal, onEvent }));
      return streamEvents(info, run, explain, isLive);
    }
    return whenDone(perform(call), (body) => {
      if (typeof body === "string") return respondZipped(info, body);
      const type = isOfSeveral(endpoint, body) ? { "Content-Type": SEVERAL } : undefined;
      return respond(info, JSON.stringify(body), 200, type);
    });
  };
}

function callOf(info: RequestInfo): Call {
  const { request, id, caller, key, allowSeconds } = info;
  return {
    id,
    onAddress: (ip) => {
      if (info.subject) info.subject["ip"] = ip;
    },
    // Bun makes the signal when it is first read, which costs time.
    get signal() {
      return request.signal;
    },
    address: caller.address,
    get client() {
      if (key !== null || caller.address === null) return key?.sha256 ?? "";
      return caller.needsKey ? networkOf(caller.address) : formatIp(caller.address);
    },
    allowSeconds,
  };
}
