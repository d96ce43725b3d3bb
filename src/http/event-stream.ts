import type { Call } from "../api/endpoint.ts";
import type { ApiError } from "../api/errors.ts";
import { EVENT_STREAM_HEADERS } from "../api/headers.ts";
import { abortedBy } from "../util/abort.ts";
import { CLIENT_GONE } from "./access-log.ts";
import type { RequestInfo } from "./request.ts";
import { respond } from "./respond.ts";

/**
 * Milliseconds between two comments, which keep a quiet connection open: those to us and in proxies. If something
 * waits at two of them and nothing was read between, the client does not read.
 */
export const COMMENT_INTERVAL_MS = 5000;

/** Bytes of events that may wait for a client; further ones are left out until it reads. */
const MAX_WAITING = 64 * 1024;

/**
 * Streams the events of a handler from the first one on, then its result or its error. Events for which a slow
 * client has no room are left out, as the result has all. A client that does not read ends the run.
 *
 * @param handle returns the JSON of the result; its signal aborts if the client has gone or does not read
 * @param explain makes the error that is sent from what the handler threw
 * @param isLive true to begin at once, whenever the first event comes
 * @returns the response; `info.ended` has its status when all is said
 * @throws what the handler throws before its first event
 */
export async function streamEvents(
  info: RequestInfo,
  handle: (onEvent: NonNullable<Call["onEvent"]>, signal: AbortSignal) => Promise<string>,
  explain: (error: Error, info: RequestInfo) => ApiError,
  isLive = false,
): Promise<Response> {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  let isBegun = isLive;
  /** True if something waited at the last comment, and nothing was read since. */
  let isStuck = false;
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(
    {
      transform(chunk, controller) {
        isStuck = false;
        controller.enqueue(chunk);
      },
    },
    { highWaterMark: MAX_WAITING, size: (chunk) => chunk?.length ?? 0 },
  );
  const client = writable.getWriter();
  const gone = abortedBy(info.request.signal);
  const send = (text: string) => void client.write(Buffer.from(text)).catch(() => {});
  const tell = (event: string, data: string) => {
    isBegun = true;
    begin();
    send(`event: ${event}\ndata: ${data}\n\n`);
  };
  const onEvent: Call["onEvent"] = (name, data, mayTell = () => true) => {
    const text = JSON.stringify(data);
    // The size is null after the client has gone, and then writing fails, which its signal says too.
    if ((client.desiredSize ?? 0) > 0 && mayTell(Buffer.byteLength(text))) tell(name, text);
  };
  const comments = setInterval(() => {
    if (client.desiredSize === MAX_WAITING) send(":\n\n");
    else if (isStuck) gone.abort();
    isStuck = client.desiredSize !== MAX_WAITING;
  }, COMMENT_INTERVAL_MS);
  if (isLive) {
    send(":\n\n");
    begin();
  }
  const ended = (async () => {
    try {
      tell("result", await handle(onEvent, gone.signal));
      return 200;
    } catch (error) {
      if (!isBegun) throw error;
      if (gone.signal.aborted) return CLIENT_GONE;
      const explained = explain(error as Error, info);
      tell("error", JSON.stringify(explained.body));
      return explained.status;
    } finally {
      clearInterval(comments);
      void client.close().catch(() => {});
    }
  })();
  await Promise.race([begun, ended]);
  info.ended = ended;
  return respond(info, readable, 200, EVENT_STREAM_HEADERS);
}
