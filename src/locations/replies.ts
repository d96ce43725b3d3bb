import type { Msg } from "@nats-io/transport-node";
import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import { tryParseIpv6, tryParseZoned } from "../addr/ipv6.ts";
import { ApiError, ERRORS, type ErrorCode, type ErrorDetails } from "../api/errors.ts";
import { mismatchOf } from "../api/foreign.ts";
import { readTexts } from "../api/parameters.ts";
import { parseHostname } from "../dns/hostname.ts";
import { canonicalName } from "../dns/message/name.ts";
import type { RecordType } from "../dns/message/record.ts";
import type { Question } from "../tools/services.ts";
import { inWords, printable } from "../util/text.ts";
import { type Reply, readReply } from "./protocol.ts";

/** Bytes of all replies to a question; the longest mtr has fewer. */
const MAX_ALL_BYTES = 8 * 2 ** 20;

/** Replies to a question: as many as `allow_responses` of docs/operations.md lets an agent send. */
const MAX_REPLIES = 1000;

/** Parameters of a question, and the keys of an answer that they bound: a number, or the length of a list. */
const BOUNDED = {
  count: ["seq", "transmitted", "received", "results", "lost", "late"],
  maxHops: ["hop", "hops"],
  rounds: [
    ...["round", "rounds", "sent", "received", "late"],
    ...["errors", "unknown", "others", "otherRounds"],
  ],
  paths: ["paths"],
};

/** The replies that do not refuse or fail. */
type Progress = Exclude<Reply, { readonly error: object } | { readonly refused: string }>;

/** The status of a message from the server itself, without data, that there is no subscriber. */
const NO_RESPONDERS = 503;

/** Bytes of such a message with its subject; the client takes minutes to read a megabyte of headers. */
const MAX_STATUS_BYTES = 1024;

/** A message with the size that its type lacks: bytes of subjects, headers and data. */
type Sized = Msg & { size(): number };

/**
 * Makes the reader of the replies to one question. It is the one boundary for an agent's data: it checks their size,
 * shape and relation to the question, and makes texts safe to print. The reader throws an ApiError for a reply that ends
 * the question without a result.
 */
export function replyReader(location: string, { endpoint, parameters }: Question) {
  // A map, because an agent may send a name that every object has, such as `constructor`.
  const events = new Map(Object.entries(endpoint.events?.() ?? {}));
  const values = readTexts(endpoint.parameters, parameters);
  const sentTexts = new Set(Object.values(parameters));
  const maxima = new Map<string, number>();
  for (const [parameter, keys] of Object.entries(BOUNDED)) {
    const value = values[parameter];
    if (typeof value === "number") for (const key of keys) maxima.set(key, value);
  }
  let [bytes, replies] = [0, 0];
  /** The key of a number or a list that exceeds its parameter. */
  let beyond: string | undefined;
  /** Makes texts safe to print, except those that the caller sent. */
  const revive = (key: string, value: unknown) => {
    if (typeof value === "string") return sentTexts.has(value) ? value : printable(value);
    const extent = Array.isArray(value) ? value.length : value;
    if (typeof extent === "number" && extent > (maxima.get(key) ?? Infinity)) beyond = key;
    return value;
  };
  /** @param about the part of the value that repeats the question */
  const check = (schema: z.ZodType, value: object, about: Fields) => {
    const where = mismatchOf(schema, value);
    if (where !== undefined) {
      throw unavailable(location, `its answer is not as this version describes it at ${where}`);
    }
    const key = beyond ?? differenceIn(about, values, parameters);
    if (key === undefined) return;
    throw unavailable(location, `its answer is not about what was asked: ${key} differs`);
  };
  /** The agent's error as an error of this service, if the endpoint has it. */
  const errorOf = ({ code, message, details }: Extract<Reply, { error: object }>["error"]) => {
    const { errors } = endpoint;
    const possible: readonly ErrorCode[] = [...errors, "INVALID_PARAMETER", "INTERNAL_ERROR"];
    const own = possible.find((each) => each === code);
    if (own === undefined) {
      return unavailable(
        location,
        `it failed with ${inWords(code)}, which this version does not know`,
      );
    }
    check(z.strictObject(ERRORS[own].details()), details, details);
    const error = new ApiError(own, details as ErrorDetails<ErrorCode>);
    // "This service" or "this machine" in the message is at the location.
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
    const reply = readReply(data, revive);
    if (reply === undefined) throw unavailable(location, "its reply is too large or not valid");
    if ("refused" in reply) throw unavailable(location, reply.refused);
    if ("error" in reply) throw errorOf(reply.error);
    if ("event" in reply) {
      // Its other fields are about a hop, a path or a step.
      const { question, resolver } = reply.data as Fields;
      check(events.get(reply.event) ?? z.never(), reply.data, { question, resolver });
    }
    if ("result" in reply) check(endpoint.response(), reply.result, reply.result);
    return reply;
  };
}

/** A result, the details of an error, or the data of an event, with the parts that repeat the question. */
interface Fields {
  readonly [key: string]: unknown;
  readonly results?: readonly unknown[];
  readonly details?: Fields & { readonly lost?: readonly unknown[] };
  readonly question?: Fields | undefined;
}

/**
 * Compares the question that an answer repeats with the question itself, and with what follows from a parameter, such
 * as the address of a target. Returns the first key that differs; undefined if none does.
 */
function differenceIn(
  document: Fields,
  values: Readonly<Record<string, unknown>>,
  parameters: Question["parameters"],
) {
  const { details = {}, results = [] } = document;
  const { lost } = details;
  const question = details.question ?? document.question;
  const stated: Fields = {
    // Defaults that an answer leaves out.
    ...(document.details && { protocol: "icmp" }),
    ...(question && { class: "IN", ...question }),
    ...(lost && { count: results.length + lost.length }),
    ...details,
    ...Object(details["port"]),
    ...document,
  };
  const { target, type = "AAAA", hostname = target, resolver, transport } = values;
  const address = tryParseIpv6(`${target}`) ?? tryParseZoned(`${target}`)?.address;
  const parsed = parseHostname(`${hostname}`, type as RecordType);
  const expected: Fields = {
    ...values,
    ...{ hostname, address: hostname, ip: address && formatIpv6(address) },
    name: values["name"] ?? (question && parsed.ok ? canonicalName(parsed.name) : undefined),
    // An agent's kernel may give a run no flow label.
    flowLabel: stated["flowLabel"] === 0 ? 0 : values["flowLabel"],
    // A run that met its budget has fewer.
    rounds: details["cutShort"] ? stated["rounds"] : values["rounds"],
    value: parameters[`${stated["parameter"]}`],
    ...{ resolver: resolver === "all" ? undefined : resolver, nsid: undefined },
    transport: transport === "tcp" && stated["transport"] === "udp" ? transport : undefined,
  };
  return Object.keys(stated).find(
    (key) =>
      ["string", "number"].includes(typeof stated[key]) &&
      stated[key] !== (expected[key] ?? stated[key]),
  );
}

/** The reason for `unavailable` while there is no connection to NATS. */
export const NOT_CONNECTED = "this service has no connection to NATS";

/** The error for a location that cannot be used. */
export function unavailable(location: string, reason: string): ApiError {
  return new ApiError("LOCATION_UNAVAILABLE", { location, reason: printable(reason) });
}
