/** The messages of instances and agents over NATS. */
import type { Msg } from "@nats-io/transport-node";
import { z } from "zod";
import { parsePrefix } from "../addr/prefix.ts";
import { parseForeign } from "../api/foreign.ts";
import { once } from "../api/schemas.ts";
import { LOCATION_FORM, MAX_TAGS } from "../config/settings.ts";
import { attempt } from "../util/errors.ts";

/** The version of questions; an agent refuses a question of another version, and names its own. */
export const MESSAGE_VERSION = 4;

/** Bytes of a question: names and addresses are short, but the service's target policy can have a thousand prefixes. */
export const MAX_QUESTION_BYTES = 65_536;

/** The names of services in subjects: public NKeys, or random names. */
const SERVICE_FORM = /^[\w-]{1,64}$/;

/**
 * The subjects; docs/operations.md shows who may use which. Subjects of questions end with the name of the service that
 * asks: a message does not name its sender, but the server lets each user publish under its own name only.
 */
export const SUBJECTS = {
  ask: (location: string, service: string) => `sixscope.ask.${location}.${service}`,
  /** Ends a question, whose token is the data of the message. */
  cancel: (location: string, service: string) => `sixscope.cancel.${location}.${service}`,
  /** The subject on which an agent announces itself, by its location and its own name. */
  here: (location: string, agent: string) => `sixscope.here.${location}.${agent}`,
  /** The subject of the answers to one question of a service; no other service may read below its name. */
  inbox: (service: string, question: string = crypto.randomUUID()) =>
    `_INBOX.${service}.${question}`,
} as const;

/** The service that a subject of `ask` or `cancel` names; empty if the name is not valid. */
export function serviceIn(subject: string): string {
  const service = subject.split(".").at(-1) ?? "";
  return SERVICE_FORM.test(service) ? service : "";
}

/** The names of agents within their locations. */
export const AGENT_FORM = /^[0-9a-f]{8}$/;

const prefix = () => z.string().max(64).transform(parsePrefix);

/**
 * Makes the reader of a kind of message. The reader returns undefined for a message that is too large, not JSON, or
 * different from its schema.
 */
const readerOf =
  <T>(schema: () => z.ZodType<T>, maxBytes: number) =>
  (data: Uint8Array, revive?: Parameters<typeof parseForeign>[2]): T | undefined =>
    attempt(() => schema().parse(parseForeign(data, maxBytes, revive)));

/** A question to an agent: an endpoint by its `operationId`, with parameters as a request sends them. */
const questionSchema = once(() =>
  z.object({
    version: z.literal(MESSAGE_VERSION),
    endpoint: z.string(),
    parameters: z.record(z.string(), z.string()),
    /** The client whose part of the service's share the question uses: a name that only the service understands. */
    owner: z.string().regex(/^[0-9a-f]{16}$/),
    /** The secret with which the run can be ended. */
    token: z.uuid(),
    /** The target policy of the service, which must allow the target too. */
    targets: z.strictObject({
      mode: z.enum(["any", "global"]),
      allow: z.array(prefix()),
      deny: z.array(prefix()),
    }),
    /** The id of the request at the instance, for the log. */
    id: z.string().max(128).optional(),
    /** True if the instance wants events. */
    events: z.boolean(),
  }),
);

/** A question as it is sent. */
export type SentQuestion = z.input<ReturnType<typeof questionSchema>>;

/** A question as it is read: its policy has prefixes. */
export type ReadQuestion = z.output<ReturnType<typeof questionSchema>>;

/** Reads a question. */
export const readQuestion = readerOf(questionSchema, MAX_QUESTION_BYTES);

const text = () => z.string().max(1000);

/** The time between the messages of an agent that it still works on a question, in milliseconds. */
export const ALIVE_MS = 500;

/** The replies of an agent to a question: signs of life, events, and at last one of the others. */
const replySchema = once(() =>
  z.union([
    z.strictObject({ alive: z.literal(true) }),
    z.strictObject({ event: z.string(), data: z.looseObject({}) }),
    z.strictObject({ result: z.looseObject({}) }),
    z.strictObject({
      error: z.strictObject({ code: z.string(), message: text(), details: z.looseObject({}) }),
    }),
    /** The reason why the agent refuses or ends the work. */
    z.strictObject({ refused: text() }),
  ]),
);

/** See `replySchema`. */
export type Reply = z.output<ReturnType<typeof replySchema>>;

/** Bytes of a reply: the default limit of NATS servers; the 4,096 routes of a machine fit. */
const MAX_REPLY_BYTES = 2 ** 20;

/** Reads a reply. */
export const readReply = readerOf(replySchema, MAX_REPLY_BYTES);

/** Bytes of an announcement. */
export const MAX_ANNOUNCEMENT_BYTES = 2048;

/** The description with which an agent announces itself; an announcement without data is its goodbye. */
const announcementSchema = once(() =>
  z.object({
    version: z.string().regex(/^[\w.+-]{1,64}$/),
    families: z
      .array(z.literal([4, 6]))
      .max(2)
      .refine((families) => new Set(families).size === families.length),
    /** The time of its start. */
    since: z.iso.datetime(),
    tags: z.array(z.string().regex(LOCATION_FORM)).max(MAX_TAGS),
  }),
);

/** See `announcementSchema`. */
export type Announcement = z.output<ReturnType<typeof announcementSchema>>;

/** Reads an announcement. */
export const readAnnouncement = readerOf(announcementSchema, MAX_ANNOUNCEMENT_BYTES);

/** The callback of a subscription that passes its messages on; the link logs refusals of the server. */
export function onMessage(use: (message: Msg) => void) {
  return (error: Error | null, message: Msg) => {
    if (error === null) use(message);
  };
}
