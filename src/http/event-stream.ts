import type { Call } from "../api/endpoint.ts";
import type { ApiError } from "../api/errors.ts";
import { EVENT_STREAM_HEADERS } from "../api/headers.ts";
import { abortedBy } from "../util/abort.ts";
import { CLIENT_GONE } from "./access-log.ts";
import type { RequestInfo } from "./request.ts";
import { respond } from "./respond.ts";

/**
 * Milliseconds between two comments, which keep a quiet connection open, here and in proxies. If events wait at two
 * comments and nothing was read between them, the client does not read.
 */
export const COMMENT_INTERVAL_MS = 5000;

/** Bytes of events that may wait for a client; further events are left out until it reads. */
const MAX_WAITING = 64 * 1024;

/**
 * Streams the events of a handler from the first one on, then its result or its error. Events are left out while a slow
 * client has no room for them, because the result has everything. A client that does not read ends the run.
 *
 * @param handle returns the JSON of the result; its signal aborts if the client has gone or does not read
 * @param explain turns a thrown error into the error that is sent
 * @param isLive true to begin at once, before the first event
 * @returns the response; `info.ended` resolves with its status at the end of the stream
 * @throws the error of the handler if it throws before its first event
 */
export async function streamEvents(
  info: RequestInfo,
  handle: (onEvent: NonNullable<Call["onEvent"]>, signal: AbortSignal) => Promise<string>,
  explain: (error: Error, info: RequestInfo) => ApiError,
  isLive = false,
): Promise<Response> {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  let isBegun = isLive;
  /** True if events waited at the last comment, and nothing was read since. */
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
    // The size is null after the client has gone.
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
