import type { NatsConnection } from "@nats-io/transport-node";
import type { z } from "zod";
import { QUERY_TIMEOUT_MS } from "../dns/client.ts";
import type { Call, Question } from "../http/endpoint.ts";
import { ApiError, clientGone, ERRORS, type ErrorCode, type ErrorDetails } from "../http/errors.ts";
import {
  type Ask,
  MESSAGE_VERSION,
  type Reply,
  readMessage,
  replySchema,
  SUBJECTS,
} from "./message.ts";

/** How much later than its longest time the answer of an agent may come. */
const GRACE_SECONDS = 1;

/** The longest time of an agent that has not said another: that of a DNS query. */
const DEFAULT_SECONDS = QUERY_TIMEOUT_MS / 1000;

/** The longest time that an agent may ask for; no run takes longer. */
const MAX_SECONDS = 300;

/** Bytes of all replies to an ask; those of the longest mtr are fewer. */
const MAX_REPLY_BYTES = 8 * 1024 * 1024;

/**
 * Asks the agents of a location, one of which answers, and passes on its events.
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
  const unavailable = (reason: string) =>
    new ApiError("LOCATION_UNAVAILABLE", { location, reason });
  const expire = () => reject(new ApiError("LOCATION_TIMEOUT", { location }));
  let timer: Timer | undefined;
  const wait = (longestSeconds: number) => {
    const seconds = Math.min(longestSeconds, MAX_SECONDS) + GRACE_SECONDS;
    clearTimeout(timer);
    timer = setTimeout(expire, startMs + seconds * 1000 - performance.now());
    allowSeconds(seconds);
  };
  const checked = <T>(schema: z.ZodType<T> | undefined, value: unknown): T => {
    const parsed = schema?.safeParse(value);
    if (parsed?.success) return parsed.data;
    const [issue] = parsed?.error?.issues ?? [];
    const where = issue === undefined ? "" : ` at ${issue.path.join(".") || "its top"}`;
    throw unavailable(`its answer is not as this version describes it${where}`);
  };
  const take = (reply: Reply) => {
    if ("allowSeconds" in reply) return wait(reply.allowSeconds);
    if ("event" in reply) {
      return onEvent?.(
        reply.event,
        checked(endpoint.events?.()[reply.event], reply.data) as object,
      );
    }
    if ("result" in reply) return resolve(checked(endpoint.response(), reply.result) as object);
    if ("refused" in reply) throw unavailable(reply.refused);
    const { code, message, details } = reply.error;
    const known = [...endpoint.errors, "INVALID_PARAMETER", "INTERNAL_ERROR"].find(
      (each) => each === code,
    ) as ErrorCode | undefined;
    if (known === undefined)
      throw unavailable(`it failed with ${code}, which this version does not know`);
    const error = new ApiError(
      known,
      checked(ERRORS[known].details(), details) as ErrorDetails<ErrorCode>,
    );
    error.message = message;
    throw error;
  };

  let bytes = 0;
  const subscription = connection.subscribe(inbox, {
    callback(error, message) {
      try {
        if (error) throw unavailable("NATS does not let this service read answers");
        if (message.headers?.code === 503) throw new ApiError("LOCATION_NOT_FOUND", { location });
        bytes += message.data.length;
        const reply = bytes > MAX_REPLY_BYTES ? null : readMessage(replySchema, message.data);
        if (reply === null) throw unavailable("it sent what is not an answer");
        take(reply);
      } catch (problem) {
        reject(problem);
      }
    },
  });
  void subscription.closed.then(() => reject(unavailable("the connection to NATS was lost")));
  const leave = () => reject(clientGone());
  signal.addEventListener("abort", leave);
  if (signal.aborted) leave();
  const ask: Ask = {
    version: MESSAGE_VERSION,
    endpoint: endpoint.operationId,
    parameters,
    owner,
    events: onEvent !== undefined,
  };
  wait(DEFAULT_SECONDS);
  try {
    connection.publish(SUBJECTS.ask(location), JSON.stringify(ask), { reply: inbox });
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
