import { storedKey } from "./key.ts";
import { TEXTS } from "./texts.ts";
import type { Problem } from "./types.ts";

/** What the service said last about the caller's limit. */
export interface Limit {
  readonly limit: number;
  readonly remaining: number;
  /** The Unix second in which the window ends. */
  readonly resetSeconds: number;
}

/** A call that has no result: what the API said, or why it said nothing. */
export class CallError extends Error {
  override readonly name = "CallError";

  readonly problem: Problem | { readonly code: null; readonly message: string };

  constructor(problem: CallError["problem"]) {
    super(problem.message);
    this.problem = problem;
  }
}

/** The URL of a path of the API, wherever a proxy has put the page. */
export function urlOf(path: string): string {
  // In the line for a shell it is between apostrophes.
  return new URL(`./api/v1/${path}`, document.baseURI).href.replaceAll("'", "%27");
}

/**
 * Calls the API, with the key if there is one.
 *
 * @param onPart gets each event, if the endpoint has some, before the result
 * @throws CallError for an error of the API; AbortError if the signal aborts
 */
export async function call(
  path: string,
  signal: AbortSignal,
  onLimit: (limit: Limit) => void,
  onPart?: (data: object) => void,
): Promise<object> {
  const key = storedKey()?.key;
  const accept = onPart ? "text/event-stream" : "application/json";
  const headers = { Accept: accept, ...(key && { "X-API-Key": key }) };
  let response: Response;
  try {
    response = await fetch(urlOf(path), { headers, signal, cache: "no-store" });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new CallError({ code: null, message: TEXTS.offline });
  }
  onLimit(limitOf(response.headers));
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (!isStream) return resultOf(response.ok ? "result" : "error", await response.json());
  for await (const { event, data } of eventsOf(response, signal)) {
    if (event === "result" || event === "error") return resultOf(event, data);
    onPart?.(data);
  }
  throw new CallError({ code: null, message: TEXTS.broken });
}

function resultOf(event: "result" | "error", data: object): object {
  if (event === "result") return data;
  throw new CallError((data as { readonly error: Problem }).error);
}

/** The events of a stream as they come. */
async function* eventsOf({ body }: Response, signal: AbortSignal) {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const chunk = await reader?.read().catch((error) => {
      if (signal.aborted) throw error;
      return undefined;
    });
    if (chunk === undefined || chunk.done) return;
    text += chunk.value;
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
      const event = field("event");
      // Others are comments, which keep the connection open.
      if (event !== undefined) yield { event, data: JSON.parse(field("data") ?? "{}") as object };
    }
  }
}

function limitOf(headers: Headers): Limit {
  const number = (name: string) => Number(headers.get(`x-ratelimit-${name}`));
  return {
    limit: number("limit"),
    remaining: number("remaining"),
    resetSeconds: number("reset"),
  };
}
