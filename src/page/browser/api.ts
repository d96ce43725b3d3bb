import type { describeInterface } from "../../api/openapi.ts";
import { readEvents } from "../../util/event-stream.ts";
import { forgetKey, storedKey } from "./key.ts";
import type { Problem } from "./run.ts";

/** The caller's rate limit, as of the last response. */
export interface Limit {
  readonly limit: number;
  readonly remaining: number;
}

/** The outcome of a call. */
export type Called = { readonly result: object } | { readonly problem: Problem };

/** The URL of a path of the API, below the page, which a proxy may have moved. */
export function urlOf(path: string, base = document.baseURI): string {
  // The line for a shell has it between apostrophes.
  return new URL(`./api/v1/${path}`, base).href.replaceAll("'", "%27");
}

/**
 * Calls the API, with the key if there is one.
 *
 * @param onPart gets the data and the name of each event before the result, if the endpoint has events
 * @throws AbortError if the signal aborts
 */
export async function call(
  path: string,
  signal: AbortSignal,
  onLimit: (limit: Limit) => void,
  onPart?: (data: object, event: string) => void,
): Promise<Called> {
  const key = storedKey()?.key;
  const failed = (problem: Problem): Called => {
    if (problem.code !== "UNAUTHORIZED") return { problem };
    if (key !== undefined) forgetKey(key);
    const message =
      key === undefined
        ? "Enter an API key; the operator of this service has them."
        : "The service does not accept this key: it is mistyped, revoked or expired. Enter another.";
    return { problem: { ...problem, message } };
  };
  const accept = onPart ? "text/event-stream" : "application/json";
  // With other characters than a key has, browsers would send nothing at all.
  const headers = { Accept: accept, ...(key && { "X-API-Key": encodeURIComponent(key) }) };
  const asked = fetch(urlOf(path), { headers, signal, cache: "no-store" });
  const response = await asked.catch(() => null);
  signal.throwIfAborted();
  if (response === null) {
    const message = "The service cannot be reached; check your connection and try again.";
    return { problem: { code: null, message } };
  }
  const count = (name: string) => Number(response.headers.get(`x-ratelimit-${name}`));
  onLimit({ limit: count("limit"), remaining: count("remaining") });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    const body = await response.json().catch(() => null);
    signal.throwIfAborted();
    if (response.ok && body) return { result: body };
    if (body?.error) return failed(body.error);
    const message = `The answer (status ${response.status}) is not one of this service, or not whole; try again later.`;
    return { problem: { code: null, message } };
  }
  for await (const { event, data } of readEvents(chunksOf(response))) {
    const value = JSON.parse(data);
    if (event === "result") return { result: value };
    if (event === "error") return failed(value.error);
    onPart?.(value, event);
  }
  signal.throwIfAborted();
  const message = "The connection to the service ended before the result came; try again.";
  return { problem: { code: null, message } };
}

/** The interface document of this service. */
export type Interface = ReturnType<typeof describeInterface>;

/**
 * Asks for the interface document.
 *
 * @throws Error for people if the service does not answer
 */
export async function askInterface(): Promise<Interface> {
  const called = await call("openapi.json", new AbortController().signal, () => {});
  if ("problem" in called) throw new Error(called.problem.message);
  return called.result as Interface;
}

/** The text of a response as it comes, until its end or an error; not every browser can iterate over it. */
async function* chunksOf({ body }: Response): AsyncGenerator<string> {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const chunk = await reader?.read().catch(() => undefined);
    if (chunk?.value === undefined) return;
    yield chunk.value;
  }
}
