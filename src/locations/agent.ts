import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { type Call, FROM, type MayTell } from "../api/endpoint.ts";
import { ApiError } from "../api/errors.ts";
import { readTexts } from "../api/parameters.ts";
import { FairSlots } from "../gate/fair-slots.ts";
import type { Endpoint, Services } from "../tools/services.ts";
import { traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { clientOfService } from "../util/shares.ts";
import { VERSION } from "../util/version.ts";
import {
  ALIVE_MS,
  MESSAGE_VERSION,
  onMessage,
  type ReadQuestion,
  type Reply,
  readQuestion,
  SUBJECTS,
  serviceIn,
} from "./protocol.ts";

/** Questions that are worked on at once: far more than the probe slots of most agents. */
const MAX_QUESTIONS = 1000;

/** Answers the questions of instances to this location, as the service answers requests. */
export function createAgent(
  location: string,
  endpoints: readonly Endpoint[],
  services: Omit<Services, "locations">,
  log: Log,
) {
  const askable = endpoints.filter(({ parameters }) => FROM in parameters);
  const byId = new Map(askable.map((endpoint) => [endpoint.operationId, endpoint]));
  /** The services and clients that ask most leave room for others. */
  const places = new FairSlots(MAX_QUESTIONS);
  /** The runs under way, by service and token: each entry ends its run and tells the service why. */
  const runs = new Map<string, (reason: string) => void>();
  let questions: Subscription | undefined;
  let onIdle = () => {};

  const endAll = () => {
    for (const end of runs.values()) end("its agent stopped before the run had ended");
  };

  /** The part of a question that this version does not know, as another version may have it; null if there is none. */
  const unknownIn = (question: ReadQuestion): string | null => {
    const { parameters } = byId.get(question.endpoint) ?? {};
    if (parameters === undefined) return `has no ${question.endpoint}`;
    const names = Object.keys(question.parameters);
    const unknown = names.find((name) => !Object.hasOwn(parameters, name));
    return unknown === undefined ? null : `does not know the parameter ${unknown}`;
  };

  const run = async (question: ReadQuestion, call: Call): Promise<Reply> => {
    const endpoint = byId.get(question.endpoint) as Endpoint;
    // A service cannot do more here than at home, nor more than this place allows.
    const targets = { ...services.config.targets, and: question.targets };
    const bounded = { ...services, config: { ...services.config, targets } };
    try {
      const values = readTexts(endpoint.parameters, question.parameters);
      return { result: (await endpoint.handle(values, call, bounded)) as Record<string, unknown> };
    } catch (error) {
      const requestId = crypto.randomUUID();
      const isExpected = error instanceof ApiError;
      if (!isExpected && !call.signal.aborted) log.error(traceOf(error), { requestId });
      const { body } = isExpected ? error : new ApiError("INTERNAL_ERROR", { requestId });
      return { error: { ...body.error, details: { ...body.error.details } } };
    }
  };

  const answer = async (connection: NatsConnection, message: Msg) => {
    const { subject, reply: inbox, data } = message;
    const service = serviceIn(subject);
    // The agent's permissions must only serve to answer the service that asks.
    if (service === "" || !inbox?.startsWith(SUBJECTS.inbox(service, ""))) return;
    const { signal, send, end } = respondentTo(connection, message);
    const question = readQuestion(data);
    const unknown = question
      ? unknownIn(question)
      : `does not understand the question; it speaks version ${MESSAGE_VERSION} of the messages`;
    if (question === undefined || unknown !== null)
      return send({ refused: `sixscope ${VERSION} at ${location} ${unknown}` });
    // A token ends one run, so a second question with the same one is not answered.
    const key = `${service} ${question.token}`;
    if (runs.has(key)) return;
    const client = clientOfService(`nats ${service}`, question.owner);
    const release = places.tryTake(client);
    if (release === null) return send({ refused: `${location} works on enough of your questions` });
    runs.set(key, end);
    send({ alive: true });
    const beat = setInterval(() => send({ alive: true }), ALIVE_MS);
    const startMs = performance.now();
    let ip: string | undefined;
    const onAddress = (address: string) => {
      ip = address;
    };
    const onEvent: Call["onEvent"] = (event, data, mayTell) =>
      send({ event, data: { ...data } }, mayTell);
    const call = { signal, address: null, client, allowSeconds: () => {}, onAddress };
    const reply = await run(question, question.events ? { ...call, onEvent } : call);
    clearInterval(beat);
    runs.delete(key);
    release();
    if (runs.size === 0) onIdle();
    send(reply);
    log.info("ask", {
      endpoint: question.endpoint,
      outcome: signal.aborted ? "aborted" : "error" in reply ? reply.error.code : "result",
      ms: Math.round(performance.now() - startMs),
      client: question.owner,
      service,
      requestId: question.id,
      ...(services.config.logTargets && { target: question.parameters["target"], ip }),
    });
  };

  return {
    /** Questions that are worked on now. */
    running: () => runs.size,
    /** Answers the questions that come over a connection, until it closes or `stop` is called. */
    serve(connection: NatsConnection): void {
      // Each question reaches one of the agents that share a location.
      questions = connection.subscribe(SUBJECTS.ask(location, "*"), {
        queue: "agents",
        callback: onMessage((message) => void answer(connection, message)),
      });
      connection.subscribe(SUBJECTS.cancel(location, "*"), {
        callback: onMessage((message) => {
          const key = `${serviceIn(message.subject)} ${message.string()}`;
          runs.get(key)?.("it was told to end the run");
        }),
      });
      // The answers cannot be sent any more.
      void connection.closed().then(endAll);
    },
    /** Takes no more questions, and ends the runs that are still under way after `graceMs` milliseconds. */
    async stop(graceMs: number): Promise<void> {
      questions?.unsubscribe();
      if (runs.size === 0) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      onIdle = resolve;
      await Promise.race([promise, Bun.sleep(graceMs)]);
      endAll();
    },
  };
}

/** Sends replies to the service that asked. `end` sends the reason why the run ends; nothing is sent after it. */
function respondentTo(connection: NatsConnection, message: Msg) {
  const controller = new AbortController();
  const { signal } = controller;
  const send = (reply: Reply, mayTell: MayTell = () => true) => {
    if (signal.aborted || connection.isClosed()) return;
    const text = JSON.stringify(reply);
    const bytes = Buffer.byteLength(text);
    if (!mayTell(bytes)) return;
    if (bytes <= (connection.info?.max_payload ?? Infinity)) message.respond(text);
    else end("its answer is larger than the NATS server allows (max_payload)");
  };
  const end = (reason: string) => {
    send({ refused: reason });
    controller.abort();
  };
  return { signal, send, end };
}
