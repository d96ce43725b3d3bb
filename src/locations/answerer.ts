import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { type Call, type Endpoint, FROM, type Tools } from "../http/endpoint.ts";
import { ApiError } from "../http/errors.ts";
import { readParameters, sentTexts } from "../http/parameters.ts";
import { traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import {
  type Ask,
  askSchema,
  MAX_ASK_BYTES,
  MESSAGE_VERSION,
  type Reply,
  readMessage,
  SUBJECTS,
} from "./message.ts";

/** Asks that run at once: far more than the probe slots of most agents. */
const MAX_ASKS = 1000;

/** The JSON document of a result. */
type Document = Record<string, unknown>;

/** Does the work that instances ask this location for, as the service does for a request. */
export class Answerer {
  readonly #location: string;
  readonly #endpoints: ReadonlyMap<string, Endpoint>;
  readonly #tools: Tools;
  readonly #log: Log;
  /** What runs, by the inbox that waits for it. */
  readonly #running = new Map<string, AbortController>();
  #asks: Subscription | undefined;
  #onIdle = () => {};

  constructor(location: string, endpoints: readonly Endpoint[], tools: Tools, log: Log) {
    this.#location = location;
    const askable = endpoints.filter(({ parameters }) => FROM in parameters);
    this.#endpoints = new Map(askable.map((endpoint) => [endpoint.operationId, endpoint]));
    // Without other locations, an agent cannot be made to ask others.
    this.#tools = { ...tools, locations: null };
    this.#log = log;
  }

  /** Asks that run now. */
  get running(): number {
    return this.#running.size;
  }

  /** Answers asks that come over a connection, until it closes or `stop` is called. */
  serve(connection: NatsConnection): void {
    // Each ask reaches one of the agents that share a location.
    this.#asks = connection.subscribe(SUBJECTS.ask(this.#location), {
      queue: "agents",
      callback: (error, message) => {
        if (error === null) void this.#answer(connection, message);
      },
    });
    connection.subscribe(SUBJECTS.cancel(this.#location), {
      callback: (error, message) => {
        if (error === null) this.#running.get(message.string())?.abort();
      },
    });
    // The answers cannot be sent any more.
    void connection.closed().then(() => this.#abort());
  }

  /** Takes no more asks, and ends those that still run after `graceMs` milliseconds. */
  async stop(graceMs: number): Promise<void> {
    this.#asks?.unsubscribe();
    if (this.#running.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    await Promise.race([promise, Bun.sleep(graceMs)]);
    this.#abort();
  }

  #abort(): void {
    for (const run of this.#running.values()) run.abort();
  }

  async #answer(connection: NatsConnection, message: Msg): Promise<void> {
    const { reply: inbox, data } = message;
    // Its asker could neither tell two runs apart nor end both.
    if (inbox === undefined || this.#running.has(inbox)) return;
    const run = new AbortController();
    const send = (reply: Reply) => {
      const text = JSON.stringify(reply);
      if (connection.isClosed()) return;
      if (Buffer.byteLength(text) <= (connection.info?.max_payload ?? Number.POSITIVE_INFINITY))
        message.respond(text);
      else {
        run.abort();
        send({ refused: "its answer is larger than the NATS server allows (max_payload)" });
      }
    };
    const ask = data.length > MAX_ASK_BYTES ? null : readMessage(askSchema, data);
    const refusal = this.#refusalOf(ask);
    if (ask === null || refusal !== null) return send({ refused: refusal ?? "" });
    this.#running.set(inbox, run);
    const startMs = performance.now();
    const reply = await this.#run(ask, run.signal, send);
    this.#running.delete(inbox);
    if (this.#running.size === 0) this.#onIdle();
    if (!run.signal.aborted) send(reply);
    this.#log.info("ask", {
      endpoint: ask.endpoint,
      outcome: run.signal.aborted ? "aborted" : "error" in reply ? reply.error.code : "result",
      ms: Math.round(performance.now() - startMs),
      owner: ask.owner,
    });
  }

  /** Why an ask is not done; an instance of another version may ask for what this one does not know. */
  #refusalOf(ask: Ask | null): string | null {
    const here = `sixscope ${VERSION} at ${this.#location}`;
    if (ask === null) {
      return `${here} does not understand the ask; it speaks version ${MESSAGE_VERSION} of the messages`;
    }
    const known = this.#endpoints.get(ask.endpoint)?.parameters;
    if (known === undefined) return `${here} has no ${ask.endpoint}`;
    const strange = Object.keys(ask.parameters).find((name) => !Object.hasOwn(known, name));
    if (strange !== undefined) return `${here} does not know the parameter ${strange}`;
    return this.#running.size < MAX_ASKS ? null : `${here} has ${MAX_ASKS} asks to do already`;
  }

  async #run(ask: Ask, signal: AbortSignal, send: (reply: Reply) => void): Promise<Reply> {
    const endpoint = this.#endpoints.get(ask.endpoint) as Endpoint;
    const call: Call = {
      signal,
      address: null,
      owner: `nats ${ask.owner}`,
      allowSeconds: (seconds) => send({ allowSeconds: seconds }),
      onEvent: ask.events ? (event, data) => send({ event, data: { ...data } }) : undefined,
    };
    try {
      const values = readParameters(endpoint.parameters, sentTexts(ask.parameters));
      return { result: (await endpoint.handle(values, call, this.#tools)) as Document };
    } catch (error) {
      const requestId = crypto.randomUUID();
      const isKnown = error instanceof ApiError;
      if (!isKnown && !signal.aborted) this.#log.error(traceOf(error), { requestId });
      const known = isKnown ? error : new ApiError("INTERNAL_ERROR", { requestId });
      return { error: { ...known.body.error, details: { ...known.details } } };
    }
  }
}
