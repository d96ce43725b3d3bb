/** The response headers whose values never vary; the interface document has them as examples. */

import frame from "./openapi-frame.json" with { type: "json" };

const { everywhere, further } = frame.headers;

/** Headers of a response with events. */
export const EVENT_STREAM_HEADERS = {
  "Content-Type": "text/event-stream",
  // nginx passes on every event at once.
  "X-Accel-Buffering": further["X-Accel-Buffering"].example,
} as const;

const EVERYWHERE = [
  "Access-Control-Allow-Origin",
  "Access-Control-Expose-Headers",
  "Cache-Control",
  "X-Content-Type-Options",
] as const;

/** Headers of every response. */
export const CONSTANT_HEADERS = {
  ...Object.fromEntries(EVERYWHERE.map((name) => [name, everywhere[name].example])),
  "Content-Type": "application/json",
};

/** The header of every response over our own TLS. */
export const STRICT_TRANSPORT_SECURITY = everywhere["Strict-Transport-Security"].example;

/** The methods of every endpoint. */
export const METHODS = further.Allow.example;

/** The challenge of a 401, RFC 9110 section 11.6.1. */
export const API_KEY_SCHEME = further["WWW-Authenticate"].example;
