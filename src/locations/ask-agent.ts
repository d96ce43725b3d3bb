import type { NatsConnection } from "@nats-io/transport-node";
import type { Call, Question } from "../api/endpoint.ts";
import { ApiError, clientGone } from "../api/errors.ts";
import { QUERY_TIMEOUT_MS } from "../dns/client.ts";
import { MAX_QUESTION_BYTES, MESSAGE_VERSION, type SentQuestion, SUBJECTS } from "./protocol.ts";
import { replyReader, unavailable } from "./replies.ts";

/** How much later than its longest time the answer of an agent may come. */
const GRACE_SECONDS = 1;

/** The longest time of an agent that has not said another: that of a DNS query. */
const DEFAULT_SECONDS = QUERY_TIMEOUT_MS / 1000;

/** The longest time that an agent may ask for; no run takes longer. */
const MAX_SECONDS = 300;

/** The service that asks, its target policy, and the owner whose share of the agent's probe slots it uses. */
interface Asker extends Pick<SentQuestion, "owner" | "targets"> {
  readonly connection: NatsConnection;
  /** The name below which its answers come. */
  readonly service: string;
}

/**
 * Asks a location, where one of the agents answers, and passes on the events.
 *
 * @returns the document as the endpoint describes it
 * @throws ApiError LOCATION_NOT_FOUND, LOCATION_TIMEOUT, LOCATION_UNAVAILABLE, or the agent's error
 * @throws AbortError if the caller leaves, which ends the work of the agent too
 */
export async function askAgent(
  { connection, service, ...whose }: Asker,
  location: string,
  question: Question,
  { id, signal, allowSeconds, onEvent }: Call,
): Promise<object> {
  const { parameters } = question;
  const { operationId: endpoint } = question.endpoint;
  const [token, events] = [crypto.randomUUID(), onEvent !== undefined];
  const version = MESSAGE_VERSION;
  const sent: SentQuestion = { ...whose, version, endpoint, parameters, id, token, events };
  const text = JSON.stringify(sent);
  if (Buffer.byteLength(text) > MAX_QUESTION_BYTES) {
    throw unavailable(location, "the question and the target policy here are too long");
  }
  const inbox = SUBJECTS.inbox(service);
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  const startMs = performance.now();
  let timer: Timer | undefined;
  const wait = (longestSeconds: number) => {
    const seconds = Math.min(longestSeconds, MAX_SECONDS) + GRACE_SECONDS;
    const expire = () => reject(new ApiError("LOCATION_TIMEOUT", { location }));
    clearTimeout(timer);
    timer = setTimeout(expire, Math.max(0, startMs + seconds * 1000 - performance.now()));
    allowSeconds(seconds);
  };
  const read = replyReader(location, question);
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
  wait(DEFAULT_SECONDS);
  try {
    connection.publish(SUBJECTS.ask(location), text, { reply: inbox });
    return await promise;
  } catch (error) {
    // The agent may still be at work.
    if (!connection.isClosed()) connection.publish(SUBJECTS.cancel(location), token);
    throw error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", leave);
    subscription.unsubscribe();
  }
}
