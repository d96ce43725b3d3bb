/** The messages of instances and agents over NATS. */
import type { Msg } from "@nats-io/transport-node";
import { z } from "zod";
import { parsePrefix } from "../addr/prefix.ts";
import { once } from "../api/schemas.ts";
import { LOCATION_FORM, MAX_TAGS } from "../config/settings.ts";
import { attempt } from "../util/errors.ts";

/** The version of questions; an agent refuses a question of another version by name. */
export const MESSAGE_VERSION = 3;

/** Bytes of a question: names and addresses are short, but the service's target policy can have a thousand prefixes. */
export const MAX_QUESTION_BYTES = 65_536;

/** Where an agent may answer: whoever asks chooses the subject, and an agent's rights must not serve another end. */
export const INBOXES = "_INBOX.";

/** The subjects; docs/operations.md shows who may use which. */
export const SUBJECTS = {
  ask: (location: string) => `sixscope.ask.${location}`,
  /** Its data are the token of the question that ends. */
  cancel: (location: string) => `sixscope.cancel.${location}`,
  /** Where the agents of a location announce themselves, to all services or to one that calls the roll. */
  here: (location: string, service?: string) =>
    `sixscope.here.${location}${service ? `.${service}` : ""}`,
  /** Makes all agents announce themselves to the service whose name is the data. */
  rollCall: "sixscope.rollcall",
  /** Where the answers to one question of a service go; no other service may read below its name. */
  inbox: (service: string, question: string = crypto.randomUUID()) =>
    `${INBOXES}${service}.${question}`,
} as const;

/** The name of a service in its subjects: an NKey or a UUID. */
export const SERVICE_FORM = /^[\w-]{1,64}$/;

const prefix = () => z.string().max(64).transform(parsePrefix);

/** A question to an agent: an endpoint by its `operationId`, with parameters as a request sends them. */
export const questionSchema = once(() =>
  z.object({
    version: z.literal(MESSAGE_VERSION),
    endpoint: z.string(),
    parameters: z.record(z.string(), z.string()),
    /** The client whose share of the probe slots it uses: a name that only the instance understands. */
    owner: z.string().max(64),
    /** The secret of those who may end the run. */
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

const text = () => z.string().max(1000);

/** How often an agent says that it still works on a question, in milliseconds. */
export const ALIVE_MS = 500;

/** The replies of an agent to a question: that it works on it, events, and at last one of the others. */
export const replySchema = once(() =>
  z.union([
    z.strictObject({ alive: z.literal(true) }),
    z.strictObject({ event: z.string(), data: z.looseObject({}) }),
    z.strictObject({ result: z.looseObject({}) }),
    z.strictObject({
      error: z.strictObject({ code: z.string(), message: text(), details: z.looseObject({}) }),
    }),
    /** Why the agent does not do what it is asked for, or ends it. */
    z.strictObject({ refused: text() }),
  ]),
);

/** See `replySchema`. */
export type Reply = z.output<ReturnType<typeof replySchema>>;

/** Bytes of an announcement. */
export const MAX_ANNOUNCEMENT_BYTES = 2048;

/** An announcement of an agent: what it says of itself, or only that it is still there or has left. */
export interface Announcement {
  /** Its name among the agents of its location. */
  readonly id: string;
  readonly said?: {
    readonly version: string;
    readonly families: readonly (4 | 6)[];
    /** When it started, in UTC as RFC 3339 writes it. */
    readonly since: string;
    readonly tags: readonly string[];
  };
  readonly left?: true;
}

const isText = (form: RegExp) => (value: unknown) => typeof value === "string" && form.test(value);
const isId = isText(/^[0-9a-f]{8}$/);
const isVersion = isText(/^[\w.+-]{1,64}$/);
const isTime = isText(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/);
const isTag = isText(LOCATION_FORM);

const isList = (value: unknown, most: number, isItem: (item: unknown) => boolean) =>
  Array.isArray(value) && value.length <= most && value.every(isItem);

/** The announcement in a text; null if it is none. Not with a schema, whose garbage for ten thousand agents is 10 MB. */
export function readAnnouncement(text: string): Announcement | null {
  try {
    const { id, said, left }: Announcement = JSON.parse(text);
    if (!isId(id)) return null;
    if (left === true) return { id, left };
    if (said === undefined) return { id };
    const { version, families, since, tags } = said;
    const isValid =
      isVersion(version) &&
      isList(families, 2, (family) => family === 4 || family === 6) &&
      new Set(families).size === families.length &&
      isTime(since) &&
      // A day that its month does not have is another one; without any, this throws.
      new Date(since).toISOString().startsWith(since.slice(0, 19)) &&
      isList(tags, MAX_TAGS, isTag);
    return isValid ? { id, said: { version, families, since, tags } } : null;
  } catch {
    return null;
  }
}

/**
 * The value in a message; null if it is too long, not JSON, or not as the schema says.
 *
 * @param revive as for `JSON.parse`
 */
export function readMessage<T>(
  schema: () => z.ZodType<T>,
  data: Uint8Array,
  maxBytes: number,
  revive?: (key: string, value: unknown) => unknown,
): T | null {
  if (data.length > maxBytes) return null;
  const text = new TextDecoder().decode(data);
  return attempt(() => schema().parse(JSON.parse(text, revive))) ?? null;
}

/** The callback of a subscription that passes its messages on; the link logs what the server refuses. */
export function onMessage(use: (message: Msg) => void) {
  return (error: Error | null, message: Msg) => {
    if (error === null) use(message);
  };
}

/** Messages of a burst that are read without a pause, which takes some milliseconds. */
const READ_AT_ONCE = 100;

/** Passes values on in their order, some in each turn of the event loop; of those that wait, at most `most` are kept. */
export function inTurns<T>(use: (value: T) => void, most: number): (value: T) => void {
  const waiting: T[] = [];
  const useSome = () => {
    for (const value of waiting.splice(0, READ_AT_ONCE)) use(value);
    if (waiting.length > 0) setImmediate(useSome);
  };
  return (value) => {
    if (waiting.length < most && waiting.push(value) === 1) setImmediate(useSome);
  };
}
