/** The messages of instances and agents over NATS. */
import type { Msg } from "@nats-io/transport-node";
import { z } from "zod";
import { once } from "../api/schemas.ts";

/** The version of questions; an agent refuses a question of another version by name. */
export const MESSAGE_VERSION = 1;

/** Bytes of a question; names and addresses are shorter. */
export const MAX_QUESTION_BYTES = 16_384;

/** The subjects; docs/operations.md shows who may use which. */
export const SUBJECTS = {
  ask: (location: string) => `sixscope.ask.${location}`,
  /** Its data are the inbox of the question that ends. */
  cancel: (location: string) => `sixscope.cancel.${location}`,
  /** Where the agents of a location announce themselves; without data when one leaves. */
  here: (location: string) => `sixscope.here.${location}`,
  /** Makes all agents announce themselves. */
  rollCall: "sixscope.rollcall",
  inbox: () => `_INBOX.${crypto.randomUUID()}`,
} as const;

/** A question to an agent: an endpoint by its `operationId`, with parameters as a request sends them. */
export const questionSchema = once(() =>
  z.object({
    version: z.literal(MESSAGE_VERSION),
    endpoint: z.string(),
    parameters: z.record(z.string(), z.string()),
    /** The owner whose share of the probe slots it uses: a name that only the instance understands. */
    owner: z.string().max(64),
    /** True if the instance wants events. */
    events: z.boolean(),
  }),
);

/** See `questionSchema`. */
export type SentQuestion = z.output<ReturnType<typeof questionSchema>>;

const text = () => z.string().max(1000);

/** The replies of an agent to a question: how long it may take, events, and at last one of the others. */
export const replySchema = once(() =>
  z.union([
    z.strictObject({ allowSeconds: z.number().min(0) }),
    z.strictObject({ event: z.string(), data: z.looseObject({}) }),
    z.strictObject({ result: z.looseObject({}) }),
    z.strictObject({
      error: z.strictObject({ code: z.string(), message: text(), details: z.looseObject({}) }),
    }),
    /** Why the agent does not do what it is asked for. */
    z.strictObject({ refused: text() }),
  ]),
);

/** See `replySchema`. */
export type Reply = z.output<ReturnType<typeof replySchema>>;

/** How an agent announces itself. */
export const announcementSchema = once(() =>
  z.object({
    version: z.string().max(64),
    families: z.array(z.literal([4, 6])).max(2),
    since: z.iso.datetime(),
  }),
);

/** The value in a message; null if it is not JSON, or not as the schema says. */
export function readMessage<T>(schema: () => z.ZodType<T>, data: Uint8Array): T | null {
  try {
    return schema().parse(JSON.parse(new TextDecoder().decode(data)));
  } catch {
    return null;
  }
}

/** The callback of a subscription that passes its messages on; the link logs what the server refuses. */
export function onMessage(use: (message: Msg) => void) {
  return (error: Error | null, message: Msg) => {
    if (error === null) use(message);
  };
}
