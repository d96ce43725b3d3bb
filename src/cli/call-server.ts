import { InvalidArgumentError } from "commander";
import { BASE_PATH, type Question } from "../api/endpoint.ts";
import { errorCode, reasonOf } from "../util/errors.ts";
import { readEvents } from "../util/event-stream.ts";
import type { ApiAnswer, CallEndpoint } from "./call-here.ts";

/** A service sends at least a comment every 10 s while it works. */
const SILENCE_MS = 30_000;

/**
 * The URL of a service, which an empty text does not name.
 *
 * @throws InvalidArgumentError for another text that is not one
 */
export function parseServer(text: string): URL | undefined {
  if (text === "") return undefined;
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw new InvalidArgumentError("It must be a URL such as https://six.example.com.");
}

/**
 * Calls a service somewhere else, for a stream of events where the endpoint has events.
 *
 * @param key an API key of that service
 */
export function callServer(server: URL, key: string | undefined): CallEndpoint {
  return async (question, signal, onEvent) => {
    const url = urlOf(server, question);
    const { origin } = url;
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(), SILENCE_MS);
    try {
      const response = await fetch(url, {
        headers: {
          Accept: question.endpoint.events ? "text/event-stream" : "application/json",
          ...(key && { "X-API-Key": key }),
        },
        // The key is for this server only.
        redirect: "manual",
        signal: AbortSignal.any([signal, silence.signal]),
      });
      const type = response.headers.get("content-type") ?? "";
      if (!type.startsWith("text/event-stream")) return answerOf(origin, response);
      for await (const { event, data } of readEvents(textsOf(response, () => timer.refresh()))) {
        if (event === "result") return { json: data, error: null };
        if (event === "error") return failure(origin, data);
        onEvent(event, JSON.parse(data));
      }
    } catch (error) {
      if (signal.aborted || error instanceof ServerError) throw error;
      const why = silence.signal.aborted
        ? `it has sent nothing for ${SILENCE_MS / 1000} s`
        : (errorCode(error) ?? reasonOf(error));
      const advice = "check the URL, and whether sixscope runs there";
      throw new ServerError(`cannot get an answer from ${origin}: ${why}; ${advice}`, {
        cause: error,
      });
    } finally {
      clearTimeout(timer);
    }
    throw new ServerError(`${origin} ended the stream before the result; ask again`);
  };
}

/** A service that cannot be asked, or does not answer as one. */
class ServerError extends Error {
  override readonly name = "ServerError";
}

function urlOf(server: URL, { endpoint, parameters }: Question): URL {
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(parameters[name] ?? ""),
  );
  const url = new URL(server);
  url.pathname = `${server.pathname.replace(/\/+$/, "")}${BASE_PATH}${path}`;
  for (const [name, value] of Object.entries(parameters)) {
    if (endpoint.parameters[name]?.in === "query") url.searchParams.set(name, value);
  }
  return url;
}

async function answerOf(origin: string, response: Response): Promise<ApiAnswer> {
  const json = await response.text();
  return response.ok ? { json, error: null } : failure(origin, json, response.status);
}

/** The error in the document that a service sends for one. */
function failure(origin: string, json: string, status?: number): ApiAnswer {
  try {
    const { error } = JSON.parse(json);
    if (typeof error.code === "string" && typeof error.message === "string") return { json, error };
  } catch {
    // Reported below.
  }
  const what = status === undefined ? "an error" : `status ${status}`;
  throw new ServerError(`${origin} answers ${what}, and not as sixscope does; see --server`);
}

/** The texts of a response's body. */
async function* textsOf(response: Response, onBytes: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    onBytes();
    yield decoder.decode(bytes, { stream: true });
  }
}
