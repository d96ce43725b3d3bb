import { formatIp } from "../addr/ip.ts";
import { ApiError } from "../api/errors.ts";
import { STRICT_TRANSPORT_SECURITY } from "../api/headers.ts";
import type { Config } from "../config/settings.ts";
import type { Keyring } from "../keys/keyring.ts";
import { RateLimiter, type RateLimitState, WINDOW_SECONDS } from "../limits/token-bucket.ts";
import type { Log } from "../util/log.ts";
import type { SharedKeys } from "../valkey/keys.ts";
import type { SharedLimiter } from "../valkey/limiter.ts";
import { type Caller, type Connection, identifyCaller } from "./client-address.ts";
import type { RequestInfo } from "./request.ts";

/**
 * The share of responses without cost to the client that close the connection, chosen at random: a page
 * nearly always keeps its connection for the next request, and a flood loses its own within some dozens of
 * answers, 20 KB as a rule. More often costs more than the answers: a new connection is dearer than either.
 */
const FREE_CLOSES = 1 / 32;

/** Requests a minute for the page and its files, which cost nothing of the API's limit: one view is five at most. */
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

/** What is known of a request by its path. */
export interface Traits extends Pick<RequestInfo, "route" | "isPage"> {
  /** How many requests it counts as. */
  readonly price: number;
}

/** The parts that instances share through Valkey. */
export interface Shared {
  readonly rateLimiter: SharedLimiter;
  readonly keys: Pick<SharedKeys, "areOutdated">;
  /** The answer of `/readyz` while the service is ready. */
  readiness(): string;
}

export interface MiddlewareDependencies {
  readonly config: Config;
  readonly keyring: Pick<Keyring, "find">;
  readonly log: Log;
  /** Absent for an instance that is alone. */
  readonly shared?: Shared | null;
}

/**
 * Makes the function that identifies and counts each request. It returns what is known of the request,
 * whether it is a preflight, and why it is refused: plain HTTP, over the rate limit, or no valid Host.
 */
export function createMiddleware({ config, keyring, log, shared }: MiddlewareDependencies) {
  const { rate } = config;
  const rateLimiter = shared?.rateLimiter ?? new RateLimiter(rate);
  const pageLimiter = new RateLimiter(PAGE_RATE);
  let hasWarned = false;

  return (
    request: Request,
    { connection, allowSeconds, draining }: Bindings,
    { route, isPage, price }: Traits,
  ) => {
    const sent = request.headers;
    const caller = identifyCaller(connection, sent, config);
    const { address, secure } = caller;
    if (caller.untrustedForwarding && !hasWarned) {
      hasWarned = true;
      log.warn(
        "ignored the forwarding headers of a peer that is not trusted; if it is your proxy, add it to SIXSCOPE_TRUSTED_PROXIES",
        { peer: address === null ? "unix" : formatIp(address) },
      );
    }
    const keyText = sentKey(sent);
    const key = keyText === null || isPage ? null : keyring.find(keyText);
    const isPreflight = request.method === "OPTIONS" && sent.has("access-control-request-method");
    // A missing or wrong key is charged to the address.
    const taken = (isPage ? pageLimiter : rateLimiter).take(
      key === null
        ? { kind: "address", address }
        : { kind: "key", sha256: key.sha256, limit: key.limit ?? rate.key },
      secure && !isPreflight ? price : 0,
    );
    return whenDone(taken, (state) => {
      const sentId = caller.viaTrustedProxy ? sent.get("x-request-id") : null;
      const id = sentId !== null && REQUEST_ID_FORM.test(sentId) ? sentId : crypto.randomUUID();
      const headers: Record<string, string> = {
        "X-Request-Id": id,
        "X-RateLimit-Limit": String(state.limit),
        "X-RateLimit-Remaining": String(state.remaining),
        "X-RateLimit-Reset": String(state.resetSeconds),
      };
      // Bun reads on while responses pile up, so a connection must not get many that cost no quota.
      const isFree = !secure || !state.allowed || isPreflight;
      if (draining || (isFree && Math.random() < FREE_CLOSES)) headers["Connection"] = "close";
      if (connection.encrypted) headers["Strict-Transport-Security"] = STRICT_TRANSPORT_SECURITY;
      const info: RequestInfo = { request, id, caller, key, headers, allowSeconds, isPage, route };
      const isAnswered = secure && isPreflight;
      const refusal = isAnswered ? null : refusalOf(request, connection, caller, state, price);
      return { info, isPreflight: isAnswered, refusal };
    });
  };
}

/** Like `then`, but without a promise where the value is known. */
export function whenDone<T, U>(value: T | Promise<T>, next: (value: T) => U | Promise<U>) {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** The API key that a request has in `X-API-Key` or as a bearer token, RFC 6750; null if it has none. */
export function sentKey(headers: Headers): string | null {
  const key = headers.get("x-api-key");
  if (key !== null) return key;
  const authorization = headers.get("authorization");
  return authorization === null ? null : (/^Bearer +(.+)$/i.exec(authorization)?.[1] ?? null);
}

function refusalOf(
  request: Request,
  connection: Connection,
  { secure, untrustedForwarding }: Caller,
  state: RateLimitState,
  price: number,
): ApiError | null {
  if (!secure) {
    const proxy = connection.peer ?? "unix";
    return new ApiError("HTTPS_REQUIRED", {}, untrustedForwarding ? proxy : undefined);
  }
  const { allowed, limit, remaining, retryAfterSeconds } = state;
  if (!allowed) {
    const windowSeconds = WINDOW_SECONDS;
    if (price > limit) {
      const details = { parameter: "query", value: request.url.replace(/^[^?]*/, "") };
      const dear = `counts as ${price}, and the limit is ${limit} in ${windowSeconds} seconds; ask for less at once, or with a key of a higher limit`;
      return new ApiError("INVALID_PARAMETER", details, dear);
    }
    const left = `has ${remaining} left, and this request counts as ${price}`;
    const details = { limit, windowSeconds, retryAfterSeconds };
    return new ApiError("RATE_LIMITED", details, remaining > 0 ? left : undefined);
  }
  const host = request.headers.get("host");
  // Without a usable Host the URL is relative, and its path cannot be trusted. Two are joined by a comma.
  if (!request.url.startsWith("/") && !host?.includes(",")) return null;
  return new ApiError(
    "INVALID_PARAMETER",
    { parameter: "Host", value: host },
    "send the service's host name and port in one header Host",
  );
}
