import type { Msg } from "@nats-io/transport-node";
import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import { tryParseIpv6, tryParseZoned } from "../addr/ipv6.ts";
import { ApiError, ERRORS, type ErrorCode, type ErrorDetails } from "../api/errors.ts";
import { mismatchOf } from "../api/foreign.ts";
import { readParameters, sentTexts } from "../api/parameters.ts";
import { RESOLVER_NAMES } from "../config/settings.ts";
import type { Question } from "../tools/services.ts";
import { printable } from "../util/text.ts";
import { type Reply, readMessage, replySchema } from "./protocol.ts";

/** Bytes of a reply; 100 rounds over 30 hops with names have a tenth, and 1,024 addresses with names of 200 characters fit. */
const MAX_REPLY_BYTES = 384 * 1024;

/** Bytes of all replies to a question; those of the longest mtr are fewer. */
const MAX_ALL_BYTES = 8 * 2 ** 20;

/** Replies to a question: as many as `allow_responses` of docs/operations.md lets an agent send. */
const MAX_REPLIES = 1000;

/** Keys in an answer of a number, or a list as long, that is at most a parameter of the question. */
const BOUNDED: ReadonlyMap<string, string> = new Map([
  ...["seq", "transmitted", "results", "lost"].map((key) => [key, "count"] as const),
  ...["hop", "hops"].map((key) => [key, "maxHops"] as const),
  ...["round", "rounds"].map((key) => [key, "rounds"] as const),
  ["paths", "paths"],
]);

/** The replies that do not refuse or fail. */
type Progress = Exclude<Reply, { readonly error: object } | { readonly refused: string }>;

/** The status of a message from the server itself, which has no data: there is no subscriber. */
const NO_RESPONDERS = 503;

/** Bytes of such a message with its subject; the client takes minutes to read a megabyte of headers. */
const MAX_STATUS_BYTES = 1024;

/** A message with its size, which its type leaves out: bytes of subjects, headers and data. */
type Sized = Msg & { size(): number };

/**
 * Makes the reader of the replies to one question, through which all that an agent says passes before it
 * is used: its size, its shape, whether it is about what was asked, and its characters. The reader throws
 * an ApiError for a reply that ends the question without a result.
 */
export function replyReader(location: string, { endpoint, parameters }: Question) {
  // A map, because an agent may send the name of what every object has.
  const events = new Map(Object.entries(endpoint.events?.() ?? {}));
  const values = readParameters(endpoint.parameters, sentTexts(parameters));
  const asked = new Set(Object.values(parameters));
  let [bytes, replies] = [0, 0];
  /** The key of a number or a list that is beyond its parameter. */
  let beyond: string | undefined;
  /** Makes texts safe to print, but for those that the caller sent. */
  const revive = (key: string, value: unknown) => {
    if (typeof value === "string") return asked.has(value) ? value : printable(value);
    const extent = Array.isArray(value) ? value.length : value;
    const most = values[BOUNDED.get(key) ?? ""];
    if (typeof extent === "number" && typeof most === "number" && extent > most) beyond = key;
    return value;
  };
  /** @param about for a result or the details of an error, which say what they are about */
  const check = (schema: z.ZodType, value: object, about: Fields = {}) => {
    const where = mismatchOf(schema, value);
    if (where !== undefined) {
      throw unavailable(location, `its answer is not as this version describes it at ${where}`);
    }
    const key = beyond ?? differenceIn(about, values);
    if (key === undefined) return;
    throw unavailable(location, `its answer is not about what was asked: ${key} differs`);
  };
  /** The agent's error as if it were ours, if the endpoint has it. */
  const errorOf = ({ code, message, details }: Extract<Reply, { error: object }>["error"]) => {
    const { errors } = endpoint;
    const possible: readonly ErrorCode[] = [...errors, "INVALID_PARAMETER", "INTERNAL_ERROR"];
    const own = possible.find((each) => each === code);
    if (own === undefined) {
      return unavailable(location, `it failed with ${code}, which this version does not know`);
    }
    check(z.strictObject(ERRORS[own].details()), details, details);
    const error = new ApiError(own, details as ErrorDetails<ErrorCode>);
    // "This service" or "this machine" in the message means the one there.
    error.message = error.status === 500 ? `At the location ${location}: ${message}` : message;
    return error;
  };
  return (error: Error | null, message: Msg): Progress => {
    if (error) throw unavailable(location, "NATS does not let this service read answers");
    const { data } = message;
    const isBrief = data.length === 0 && (message as Sized).size() < MAX_STATUS_BYTES;
    if (isBrief && message.headers?.code === NO_RESPONDERS) {
      throw new ApiError("LOCATION_NOT_FOUND", { location });
    }
    bytes += data.length;
    replies += 1;
    if (bytes > MAX_ALL_BYTES || replies > MAX_REPLIES) {
      throw unavailable(location, "its replies are too large or too many");
    }
    const reply = readMessage(replySchema, data, MAX_REPLY_BYTES, revive);
    if (reply === undefined) throw unavailable(location, "its reply is too large or not valid");
    if ("refused" in reply) throw unavailable(location, reply.refused);
    if ("error" in reply) throw errorOf(reply.error);
    if ("event" in reply) check(events.get(reply.event) ?? z.never(), reply.data);
    if ("result" in reply) check(endpoint.response(), reply.result, reply.result);
    return reply;
  };
}

/** A document, and the parts of it that say what it is about. */
interface Fields {
  readonly [key: string]: unknown;
  readonly details?: Fields;
  readonly question?: Fields;
}

/** The key of a text in a result, or in the details of an error, that is not what was asked. */
function differenceIn(document: Fields, values: Readonly<Record<string, unknown>>) {
  const { resolver, target, hostname = target } = values;
  const address = tryParseIpv6(`${target}`) ?? tryParseZoned(`${target}`)?.address;
  const answerer = resolver === "all" ? RESOLVER_NAMES[0] : resolver;
  const ip = address && formatIpv6(address);
  const expected: Fields = { ...values, hostname, address: hostname, ip, resolver: answerer };
  const parts: Fields = { ...document.details?.question, ...document.question, ...document };
  const texts = Object.keys(parts).filter((key) => typeof parts[key] === "string");
  return texts.find((key) => parts[key] !== (expected[key] ?? parts[key]));
}

/** The reason for `unavailable` while there is no connection to NATS. */
export const NOT_CONNECTED = "this service has no connection to NATS";

/** The error for a location that cannot be used. */
export function unavailable(location: string, reason: string): ApiError {
  return new ApiError("LOCATION_UNAVAILABLE", { location, reason: printable(reason) });
}
