import type { Call } from "../api/endpoint.ts";
import type { ApiError } from "../api/errors.ts";
import { EVENT_STREAM_HEADERS } from "../api/headers.ts";
import { CLIENT_GONE } from "./access-log.ts";
import { prefers, type RequestInfo } from "./request.ts";
import { respond } from "./respond.ts";

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
 * @returns the response; `info.ended` has its status when its last event is sent or the client has gone
 * @param explain makes the error that is sent from what the handler threw
 * @throws what the handler throws before its first event
 */
export async function streamEvents(
  info: RequestInfo,
  handle: (onEvent: NonNullable<Call["onEvent"]>, signal: AbortSignal) => Promise<string>,
  explain: (error: Error, info: RequestInfo) => ApiError,
): Promise<Response> {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const { promise: read, resolve: finish } = Promise.withResolvers<void>();
  // Not AbortSignal.any, which keeps what it joins for ever.
  const gone = new AbortController();
  const { signal } = gone;
  /** Text that waits for the client, and text that it has begun to read. */
  let [waiting, reading] = ["", ""];
  let [isBegun, isOver, isStalled, stuck] = [false, false, false, 0];
  let wake = () => {};
  const send = (text: string) => {
    waiting += text;
    wake();
  };
  const tell = (event: string, data: string) => {
    isBegun = true;
    begin();
    send(`event: ${event}\ndata: ${data}\n\n`);
  };
  /** All that waits is one chunk, as soon as the client has read the one before. */
  async function* chunks() {
    while (!signal.aborted && (waiting !== "" || !isOver)) {
      [reading, waiting] = [waiting, ""];
      if (reading === "") await new Promise<void>((resolve) => (wake = resolve));
      else yield reading;
      if (reading !== "") stuck = 0;
    }
    finish();
  }
  const interval = setInterval(() => {
    if ((waiting || reading) === "") send(":\n\n");
    else if (++stuck === 2) {
      isStalled = true;
      end();
    }
  }, COMMENT_INTERVAL_MS);
  // Or what waits for a client who has gone would wait for ever.
  const end = () => {
    gone.abort();
    wake();
    finish();
  };
  info.request.signal.addEventListener("abort", end);
  const run = async () => {
    let status: number = 200;
    try {
      const onEvent: Call["onEvent"] = (name, data, mayTell = () => true) => {
        if (waiting.length + reading.length > MAX_WAITING) return;
        const text = JSON.stringify(data);
        if (mayTell(Buffer.byteLength(text))) tell(name, text);
      };
      tell("result", await handle(onEvent, signal));
    } catch (error) {
      if (!isBegun) throw error;
      if (!isStalled) {
        const explained = explain(error as Error, info);
        status = explained.status;
        tell("error", JSON.stringify(explained.body));
      }
    }
    isOver = true;
    wake();
    await read;
    // To the operator it is a client that has gone, not a fault of the service.
    return isStalled ? CLIENT_GONE : status;
  };
  const ended = run().finally(() => {
    clearInterval(interval);
    info.request.signal.removeEventListener("abort", end);
  });
  await Promise.race([begun, ended]);
  info.ended = ended;
  return respond(info, chunks(), 200, EVENT_STREAM_HEADERS);
}
