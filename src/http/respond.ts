import type { ApiError } from "../api/errors.ts";
import { API_KEY_SCHEME, CONSTANT_HEADERS, METHODS } from "../api/headers.ts";
import type { RequestInfo } from "./request.ts";

const CONSTANT = new Headers(CONSTANT_HEADERS);

/** The headers of the response to a CORS preflight. */
export const PREFLIGHT_HEADERS = {
  "Access-Control-Allow-Methods": METHODS,
  "Access-Control-Allow-Headers": "X-API-Key, Authorization, Accept",
  /** Seconds; browsers cap it at one day or less. */
  "Access-Control-Max-Age": "86400",
} as const;

/**
 * Responds with JSON, or the text that the extra headers describe, and the headers of the request.
 *
 * @param body null for none
 * @param extra further headers
 */
export function respond(
  { request, headers }: Pick<RequestInfo, "request" | "headers">,
  body: string | Uint8Array<ArrayBuffer> | AsyncGenerator<string> | null,
  status = 200,
  extra?: Readonly<Record<string, string>>,
): Response {
  // Bun takes generators, which the browsers' types of the page do not know.
  const response = new Response(body as BodyInit | null, { status, headers: CONSTANT });
  for (const name in headers) response.headers.set(name, headers[name] as string);
  for (const name in extra) response.headers.set(name, extra[name] as string);
  // Hono drops the body, by which Bun would know the length.
  if (request.method === "HEAD" && (typeof body === "string" || body instanceof Uint8Array)) {
    response.headers.set("Content-Length", String(Buffer.byteLength(body)));
  }
  return response;
}

/** Paths whose text is kept compressed: the files of the page, and a few more, whose text changes now and then. */
const MAX_ZIPPED = 32;

/** Characters of a text that are compressed fast: that of 10,000 locations has two million. */
const FAST_ABOVE = 512 * 1024;

/** The last text of each path. */
const zipped = new Map<string, { text: string; etag: string; gzip?: Uint8Array<ArrayBuffer> }>();

/**
 * Like `respond`, for a text that seldom changes: compressed once, and sent so to clients that accept it; those
 * that have it already get a 304.
 */
export function respondZipped(
  info: RequestInfo,
  text: string,
  extra?: Readonly<Record<string, string>>,
): Response {
  const { headers, url } = info.request;
  const { pathname } = new URL(url);
  let kept = zipped.get(pathname);
  if (kept?.text !== text) {
    if (zipped.size >= MAX_ZIPPED) zipped.clear();
    kept = { text, etag: `W/"${Bun.hash(text).toString(36)}"` };
    zipped.set(pathname, kept);
  }
  const about = { ...extra, Vary: "Accept-Encoding", ETag: kept.etag };
  if (headers.get("if-none-match") === kept.etag) return respond(info, null, 304, about);
  if (!/\bgzip\b/.test(headers.get("accept-encoding") ?? ""))
    return respond(info, text, 200, about);
  kept.gzip ??= Bun.gzipSync(text, { level: text.length > FAST_ABOVE ? 1 : 9 });
  return respond(info, kept.gzip, 200, { ...about, "Content-Encoding": "gzip" });
}

/** Responds with an error, and the headers that the catalogue documents for it; as JSON unless it is a page for people. */
export function respondError(
  info: RequestInfo,
  { code, status, body, details }: ApiError,
  page: { readonly html: string; readonly headers: Readonly<Record<string, string>> } | null = null,
): Response {
  info.code = code;
  const headers: Record<string, string> = { ...page?.headers };
  if ("retryAfterSeconds" in details) headers["Retry-After"] = String(details.retryAfterSeconds);
  if (code === "UNAUTHORIZED") headers["WWW-Authenticate"] = API_KEY_SCHEME;
  if (code === "NOT_FOUND" && info.route !== null) headers["Allow"] = METHODS;
  return respond(info, page?.html ?? JSON.stringify(body), status, headers);
}
