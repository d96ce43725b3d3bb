import type { Context } from "hono";
import { streamSSE } from "hono/streaming";
import type { Call } from "../api/endpoint.ts";
import type { ApiError } from "../api/errors.ts";
import { EVENT_STREAM_HEADERS } from "../api/headers.ts";
import { CLIENT_GONE } from "./access-log.ts";
import { prefers } from "./request.ts";

/**
 * Milliseconds between two comments, which keep a quiet connection open: those to us and in proxies. If
 * something waits at two of them and did not run out between, the client does not read.
 */
export const COMMENT_INTERVAL_MS = 5000;

/** Characters of events that may wait for a client; further ones are left out until it reads. */
const MAX_WAITING = 64 * 1024;

/** True if a request wants events rather than JSON. */
export function prefersEvents(accept: string | null): boolean {
  return prefers(accept, EVENT_STREAM_HEADERS["Content-Type"], "application/json");
}

/**
 * Streams the events of a handler from the first one on, then its result or its error. Events for which a slow
 * client has no room are left out, as the result has all. A client that does not read ends the stream.
 *
 * @param handle returns the JSON of the result; its signal aborts if the client has gone or does not read
 * @returns the body, and the status of the answer when its last event is sent or the client has gone
 * @param explain makes the error that is sent from what the handler threw
 * @throws what the handler throws before its first event
 */
export async function streamEvents(
  context: Context,
  handle: (onEvent: NonNullable<Call["onEvent"]>, signal: AbortSignal) => Promise<string>,
  explain: (error: Error) => ApiError,
) {
  const { promise: begun, resolve: begin, reject: fail } = Promise.withResolvers<void>();
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  const { body } = streamSSE(context, async (stream) => {
    const stall = new AbortController();
    const signal = AbortSignal.any([context.req.raw.signal, stall.signal]);
    // Or what waits for a client who has gone would wait for ever.
    signal.addEventListener("abort", () => stream.abort());
    let isBegun = false;
    let waiting = 0;
    let stuck = 0;
    /** Resolves when the client has room for it, or the stream is aborted. */
    const send = async (event: string, data: string) => {
      isBegun = true;
      begin();
      waiting += data.length;
      await stream.writeSSE({ event, data });
      waiting -= data.length;
      if (waiting === 0) stuck = 0;
    };
    const interval = setInterval(() => {
      if (waiting === 0) void stream.write(":\n\n");
      else if (++stuck === 2) stall.abort();
    }, COMMENT_INTERVAL_MS);
    try {
      const json = await handle((name, data, mayTell = () => true) => {
        if (waiting > MAX_WAITING) return;
        const text = JSON.stringify(data);
        if (mayTell(Buffer.byteLength(text))) void send(name, text);
      }, signal);
      await send("result", json);
      stall.signal.throwIfAborted();
      end(200);
    } catch (error) {
      if (!isBegun) return fail(error);
      // To the operator it is a client that has gone, not a fault of the service.
      if (stall.signal.aborted) return end(CLIENT_GONE);
      const known = explain(error as Error);
      await send("error", JSON.stringify(known.body));
      end(known.status);
    } finally {
      clearInterval(interval);
    }
  });
  await begun;
  return { body, ended };
}
