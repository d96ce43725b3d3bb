/** The response headers whose values never vary; the interface document has them as examples. */

import frame from "./openapi-frame.json" with { type: "json" };

const { everywhere, further } = frame.headers;

/** Headers of a response with events. */
export const EVENT_STREAM_HEADERS = {
  "Content-Type": "text/event-stream",
  // nginx passes on every event at once.
  "X-Accel-Buffering": further["X-Accel-Buffering"].example,
} as const;

/** Headers of every response. */
export const CONSTANT_HEADERS = {
  "Access-Control-Allow-Origin": everywhere["Access-Control-Allow-Origin"].example,
  "Access-Control-Expose-Headers": everywhere["Access-Control-Expose-Headers"].example,
  "Cache-Control": everywhere["Cache-Control"].example,
  "X-Content-Type-Options": everywhere["X-Content-Type-Options"].example,
  "Content-Type": "application/json",
};

/** The Strict-Transport-Security header of every response over our own TLS. */
export const STRICT_TRANSPORT_SECURITY = everywhere["Strict-Transport-Security"].example;

/** The methods of every endpoint. */
export const METHODS = further.Allow.example;

/** The challenge of a 401, RFC 9110 section 11.6.1. */
export const API_KEY_SCHEME = further["WWW-Authenticate"].example;
