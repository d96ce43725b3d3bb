import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { z } from "zod";
import type { Call, Endpoint, Question } from "../api/endpoint.ts";
import { ApiError, clientGone, ERRORS, type ErrorCode, type ErrorDetails } from "../api/errors.ts";
import { QUERY_TIMEOUT_MS } from "../dns/client.ts";
import {
  MESSAGE_VERSION,
  type Reply,
  readMessage,
  replySchema,
  type SentQuestion,
  SUBJECTS,
} from "./protocol.ts";

/** How much later than its longest time the answer of an agent may come. */
const GRACE_SECONDS = 1;

/** The longest time of an agent that has not said another: that of a DNS query. */
const DEFAULT_SECONDS = QUERY_TIMEOUT_MS / 1000;

/** The longest time that an agent may ask for; no run takes longer. */
const MAX_SECONDS = 300;

/** Bytes of all replies to a question; those of the longest mtr are fewer. */
const MAX_REPLY_BYTES = 8 * 1024 * 1024;

/** The status of a message from the server itself: there is no subscriber. */
const NO_RESPONDERS = 503;

/**
 * Asks a location, where one of the agents answers, and passes on the events.
 *
 * @param owner whose share of the agent's probe slots it uses
 * @returns the document as the endpoint describes it
 * @throws ApiError LOCATION_NOT_FOUND, LOCATION_TIMEOUT, LOCATION_UNAVAILABLE, or the agent's error
 * @throws AbortError if the caller leaves, which ends the work of the agent too
 */
export async function askAgent(
  connection: NatsConnection,
  location: string,
  { endpoint, parameters }: Question,
  { signal, allowSeconds, onEvent }: Call,
  owner: string,
): Promise<object> {
  const inbox = SUBJECTS.inbox();
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  const startMs = performance.now();
  let timer: Timer | undefined;
  const wait = (longestSeconds: number) => {
    const seconds = Math.min(longestSeconds, MAX_SECONDS) + GRACE_SECONDS;
    const expire = () => reject(new ApiError("LOCATION_TIMEOUT", { location }));
    clearTimeout(timer);
    timer = setTimeout(expire, startMs + seconds * 1000 - performance.now());
    allowSeconds(seconds);
  };
  const read = replyReader(location, endpoint);
  const subscription = connection.subscribe(inbox, {
    callback(error, message) {
      try {
        const reply = read(error, message);
        if ("allowSeconds" in reply) wait(reply.allowSeconds);
        else if ("event" in reply) onEvent?.(reply.event, reply.data);
        else resolve(reply.result);
      } catch (problem) {
        reject(problem);
      }
    },
  });
  const lost = () => reject(unavailable(location, "the connection to NATS was lost"));
  void subscription.closed.then(lost);
  const leave = () => reject(clientGone());
  signal.addEventListener("abort", leave);
  if (signal.aborted) leave();
  const { operationId: id } = endpoint;
  const events = onEvent !== undefined;
  const sent: SentQuestion = { version: MESSAGE_VERSION, endpoint: id, parameters, owner, events };
  wait(DEFAULT_SECONDS);
  try {
    connection.publish(SUBJECTS.ask(location), JSON.stringify(sent), { reply: inbox });
    return await promise;
  } catch (error) {
    // The agent may still be at work.
    if (!connection.isClosed()) connection.publish(SUBJECTS.cancel(location), inbox);
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
    subscription.unsubscribe();
  }
}

/** The replies that do not refuse or fail. */
type Progress = Exclude<Reply, { readonly error: object } | { readonly refused: string }>;

/** Reads the replies to one question, and throws an ApiError for one that ends it without a result. */
function replyReader(location: string, endpoint: Endpoint) {
  // A map, because an agent may send the name of what every object has.
  const events = new Map(Object.entries(endpoint.events?.() ?? {}));
  let bytes = 0;
  return (error: Error | null, { headers, data }: Msg): Progress => {
    if (error) throw unavailable(location, "NATS does not let this service read answers");
    if (headers?.code === NO_RESPONDERS) throw new ApiError("LOCATION_NOT_FOUND", { location });
    bytes += data.length;
    const reply = bytes > MAX_REPLY_BYTES ? null : readMessage(replySchema, data);
    if (reply === null) throw unavailable(location, "its reply is not valid");
    if ("refused" in reply) throw unavailable(location, reply.refused);
    if ("error" in reply) throw errorOf(location, endpoint, reply.error);
    if ("event" in reply) requireShape(location, events.get(reply.event), reply.data);
    if ("result" in reply) requireShape(location, endpoint.response(), reply.result);
    return reply;
  };
}

/** The agent's error as if it were ours, if the endpoint has it. */
function errorOf(
  location: string,
  { errors }: Endpoint,
  { code, message, details }: Extract<Reply, { readonly error: object }>["error"],
): ApiError {
  const possible: readonly ErrorCode[] = [...errors, "INVALID_PARAMETER", "INTERNAL_ERROR"];
  const known = possible.find((each) => each === code);
  if (known === undefined) {
    return unavailable(location, `it failed with ${code}, which this version does not know`);
  }
  requireShape(location, z.strictObject(ERRORS[known].details()), details);
  const error = new ApiError(known, details as ErrorDetails<ErrorCode>);
  // "This service" or "this machine" in the message means the one there.
  error.message = error.status === 500 ? `At the location ${location}: ${message}` : message;
  return error;
}

/** Throws an ApiError for a value that an interface of this version does not have. */
function requireShape(location: string, schema: z.ZodType | undefined, value: unknown): void {
  const parsed = schema?.safeParse(value);
  if (parsed?.success) return;
  const [issue] = parsed?.error.issues ?? [];
  const where = issue === undefined ? "" : ` at ${issue.path.join(".") || "its top"}`;
  throw unavailable(location, `its answer is not as this version describes it${where}`);
}

function unavailable(location: string, reason: string): ApiError {
  return new ApiError("LOCATION_UNAVAILABLE", { location, reason });
}
