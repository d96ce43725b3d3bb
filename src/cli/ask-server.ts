import { InvalidArgumentError } from "commander";
import { BASE_PATH, type Question } from "../http/endpoint.ts";
import { errorCode, reasonOf } from "../util/errors.ts";
import type { Answer, Ask } from "./ask.ts";

/** A service sends at least a comment every 10 s while it works. */
const SILENCE_MS = 30_000;

/** An event of a stream: its name and its data as JSON. */
interface StreamEvent {
  readonly name: string;
  readonly data: string;
}

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
 * Asks a service somewhere else, as a stream of events where the endpoint has events.
 *
 * @param key an API key of that service
 */
export function askServer(server: URL, key: string | undefined): Ask {
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
      for await (const event of eventsOf(response, () => timer.refresh())) {
        if (event.name === "result") return { json: event.data, error: null };
        if (event.name === "error") return failure(origin, event.data);
        onEvent(event.name, JSON.parse(event.data));
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

async function answerOf(origin: string, response: Response): Promise<Answer> {
  const json = await response.text();
  return response.ok ? { json, error: null } : failure(origin, json, response.status);
}

/** The error in the document that a service sends for one. */
function failure(origin: string, json: string, status?: number): Answer {
  try {
    const { error } = JSON.parse(json);
    if (typeof error.code === "string" && typeof error.message === "string") return { json, error };
  } catch {
    // Reported below.
  }
  const what = status === undefined ? "an error" : `status ${status}`;
  throw new ServerError(`${origin} answers ${what}, and not as sixscope does; see --server`);
}

/** The events of a stream; server-sent events in the HTML standard. */
async function* eventsOf(response: Response, onBytes: () => void): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of response.body ?? []) {
    onBytes();
    rest += decoder.decode(bytes, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const field = (name: string) =>
        block
          .split("\n")
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).replace(/^ /, ""))
          .join("\n");
      // Comments keep the connection open and have neither.
      if (field("data") !== "") yield { name: field("event"), data: field("data") };
    }
  }
}
