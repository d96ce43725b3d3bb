import type { Context } from "hono";
import { formatIp } from "../addr/ip.ts";
import { ApiError } from "../api/errors.ts";
import { STRICT_TRANSPORT_SECURITY } from "../api/headers.ts";
import type { Config } from "../config/settings.ts";
import type { Keyring } from "../keys/keyring.ts";
import { createRateLimiter, type RateLimitState, WINDOW_SECONDS } from "../limits/token-bucket.ts";
import type { Log } from "../util/log.ts";
import type { Shared } from "../valkey/shared.ts";
import { type Connection, identifyCaller } from "./client-address.ts";
import type { RequestInfo } from "./request.ts";
import { PREFLIGHT_HEADERS, respond } from "./respond.ts";

/**
 * The share of free responses that close the connection, chosen at random. A page nearly always keeps its
 * connection for the next request, and a flood loses its own after some dozens of answers, about 20 KB. A larger
 * share would cost more than it saves, because a new connection costs more than an answer.
 */
const FREE_CLOSES = 1 / 32;

/** Requests a minute for the page and its files, which do not count towards the API's limit: a view has at most five. */
const PAGE_RATE = { anonymous: 300, prefix: 3_000 };

/** Request ids that are accepted from a trusted proxy. */
const REQUEST_ID_FORM = /^[\w.=+/-]{1,128}$/;

/** Facts that the server passes with each request. */
export interface Bindings {
  readonly connection: Connection;
  /** See `RequestInfo`. */
  readonly allowSeconds: (seconds: number) => void;
  /** True if the client must open a new connection for its next request. */
  readonly draining: boolean;
}

/** The types of a request's context. */
export interface Env {
  readonly Bindings: Bindings;
  readonly Variables: { info: RequestInfo };
}

/** The facts about a path that the middleware needs. */
export interface Route {
  /** The patterns of all spellings of the path, the main one first; none if it does not exist. */
  readonly patterns: readonly string[];
  /** The number of requests that one counts as; without this, one. */
  price?(context: Context<Env>): number;
  /** True for a request for the page, which has a limit of its own. */
  isPage?(accept: string | null): boolean;
}

export interface MiddlewareDependencies {
  readonly config: Config;
  readonly keyring: Pick<Keyring, "find">;
  readonly log: Log;
  /** Absent for an instance that is alone. */
  readonly shared?: Pick<Shared, "rateLimiter" | "keys"> | null;
}

/**
 * Makes the middleware, which identifies and counts each request. It returns the response to a preflight, or null for
 * a request that may be handled. It throws an ApiError for a request with plain HTTP, over the rate limit, without a
 * valid Host, or with an unknown method.
 */
export function createMiddleware({ config, keyring, log, shared }: MiddlewareDependencies) {
  const { rate } = config;
  const rateLimiter = shared?.rateLimiter ?? createRateLimiter(rate);
  const pageLimiter = createRateLimiter(PAGE_RATE);
  let hasWarned = false;

  return (path: Route, context: Context<Env>) => {
    const startMs = performance.now();
    const request = context.req.raw;
    const received = request.headers;
    const { connection, allowSeconds, draining } = context.env;
    const isPage = path.isPage?.(received.get("accept")) ?? false;
    const price = path.price?.(context) ?? 1;
    const caller = identifyCaller(connection, received, config);
    const { address, secure } = caller;
    if (caller.untrustedForwarding && !hasWarned) {
      hasWarned = true;
      log.warn(
        "ignored the forwarding headers of a peer that is not trusted; if it is your proxy, add it to SIXSCOPE_TRUSTED_PROXIES",
        { peer: address === null ? "unix" : formatIp(address) },
      );
    }
    const keyText = sentKey(received);
    const key = keyText === null || isPage ? null : keyring.find(keyText);
    const isPreflight =
      request.method === "OPTIONS" && received.has("access-control-request-method");
    // A missing or wrong key is charged to the address.
    const taken = (isPage ? pageLimiter : rateLimiter).take(
      key === null ? { address } : { sha256: key.sha256, limit: key.limit ?? rate.key },
      secure && !isPreflight ? price : 0,
    );
    return whenDone(taken, (state) => {
      const sentId = caller.viaTrustedProxy ? received.get("x-request-id") : null;
      const id = sentId !== null && REQUEST_ID_FORM.test(sentId) ? sentId : crypto.randomUUID();
      const headers: Record<string, string> = {
        "X-Request-Id": id,
        "X-RateLimit-Limit": String(state.limit),
        "X-RateLimit-Remaining": String(state.remaining),
        "X-RateLimit-Reset": String(state.resetSeconds),
      };
      // Bun reads on while responses pile up, so a connection must not get many free ones.
      const isFree = !secure || !state.allowed || isPreflight;
      if (draining || (isFree && Math.random() < FREE_CLOSES)) headers["Connection"] = "close";
      if (connection.encrypted) headers["Strict-Transport-Security"] = STRICT_TRANSPORT_SECURITY;
      const route = path.patterns[0] ?? null;
      const about = { request, startMs, id, caller, key, headers };
      const info = { ...about, allowSeconds, isFree, isPage, route };
      context.set("info", info);
      if (secure && isPreflight) return respond(info, null, 204, PREFLIGHT_HEADERS);
      refuse(info, connection, state, price);
      return null;
    });
  };
}

/** Like `then`, but without a promise if the value is there, because Bun answers such requests faster. */
export function whenDone<T, U>(value: T | Promise<T>, next: (value: T) => U | Promise<U>) {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** The API key that a request has in `X-API-Key` or as a bearer token, RFC 6750; null if it has none. */
export function sentKey(headers: Headers): string | null {
  const bearer = /^Bearer +([^ ].*)$/i.exec(headers.get("authorization") ?? "")?.[1];
  // Programs without a key may send the header empty.
  return headers.get("x-api-key") || bearer || null;
}

/** @throws ApiError if the request must not be handled */
function refuse(
  { request, caller, route }: RequestInfo,
  connection: Connection,
  { allowed, limit, remaining, retryAfterSeconds }: RateLimitState,
  price: number,
): void {
  if (!caller.secure) {
    const proxy = connection.peer ?? "unix";
    throw new ApiError("HTTPS_REQUIRED", {}, caller.untrustedForwarding ? proxy : undefined);
  }
  if (!allowed && price > limit) {
    const details = { parameter: "query", value: request.url.replace(/^[^?]*/, "") };
    const tooDear = `counts as ${price}, and the limit is ${limit} in ${WINDOW_SECONDS} seconds; ask for less at once, or with a key of a higher limit`;
    throw new ApiError("INVALID_PARAMETER", details, tooDear);
  }
  if (!allowed) {
    const tooFew = `has ${remaining} left, and this request counts as ${price}`;
    const details = { limit, windowSeconds: WINDOW_SECONDS, retryAfterSeconds };
    throw new ApiError("RATE_LIMITED", details, remaining > 0 ? tooFew : undefined);
  }
  const { url, method, headers } = request;
  const host = headers.get("host");
  // Without a usable Host, the URL is relative and its path cannot be trusted. Two Hosts are joined by a comma.
  if (url.startsWith("/") || host?.includes(",")) {
    const details = { parameter: "Host", value: host };
    const advice = "send the service's host name and port in one header Host";
    throw new ApiError("INVALID_PARAMETER", details, advice);
  }
  if (route !== null && method !== "GET" && method !== "HEAD") {
    const path = new URL(url).pathname;
    throw new ApiError("NOT_FOUND", { method, path }, `${path} has no method ${method}`);
  }
}
