import type { ApiError } from "../api/errors.ts";
import { API_KEY_SCHEME, METHODS } from "../api/headers.ts";
import { errorPage } from "./error-page.ts";
import type { RequestInfo } from "./request.ts";

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
  const bytes = zipped.getOrInsertComputed(text, () => Bun.gzipSync(text, { level: 9 }));
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
