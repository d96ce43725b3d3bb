import { InvalidArgumentError } from "commander";
import { z } from "zod";
import { BASE_PATH, FROM, isOfSeveral } from "../api/endpoint.ts";
import { ERRORS, type ErrorCode } from "../api/errors.ts";
import { mismatchOf, parseForeign } from "../api/foreign.ts";
import { once } from "../api/schemas.ts";
import { ALL_LOCATIONS, TOOL_SETTINGS } from "../config/settings.ts";
import { readRegularFile } from "../platform/regular-file.ts";
import type { Question } from "../tools/services.ts";
import { attempt, errorCode, reasonOf } from "../util/errors.ts";
import { readEvents } from "../util/event-stream.ts";
import { printable, quote } from "../util/text.ts";
import type { ApiAnswer, CallEndpoint } from "./call-here.ts";

/** Bounds on an answer of a service. */
const LIMITS = {
  /** A service sends at least a comment every 10 s while it works. */
  silenceMs: 30_000,
  /** From the question to the end of its answer: no run takes longer than 300 s, at another location either. */
  runMs: 310_000,
  /** The bytes of a whole answer; that of the longest mtr has fewer than 8 MB. */
  bytes: 16 * 1024 * 1024,
};

/**
 * The URL of a service; undefined for an empty text.
 *
 * @throws InvalidArgumentError for another text that is not one
 */
export function parseServer(text: string): URL | undefined {
  if (text === "") return undefined;
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url;
  throw new InvalidArgumentError("It must be a URL such as https://six.example.com.");
}

/** The hosts in URLs that mean this machine, to which plain HTTP is private. */
const LOOPBACK_HOST = /^(?:localhost|127(?:\.[0-9]+){3}|\[::1\])$/;

/**
 * The key in an environment variable or in a file.
 *
 * @throws InvalidArgumentError if there is none
 */
export function readKey(source: string, environment: NodeJS.ProcessEnv): string {
  const key = attempt(() => environment[source] ?? readRegularFile(source))?.trim() ?? "";
  if (/^[!-~]+$/.test(key)) return key;
  throw new InvalidArgumentError("It must be an environment variable or a file with an API key.");
}

/** The key in SIXSCOPE_KEY, for the service of SIXSCOPE_SERVER alone; null for another service. */
export function ownKey(server: URL, environment: NodeJS.ProcessEnv): string | null | undefined {
  const own = URL.parse(environment[TOOL_SETTINGS.server] ?? "");
  const key = environment[TOOL_SETTINGS.key];
  return !key || own?.origin === server.origin ? key : null;
}

/** True if a key cannot be read on its way to a service: over HTTPS, or without leaving this machine. */
export function isPrivateWay({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || LOOPBACK_HOST.test(hostname);
}

/**
 * Calls a service, for a stream of events if the endpoint has events. Only data that match the endpoint's schemas and
 * answer the question leave this function.
 *
 * @param key an API key of that service; null if the user has only one of another service
 */
export function callServer(
  server: URL,
  key: string | null | undefined,
  limits: typeof LIMITS = LIMITS,
): CallEndpoint {
  return async (question, gone, onEvent, enough = gone) => {
    const signal = AbortSignal.any([gone, enough]);
    const { response, several = response, events: named } = question.endpoint;
    const url = urlOf(server, question);
    const late = new AbortController();
    const { silenceMs, runMs, bytes } = limits;
    const endAfter = (ms: number, why: string) =>
      setTimeout(() => late.abort(`${why} ${ms / 1000} s`), ms);
    const silence = endAfter(silenceMs, "it has sent nothing for");
    const deadline = endAfter(runMs, "its answer is not complete after");
    const parse = (json: string) => parseForeign(json, bytes);
    const result = (document: unknown) =>
      shaped((isOfSeveral(question.endpoint, document) ? several : response)(), document);
    const inWords = (answer: ApiAnswer) => withoutKey(answer, url.origin, key);
    // A map, because a service may send a name that every object has.
    const events = new Map(Object.entries(named?.() ?? {}));
    try {
      const response = await fetch(url, {
        headers: {
          Accept: named ? "text/event-stream" : "application/json",
          // A few compressed bytes could become many.
          "Accept-Encoding": "identity",
          ...(key && { "X-API-Key": key }),
        },
        decompress: false,
        // The key is for this server only.
        redirect: "manual",
        signal: AbortSignal.any([signal, late.signal]),
      });
      const texts = textsOf(response, bytes, () => silence.refresh());
      const { ok, status, headers } = response;
      if (!ok || !headers.get("content-type")?.startsWith("text/event-stream")) {
        const document = parse((await Array.fromAsync(texts)).join(""));
        if (!ok) return inWords(failure(document, `status ${status}`));
        return answer(question, result(document));
      }
      for await (const { event, data } of readEvents(texts)) {
        if (event === "result") return answer(question, result(parse(data)));
        if (event === "error") return inWords(failure(parse(data), "an error"));
        const schema = events.get(event);
        if (schema) onEvent(event, shaped(schema, parse(data)));
      }
      throw new ServerError("ended the stream before the result; ask again");
    } catch (error) {
      if (signal.aborted) throw error;
      const { origin } = url;
      if (error instanceof ServerError) throw new Error(`${origin} ${error.message}`);
      const why = late.signal.reason ?? errorCode(error) ?? printable(reasonOf(error));
      const advice = "check the URL, and whether sixscope runs there";
      throw new Error(`cannot get an answer from ${origin}: ${why}; ${advice}`, { cause: error });
    } finally {
      clearTimeout(silence);
      clearTimeout(deadline);
      late.abort();
    }
  };
}

/** An answer with the advice for a missing or wrong key: commands have a variable for it, not a header. */
function withoutKey(
  { document, error }: ApiAnswer,
  origin: string,
  key: string | null | undefined,
) {
  if (error?.code !== "UNAUTHORIZED") return { document, error };
  const message = key
    ? `${origin} does not accept the API key: it is unknown, revoked or expired; ask its operator for another one, and set SIXSCOPE_KEY to it`
    : key === null
      ? `${origin} needs an API key for this. SIXSCOPE_KEY is sent to SIXSCOPE_SERVER only. To send a key to ${origin}, use --key-from`
      : `${origin} needs an API key for this; set SIXSCOPE_SERVER=${origin} and SIXSCOPE_KEY to the key, or name with --key-from the variable or file that has it`;
  return { document, error: { ...error, message } };
}

/** A service that does not answer as one; its name goes before the message. */
class ServerError extends Error {
  override readonly name = "ServerError";
}

/** The URL of a question at a service, whose own URL may have a path. */
export function urlOf(server: URL, { endpoint, parameters }: Question): URL {
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(parameters[name] ?? ""),
  );
  const url = new URL(server);
  // Documents show the URL of the API too.
  const segments = server.pathname.split("/");
  const whole = segments.slice(0, segments.findLastIndex(Boolean) + 1).join("/");
  const before = whole.endsWith(BASE_PATH) ? whole.slice(0, -BASE_PATH.length) : whole;
  url.pathname = `${before}${BASE_PATH}${path}`;
  for (const [name, value] of Object.entries(parameters)) {
    if (endpoint.parameters[name]?.in === "query") url.searchParams.set(name, value);
  }
  return url;
}

/** The texts of a response's body. */
async function* textsOf(response: Response, maxBytes: number, onBytes: () => void) {
  const decoder = new TextDecoder();
  let left = maxBytes;
  for await (const bytes of response.body ?? []) {
    left -= bytes.length;
    if (left < 0) throw new ServerError(`sent more than ${maxBytes} bytes; see --server`);
    onBytes();
    yield decoder.decode(bytes, { stream: true });
  }
}

/** A value as a schema describes it, without the fields that only a newer version has. */
function shaped(schema: z.ZodType, value: unknown): About {
  const where = mismatchOf(schema, value);
  if (where === undefined) return value as About;
  const advice = "use the same version here and there";
  throw new ServerError(
    `sent what this version does not understand, at ${quote(where)}; ${advice}`,
  );
}

/** The parts of results that identify their question. */
interface About extends Record<string, unknown> {
  readonly details?: { readonly location?: string };
  readonly locations?: readonly Located[];
}

interface Located {
  readonly location?: string | undefined;
  readonly result?: About;
  error?: SentError;
}

/**
 * A result, if it is about the requested target or name, and about one location or several, as `from` can mean. The
 * locations behind a tag are not known here.
 */
function answer({ endpoint, parameters }: Question, document: About): ApiAnswer {
  const [subject = ""] = Object.keys(endpoint.parameters);
  const { [subject]: asked, [FROM]: from } = parameters;
  const { locations } = document;
  const words = from?.split(",") ?? [];
  const parts = locations ?? [{ location: from, result: document }];
  const isRight = parts.every(
    ({ location, result }) =>
      (result?.[subject] ?? asked) === asked &&
      (result === undefined || result.details?.location === location),
  );
  const isPossible = locations ? from !== undefined : words.length < 2 && from !== ALL_LOCATIONS;
  if (!isRight || !isPossible) {
    throw new ServerError("answered another question than was asked; see --server");
  }
  for (const part of locations ?? []) if (part.error) part.error = knownError(part.error);
  return { document, error: null };
}

const sentError = once(() => {
  const [code, message] = [z.string().regex(/^[A-Z_]{1,64}$/), z.string().max(4_000)];
  return z.object({ code, message, details: z.looseObject({}) });
});

type SentError = z.output<ReturnType<typeof sentError>>;

/** The error in a document of a service. */
function failure(document: unknown, answer: string): ApiAnswer {
  const { data } = z.object({ error: sentError() }).safeParse(document);
  if (!data) throw new ServerError(`answers ${answer}, and not as sixscope does; see --server`);
  const error = knownError(data.error);
  return { document: { error }, error };
}

/** An error without the details that this version does not know; its message says the same. */
function knownError(error: SentError): SentError {
  const { [error.code as ErrorCode]: kind } = Object.hasOwn(ERRORS, error.code) ? ERRORS : {};
  const details = kind && z.object(kind.details()).safeParse(error.details).data;
  return { ...error, details: details ?? {} };
}
