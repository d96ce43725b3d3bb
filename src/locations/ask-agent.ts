import { addAbortListener } from "node:events";
import type { Call } from "../api/endpoint.ts";
import { ApiError, clientGone } from "../api/errors.ts";
import type { Question } from "../tools/services.ts";
import type { Connected } from "./link.ts";
import {
  ALIVE_MS,
  MAX_QUESTION_BYTES,
  MESSAGE_VERSION,
  type SentQuestion,
  SUBJECTS,
} from "./protocol.ts";
import { replyReader, unavailable } from "./replies.ts";

/** The longest time of a run, in seconds; until then the agent says that it is alive. */
export const MAX_SECONDS = 300;

/** The beats of `ALIVE_MS` after which a silent agent is lost: the caller knows in less than 3 s. */
const SILENT_BEATS = 5;

/** The service that asks, its target policy, and the client that it asks for. */
type Asker = Connected & Pick<SentQuestion, "owner" | "targets">;

/**
 * Asks a location, where one of its agents answers, and passes on the events.
 *
 * @returns the document as the endpoint describes it
 * @throws ApiError LOCATION_NOT_FOUND, LOCATION_TIMEOUT, LOCATION_UNAVAILABLE, or the agent's error
 * @throws AbortError if the caller leaves, which ends the work of the agent too
 */
export async function askAgent(
  { connection, service, ...asker }: Asker,
  location: string,
  question: Question,
  { id, signal, allowSeconds, onEvent }: Call,
): Promise<object> {
  const { parameters } = question;
  const { operationId: endpoint } = question.endpoint;
  const [token, events] = [crypto.randomUUID(), onEvent !== undefined];
  const version = MESSAGE_VERSION;
  const payload: SentQuestion = { ...asker, version, endpoint, parameters, id, token, events };
  const text = JSON.stringify(payload);
  if (Buffer.byteLength(text) > MAX_QUESTION_BYTES) {
    throw unavailable(location, "the question and the target policy here are too long");
  }
  const inbox = SUBJECTS.inbox(service);
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  allowSeconds(MAX_SECONDS);
  let [beats, silentBeats, readBytes] = [0, 0, 0];
  const lose = () => reject(new ApiError("LOCATION_TIMEOUT", { location }));
  const onSilence = () => {
    if (++silentBeats >= SILENT_BEATS) lose();
  };
  // Beats are counted, because a process that is held up itself must not take that for silence. If other bytes came, a
  // ping decides: the server answers it after all earlier messages of the agent.
  const watch = setInterval(() => {
    if (++beats >= (MAX_SECONDS * 1000) / ALIVE_MS) lose();
    const { inBytes } = connection.stats();
    if (inBytes === readBytes) onSilence();
    else connection.flush().then(onSilence, () => {});
    readBytes = inBytes;
  }, ALIVE_MS);
  const read = replyReader(location, question);
  const subscription = connection.subscribe(inbox, {
    callback(error, message) {
      try {
        silentBeats = 0;
        const reply = read(error, message);
        if ("event" in reply) onEvent?.(reply.event, reply.data);
        if ("result" in reply) resolve(reply.result);
      } catch (problem) {
        reject(problem);
      }
    },
  });
  void subscription.closed.then(() =>
    reject(unavailable(location, "the connection to NATS was lost")),
  );
  using _ = addAbortListener(signal, () => reject(clientGone()));
  try {
    connection.publish(SUBJECTS.ask(location, service), text, { reply: inbox });
    return await promise;
  } catch (error) {
    // The agent may still be at work.
    if (!connection.isClosed()) connection.publish(SUBJECTS.cancel(location, service), token);
    throw error;
  } finally {
    clearInterval(watch);
    subscription.unsubscribe();
  }
}
