import type { Context } from "hono";
import { streamSSE } from "hono/streaming";
import type { ApiError } from "../api/errors.ts";
import { EVENT_STREAM_HEADERS } from "../api/headers.ts";
import { prefers } from "./request.ts";

/** Milliseconds between two comments, which keep a quiet connection open: those to us and in proxies. */
const COMMENT_INTERVAL_MS = 8000;

/** True if a request wants events rather than JSON. */
export function prefersEvents(accept: string | null): boolean {
  return prefers(accept, EVENT_STREAM_HEADERS["Content-Type"], "application/json");
}

/**
 * Streams the events of a handler from the first one on, then its result or its error.
 *
 * @param handle returns the JSON of the result
 * @returns the body, and the status of the answer when its last event is sent or the client has gone
 * @param explain makes the error that is sent from what the handler threw
 * @throws what the handler throws before its first event
 */
export async function streamEvents(
  context: Context,
  handle: (onEvent: (name: string, data: object) => void) => Promise<string>,
  explain: (error: Error) => ApiError,
) {
  const { promise: begun, resolve: begin, reject: fail } = Promise.withResolvers<void>();
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  const { body } = streamSSE(context, async (stream) => {
    let isBegun = false;
    const send = (event: string, data: string) => {
      isBegun = true;
      begin();
      return stream.writeSSE({ event, data });
    };
    const comments = setInterval(() => void stream.write(":\n\n"), COMMENT_INTERVAL_MS);
    try {
      const json = await handle((name, data) => void send(name, JSON.stringify(data)));
      await send("result", json);
      end(200);
    } catch (error) {
      if (!isBegun) return fail(error);
      const known = explain(error as Error);
      await send("error", JSON.stringify(known.body));
      end(known.status);
    } finally {
      clearInterval(comments);
    }
  });
  await begun;
  return { body, ended };
}
