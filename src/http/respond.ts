import type { ApiError } from "../api/errors.ts";
import { API_KEY_SCHEME, CONSTANT_HEADERS, METHODS } from "../api/headers.ts";
import { hasAlready, prefers, type RequestInfo } from "./request.ts";

const CONSTANT = new Headers(CONSTANT_HEADERS);

/** The headers of the response to a CORS preflight. */
export const PREFLIGHT_HEADERS = {
  "Access-Control-Allow-Methods": METHODS,
  "Access-Control-Allow-Headers": "X-API-Key, Authorization, Accept, If-None-Match",
  /** Seconds; browsers cap it at one day or less. */
  "Access-Control-Max-Age": "86400",
} as const;

/**
 * Responds with JSON, or with the media type of the extra headers, and the headers of the request.
 *
 * @param body null for none
 * @param extra further headers
 */
export function respond(
  { request, headers }: Pick<RequestInfo, "request" | "headers">,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream | null,
  status = 200,
  extra?: Readonly<Record<string, string>>,
): Response {
  const response = new Response(body, { status, headers: CONSTANT });
  const fields = response.headers;
  for (const [name, value] of Object.entries({ ...headers, ...extra })) fields.set(name, value);
  // Hono drops the body, so Bun cannot know the length.
  if (request.method === "HEAD" && (typeof body === "string" || body instanceof Uint8Array)) {
    fields.set("Content-Length", String(Buffer.byteLength(body)));
  }
  return response;
}

/** Texts that are kept compressed: the files of the page, and a few others that change now and then. */
const MAX_ZIPPED = 32;

/** The compressed texts by ETag. */
const zipped = new Map<string, Uint8Array<ArrayBuffer>>();

/**
 * Like `respond`, for a text that seldom changes. It is compressed once for all clients that accept that; a client
 * that already has the text gets a 304.
 */
export function respondZipped(
  info: RequestInfo,
  text: string,
  extra?: Readonly<Record<string, string>>,
): Response {
  const { headers } = info.request;
  const etag = `W/"${Bun.hash(text).toString(36)}"`;
  const etagHeaders = { ...extra, Vary: "Accept-Encoding", ETag: etag };
  if (hasAlready(info.request, etag)) return respond(info, null, 304, etagHeaders);
  if (!prefers(headers.get("accept-encoding"), "gzip", "identity"))
    return respond(info, text, 200, etagHeaders);
  if (zipped.size >= MAX_ZIPPED && !zipped.has(etag)) zipped.clear();
  const gzip = zipped.getOrInsertComputed(etag, () => Bun.gzipSync(text, { level: 9 }));
  return respond(info, gzip, 200, { ...etagHeaders, "Content-Encoding": "gzip" });
}

/** Responds with an error, and the headers that the catalogue documents for it. */
export function respondError(info: RequestInfo, error: ApiError): Response {
  const { code, status, body, details } = error;
  const headers: Record<string, string> = {};
  if ("retryAfterSeconds" in details) headers["Retry-After"] = String(details.retryAfterSeconds);
  if (code === "UNAUTHORIZED") headers["WWW-Authenticate"] = API_KEY_SCHEME;
  if (code === "NOT_FOUND" && info.route !== null) headers["Allow"] = METHODS;
  return respond(info, JSON.stringify(body), status, headers);
}
