import type { RequestInfo } from "./endpoint.ts";
import { errorPage } from "./error-page.ts";
import type { ApiError } from "./errors.ts";
import { EVENT_STREAM_HEADERS } from "./event-stream.ts";

/** Headers of every response. */
export const CONSTANT_HEADERS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers":
    "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id, X-Content-Type-Options, Retry-After",
  "Cache-Control": "no-store",
  "Content-Type": "application/json",
  "X-Content-Type-Options": "nosniff",
} as const;

/** The header of every response over our own TLS. */
export const STRICT_TRANSPORT_SECURITY = "max-age=31536000";

/** The methods of every endpoint. */
export const METHODS = "GET, HEAD";

const API_KEY_SCHEME = 'ApiKey realm="sixscope", header="X-API-Key"';

const text = { type: "string" };
const count = { type: "integer", minimum: 0 };

/** A response header as the OpenAPI document describes it. */
interface HeaderObject {
  readonly description: string;
  /** Whether it is present wherever it is documented. */
  readonly required: boolean;
  readonly schema: { readonly type: string; readonly minimum?: number; readonly const?: string };
  readonly example: string | number;
}

function header(
  description: string,
  schema: HeaderObject["schema"],
  example: string | number,
  required = true,
): HeaderObject {
  return { description, required, schema, example };
}

/** A header that always has the same value. */
function constant(name: keyof typeof CONSTANT_HEADERS, description: string) {
  const value = CONSTANT_HEADERS[name];
  return header(description, { type: "string", const: value }, value);
}

/** Documented headers of every response. */
export const COMMON_HEADERS: Readonly<Record<string, HeaderObject>> = {
  "X-RateLimit-Limit": header("Requests per window of 60 seconds.", count, 100),
  "X-RateLimit-Remaining": header("Requests left in the window.", count, 99),
  "X-RateLimit-Reset": header("The Unix second in which the window ends.", count, 1_767_225_600),
  "X-Request-Id": header(
    "The id of this request in the operator's log.",
    text,
    "0b8d8f2e-5c0c-4b53-9a53-2b7b0e6a4f10",
  ),
  "Access-Control-Allow-Origin": constant(
    "Access-Control-Allow-Origin",
    "Pages of every origin may read the response.",
  ),
  "Access-Control-Expose-Headers": header(
    "Headers that a page of another origin may read.",
    text,
    CONSTANT_HEADERS["Access-Control-Expose-Headers"],
  ),
  "Cache-Control": constant("Cache-Control", "Responses must not be stored."),
  "X-Content-Type-Options": constant(
    "X-Content-Type-Options",
    "The content is what its type says.",
  ),
  "Strict-Transport-Security": header(
    "HTTPS only for a year; absent if a proxy terminates HTTPS.",
    text,
    STRICT_TRANSPORT_SECURITY,
    false,
  ),
};

/** Documented headers of certain responses. */
export const FURTHER_HEADERS: Readonly<Record<string, HeaderObject>> = {
  "Retry-After": header("Seconds to wait before the next attempt.", { ...count, minimum: 1 }, 17),
  "WWW-Authenticate": header("The scheme and header of the API key.", text, API_KEY_SCHEME),
  "X-Accel-Buffering": header(
    "Proxies pass on each event at once; absent if the response is JSON.",
    { type: "string", const: EVENT_STREAM_HEADERS["X-Accel-Buffering"] },
    EVENT_STREAM_HEADERS["X-Accel-Buffering"],
    false,
  ),
  Allow: header(
    "The methods of the path; absent if the path does not exist.",
    text,
    METHODS,
    false,
  ),
};

/**
 * Responds with JSON, or the text that the extra headers describe, and the headers of the request.
 *
 * @param json null for no body
 * @param extra further headers
 */
export function respond(
  { headers, request }: RequestInfo,
  json: string | Uint8Array<ArrayBuffer> | null,
  status = 200,
  extra?: Readonly<Record<string, string>>,
): Response {
  // The router drops the body of a response to HEAD, and Bun would then send a length of 0.
  const length =
    json !== null && request.method === "HEAD"
      ? { "Content-Length": String(Buffer.byteLength(json)) }
      : null;
  return new Response(json, {
    status,
    headers: extra || length ? { ...headers, ...extra, ...length } : headers,
  });
}

const zipped = new Map<string, Uint8Array<ArrayBuffer>>();

/** Like `respond`, for a text that is always the same: compressed once, and sent so to clients that accept it. */
export function respondZipped(
  info: RequestInfo,
  text: string,
  extra?: Readonly<Record<string, string>>,
): Response {
  const isAccepted = /\bgzip\b/.test(info.request.headers.get("accept-encoding") ?? "");
  const headers = { ...extra, Vary: "Accept-Encoding" };
  if (!isAccepted) return respond(info, text, 200, headers);
  const bytes = zipped.get(text) ?? Bun.gzipSync(text, { level: 9 });
  zipped.set(text, bytes);
  return respond(info, bytes, 200, { ...headers, "Content-Encoding": "gzip" });
}

/** Responds with an error, and the headers that the catalogue documents for it. */
export function respondError(info: RequestInfo, error: ApiError): Response {
  const { code, status, body, details } = error;
  info.code = code;
  const headers: Record<string, string> = {};
  if ("retryAfterSeconds" in details) headers["Retry-After"] = String(details.retryAfterSeconds);
  if (code === "UNAUTHORIZED") headers["WWW-Authenticate"] = API_KEY_SCHEME;
  if (code === "NOT_FOUND" && info.route !== null) headers["Allow"] = METHODS;
  if (!info.isPage) return respond(info, JSON.stringify(body), status, headers);
  const { html, securityPolicy } = errorPage(error, info.request.url);
  return respond(info, html, status, { ...headers, ...pageHeaders(securityPolicy) });
}

/** The headers of an HTML page. */
export function pageHeaders(securityPolicy: string) {
  return {
    "Content-Type": "text/html;charset=utf-8",
    "Content-Security-Policy": securityPolicy,
    "Referrer-Policy": "no-referrer",
    Vary: "Accept",
  };
}
