import type { Context } from "hono";
import type { AppEnv } from "./context.ts";

/**
 * Answers with JSON, and with the headers that the edge has decided on.
 *
 * All headers go into the Response at once: setting them one by one costs more than the rest of a
 * small answer.
 *
 * @param extra headers of this answer alone
 */
export function answerJson(
  context: Context<AppEnv>,
  body: unknown,
  status?: number,
  extra?: Readonly<Record<string, string>>,
): Response {
  return answerText(context, JSON.stringify(body), status, extra);
}

/** As `answerJson`, with JSON that is text already; null for no body at all. */
export function answerText(
  context: Context<AppEnv>,
  text: string | null,
  status = 200,
  extra?: Readonly<Record<string, string>>,
): Response {
  const { headers } = context.get("facts");
  const { method } = context.req;
  // The body of an answer to HEAD is cut off, and its length would be said to be 0.
  const length =
    method === "HEAD" && text !== null
      ? { "Content-Length": String(Buffer.byteLength(text)) }
      : null;
  return new Response(text, {
    status,
    headers: extra || length ? { ...headers, ...extra, ...length } : headers,
  });
}
