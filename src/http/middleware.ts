import type { Context, MiddlewareHandler } from "hono";
import { formatIp, type IpAddress } from "../addr/ip.ts";
import type { KeyRecord } from "../keys/key-file.ts";
import type { Keyring } from "../keys/keyring.ts";
import { WINDOW_SECONDS } from "../limits/bucket-table.ts";
import { RateLimiter, type RateLimitState, type RateLimitSubject } from "../limits/rate-limit.ts";
import type { Log } from "../util/log.ts";
import { type Caller, identifyCaller, type TrustedProxies } from "./client-address.ts";
import type { AppEnv, Facts } from "./context.ts";
import { ApiError, tooMany } from "./errors.ts";
import { answerText } from "./respond.ts";
import { COMMON_HEADERS, ERROR_HEADERS } from "./response-headers.ts";

/** Headers of every answer, whatever it says. */
export const CONSTANT_HEADERS = {
  "Access-Control-Allow-Origin": COMMON_HEADERS["Access-Control-Allow-Origin"].example,
  "Access-Control-Expose-Headers": COMMON_HEADERS["Access-Control-Expose-Headers"].example,
  "Cache-Control": COMMON_HEADERS["Cache-Control"].example,
  "Content-Type": "application/json",
  "X-Content-Type-Options": COMMON_HEADERS["X-Content-Type-Options"].example,
} as const;

const { "Strict-Transport-Security": STRICT_TRANSPORT_SECURITY } = COMMON_HEADERS;

const PREFLIGHT_HEADERS = {
  "Access-Control-Allow-Methods": ERROR_HEADERS.Allow.example,
  "Access-Control-Allow-Headers": "X-API-Key, Accept",
  /** Seconds; browsers cap it at one day or less. */
  "Access-Control-Max-Age": "86400",
} as const;

/** Preflights a minute on one connection after the other; a browser keeps the answer for a day. */
const MAX_PREFLIGHTS = 1_000;

/** The form of a request id that a trusted proxy may hand in. */
const REQUEST_ID_FORM = /^[\w.=+/-]{1,128}$/;

export interface EdgeDependencies {
  readonly trustedProxies: TrustedProxies;
  readonly keyring: Pick<Keyring, "find">;
  readonly rateLimiter: RateLimiter;
  /** The limit of a key without one of its own, requests a minute. */
  readonly defaultKeyLimit: number;
  readonly log: Log;
}

/**
 * What every request passes before a route: who calls, over what, how often.
 *
 * Headers are decided on before the answer exists, so that it is built once, and errors have them too.
 */
export function edge(dependencies: EdgeDependencies): MiddlewareHandler<AppEnv> {
  const { trustedProxies, keyring, rateLimiter, defaultKeyLimit } = dependencies;
  const warnOfForwarding = onceUntrustedForwarding(dependencies.log);
  const preflights = new RateLimiter({ anonymous: MAX_PREFLIGHTS, prefix: 0 });

  // Not async: a request that goes through shall not wait for one more promise.
  return (context, next) => {
    const { headers } = context.req.raw;
    const caller = identifyCaller(context.env.connection, headers, trustedProxies);
    const key = findKey(keyring, headers);
    if (caller.untrustedForwarding) warnOfForwarding(caller.address);

    const preflight = isPreflight(context);
    const subject = subjectOf(caller, key, defaultKeyLimit);
    const isCounted = caller.secure && !preflight;
    const state = isCounted ? rateLimiter.take(subject) : rateLimiter.peek(subject);
    const isWelcome = preflight ? preflights.take(subject).allowed : state.allowed;
    // Bun reads on while answers pile up; a client that gets them for nothing shall not have it so.
    const closes = context.env.draining || !caller.secure || !isWelcome;
    context.set("facts", factsOf(context, caller, key, state, closes));

    if (!caller.secure) throw httpsRequired();
    if (preflight) return Promise.resolve(answerText(context, null, 204, PREFLIGHT_HEADERS));
    if (!state.allowed) throw rateLimited(state, rateLimiter.nowSeconds());
    if (context.env.malformedTarget) throw malformedTarget(headers);
    return next();
  };
}

/** Lets only requests with a valid key pass. */
export const requireKey: MiddlewareHandler<AppEnv> = async (context, next) => {
  if (context.get("facts").key === null) {
    const sent = context.req.header("x-api-key") !== undefined;
    throw new ApiError(
      "UNAUTHORIZED",
      sent
        ? "The key in X-API-Key is unknown, revoked or expired; ask the operator for a new one."
        : "This endpoint needs an API key; send it in the header X-API-Key.",
      {},
      { "WWW-Authenticate": ERROR_HEADERS["WWW-Authenticate"].example },
    );
  }
  await next();
};

function findKey(keyring: Pick<Keyring, "find">, headers: Headers): KeyRecord | null {
  const key = headers.get("x-api-key");
  return key === null ? null : keyring.find(key);
}

/** A missing or wrong key counts on the address's bucket. */
function subjectOf(caller: Caller, key: KeyRecord | null, defaultLimit: number): RateLimitSubject {
  return key === null
    ? { kind: "address", address: caller.address }
    : { kind: "key", sha256: key.sha256, limit: key.limit ?? defaultLimit };
}

/** Only a trusted proxy may name the request, so that a log cannot be confused from outside. */
function requestId(caller: Caller, headers: Headers): string {
  const given = caller.viaTrustedProxy ? headers.get("x-request-id") : null;
  return given !== null && REQUEST_ID_FORM.test(given) ? given : crypto.randomUUID();
}

function isPreflight(context: Context<AppEnv>): boolean {
  return (
    context.req.method === "OPTIONS" && context.req.raw.headers.has("access-control-request-method")
  );
}

function factsOf(
  context: Context<AppEnv>,
  caller: Caller,
  key: KeyRecord | null,
  state: RateLimitState,
  closes: boolean,
): Facts {
  const id = requestId(caller, context.req.raw.headers);
  const { connection } = context.env;
  const isEncrypted = connection.kind === "tcp" && connection.encrypted;
  const headers: Record<string, string> = {
    ...CONSTANT_HEADERS,
    "X-Request-Id": id,
    "X-RateLimit-Limit": String(state.limit),
    "X-RateLimit-Remaining": String(state.remaining),
    "X-RateLimit-Reset": String(state.resetSeconds),
  };
  if (closes) headers["Connection"] = "close";
  if (isEncrypted) headers["Strict-Transport-Security"] = STRICT_TRANSPORT_SECURITY.example;
  return { requestId: id, caller, key, headers };
}

function httpsRequired(): ApiError {
  return new ApiError(
    "HTTPS_REQUIRED",
    "This service answers over HTTPS only; repeat the request with https://.",
    {},
  );
}

function rateLimited(state: RateLimitState, nowSeconds: number): ApiError {
  const retryAfterSeconds = Math.max(1, state.resetSeconds - nowSeconds);
  return tooMany(
    "RATE_LIMITED",
    `The limit of ${state.limit} requests in ${WINDOW_SECONDS} seconds is used up; try again in ${retryAfterSeconds} seconds.`,
    { limit: state.limit, windowSeconds: WINDOW_SECONDS, retryAfterSeconds },
  );
}

function malformedTarget(headers: Headers): ApiError {
  return new ApiError(
    "INVALID_PARAMETER",
    "The header Host is missing or malformed; send the service's host name and port.",
    { parameter: "Host", value: headers.get("host") },
  );
}

/** An operator who forgot to name the proxy learns it from one line, not from one for each request. */
function onceUntrustedForwarding(log: Log): (peer: IpAddress | null) => void {
  let said = false;
  return (peer) => {
    if (said) return;
    said = true;
    log.warn(
      "a request with forwarding headers came from a peer that is not trusted, and they were ignored; if it is your proxy, name it in SIXSCOPE_TRUSTED_PROXIES",
      { peer: peer === null ? "unix" : formatIp(peer) },
    );
  };
}
