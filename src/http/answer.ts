import type { Context } from "hono";
import type { AppEnv } from "./environment.ts";

type HeaderRecord = Readonly<Record<string, string>>;

const JSON_CONTENT = { "Content-Type": "application/json" };

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
  status = 200,
  extra: HeaderRecord = {},
): Response {
  return answerText(context, JSON.stringify(body), status, extra);
}

/** As `answerJson`, with JSON that is text already; null for no body at all. */
export function answerText(
  context: Context<AppEnv>,
  text: string | null,
  status = 200,
  extra: HeaderRecord = {},
): Response {
  const content = text === null ? {} : JSON_CONTENT;
  return new Response(text, {
    status,
    headers: { ...context.get("facts").headers, ...content, ...extra },
  });
}
