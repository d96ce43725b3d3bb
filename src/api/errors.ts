import { z } from "zod";
import { type ParseFailure, tryParseIpv4 } from "../addr/ipv4.ts";
import { readIpv6 } from "../addr/ipv6.ts";
import { printable, quote } from "../util/text.ts";
import { answerDetails, dnsRecord } from "./dns-schemas.ts";
import catalogue from "./errors.json" with { type: "json" };
import {
  addressType,
  ipv6Text,
  list,
  locationName,
  resolverName,
  text,
  type ValueOf,
  whole,
} from "./schemas.ts";

/** A code of the API's errors. */
export type ErrorCode = keyof typeof catalogue;

/** The documentation of an error code. */
interface ErrorRow {
  readonly status: number;
  /** The cases in which it is returned. */
  readonly meaning: string;
  /** The headers of its responses beyond those of all responses. */
  readonly headers?: readonly string[];
  /** The example of the OpenAPI document; see `message` for `note`. */
  readonly example: { readonly details: object; readonly note?: string };
}

/** Every error code, in the order of the documents. */
export const ERROR_CATALOGUE: Readonly<Record<ErrorCode, ErrorRow>> = catalogue;

/** The details and the message of an error code. */
export interface ErrorKind<Shape extends z.core.$ZodLooseShape = z.core.$ZodLooseShape> {
  /** The fields of the details; a function, because only the OpenAPI document needs their schemas. */
  readonly details: () => Shape;
  /**
   * One sentence: what is wrong, and what to do.
   *
   * @param note a part of the sentence that the details do not contain
   */
  message(details: ValueOf<z.ZodObject<Shape, z.core.$strict>>, note?: string): string;
}

function kind<Shape extends z.core.$ZodLooseShape>(row: ErrorKind<Shape>): ErrorKind<Shape> {
  return row;
}

const asSent = (subject: string) => text(`${subject} as it was sent.`);

const retryAfterSeconds = () => whole("Seconds, as in Retry-After.", 1);

const query = () => ({
  hostname: asSent("The name"),
  resolver: resolverName(),
  ...answerDetails(),
  records: list(
    dnsRecord(),
    "The CNAME chain in order, as far as it is known; absent if there is none.",
  ).exactOptional(),
});

/** An error of a question about a name; the code that throws it writes its sentence. */
const aboutName = <Shape extends z.core.$ZodLooseShape>(details: () => Shape) =>
  kind({ details, message: (_, text = "") => text });

/** The details and the message of every error code. */
export const ERRORS = {
  INVALID_ADDRESS: kind({
    details: () => ({
      address: asSent("The text"),
      reason: text("Why it is not valid.").exactOptional(),
      position: whole("The character at which that shows, from 1.", 1).exactOptional(),
    }),
    message({ address, reason, position }, advice = "write it like 2001:db8::1") {
      if (reason !== undefined && tryParseIpv4(address) !== null)
        return `${address} is an IPv4 address; ${advice}.`;
      const where = `IPv6 address: ${reason} (at character ${position})`;
      const expected = reason === undefined ? "IPv4 or IPv6 address" : where;
      return `${quote(address)} is not a valid ${expected}; ${advice}.`;
    },
  }),
  INVALID_HOSTNAME: kind({
    details: () => ({
      hostname: asSent("The name"),
      reason: text("The rule that it breaks."),
    }),
    message: ({ hostname, reason }) =>
      `${quote(hostname)} is not a valid hostname: ${reason}; write it like www.example.com.`,
  }),
  INVALID_PARAMETER: kind({
    details: () => ({
      parameter: text(
        "Its name; `Host` if that header is malformed, `query` if the request costs more than the limit.",
      ),
      value: z
        .union([z.string(), z.array(z.string()), z.null()])
        .describe("As it was sent: a list if it was repeated, null if it is missing."),
      allowed: list(z.string(), "The values of its list.").exactOptional(),
      minimum: z.int().exactOptional().describe("The least value."),
      maximum: z.int().exactOptional().describe("The greatest value."),
    }),
    message({ parameter, value, allowed, minimum, maximum }, note) {
      if (parameter === "query") return `The request ${note}.`;
      const range = `a number from ${minimum} to ${maximum}`;
      const needed = note ?? (allowed ? `one of ${allowed.join(", ")}` : range);
      const count = Array.isArray(value) && `given ${value.length} times; give it once`;
      // Faces replace the name of the parameter by their own: `inTheirWords`.
      return `${parameter}: ${count || (value === null ? `missing; ${needed}` : needed)}.`;
    },
  }),
  TARGET_NOT_ALLOWED: kind({
    details: () => ({
      target: asSent("The target"),
      ip: ipv6Text("Its address."),
      type: addressType(),
    }),
    message: ({ ip }, reason = "is not allowed as a target") => `${ip} ${reason}.`,
  }),
  HTTPS_REQUIRED: kind({
    details: () => ({}),
    message: (_, proxy) =>
      proxy === undefined
        ? "This service requires HTTPS; repeat the request with https://, or if the service is yours, set SIXSCOPE_TLS_CERT or SIXSCOPE_PLAIN_HTTP_FROM."
        : `This service requires HTTPS, and does not trust the proxy ${proxy} that sent the request; if the service is yours, add the proxy to SIXSCOPE_TRUSTED_PROXIES.`,
  }),
  UNAUTHORIZED: kind({
    details: () => ({}),
    message: (_, problem = "This endpoint needs an API key; send it in the header X-API-Key") =>
      `${problem}.`,
  }),
  NOT_FOUND: kind({
    details: () => ({
      method: text("The request's method."),
      path: text("The request's path."),
    }),
    message: ({ path }, problem = `${path} does not exist`) =>
      `${problem}; GET /api/v1/openapi.json describes every endpoint.`,
  }),
  HOSTNAME_NOT_FOUND: aboutName(query),
  NO_IPV6_ADDRESS: aboutName(query),
  RATE_LIMITED: kind({
    details: () => ({
      limit: whole("Requests per window.", 1),
      windowSeconds: whole("The length of a window in seconds.", 1),
      retryAfterSeconds: retryAfterSeconds(),
    }),
    message: (details, state = "is used up") =>
      `The limit of ${details.limit} requests in ${details.windowSeconds} seconds ${state}; try again in ${details.retryAfterSeconds} seconds.`,
  }),
  TOO_MANY_PROBES: kind({
    details: () => ({
      limit: whole("Pings and traces, or DNS queries, that may run at once.", 1),
      retryAfterSeconds: retryAfterSeconds(),
    }),
    message: ({ retryAfterSeconds }, reason = "The server is busy") =>
      `${reason}; try again in ${retryAfterSeconds} seconds.`,
  }),
  RESOLVER_TIMEOUT: aboutName(query),
  RESOLVER_FAILURE: aboutName(() => ({
    ...query(),
    rcode: text(
      "The name of the response code, or `MALFORMED`, `CNAME_LOOP`, `UNREACHABLE`, `SHORTAGE`, `REFERRAL` or `TOO_LARGE`.",
    ),
  })),
  KEYS_UNAVAILABLE: kind({
    details: () => ({}),
    message: () =>
      "This service cannot tell which API keys are valid, because it has not reached Valkey for a day; try again later, or tell its operator.",
  }),
  ICMP_UNAVAILABLE: kind({
    details: () => ({ reason: text("The system call that failed.") }),
    message: ({ reason }, remedy = "grant CAP_NET_RAW") =>
      `This service has no raw socket (${reason}); the operator must ${remedy}.`,
  }),
  NETWORK_UNREACHABLE: kind({
    details: () => ({ target: asSent("The target"), ip: ipv6Text("Its address.") }),
    message: ({ ip }, errno) =>
      `This machine cannot send to ${ip} (${errno}); try again, or ask the operator to check its IPv6 routes and firewall.`,
  }),
  LOCATION_NOT_FOUND: kind({
    details: () => ({ location: locationName() }),
    message: ({ location }, available) =>
      location === "all"
        ? "No location is available now; measure from the service itself, or ask the operator."
        : `There is no location ${quote(location)}. ${available ? `Available: ${available}` : "None is available now"}.`,
  }),
  LOCATION_TIMEOUT: kind({
    details: () => ({ location: locationName() }),
    message: ({ location }) =>
      `The agent at ${quote(location)} did not answer in time; try again, or another location.`,
  }),
  LOCATION_UNAVAILABLE: kind({
    details: () => ({ location: locationName(), reason: text("Why.") }),
    message: ({ location, reason }) =>
      `The location ${quote(location)} cannot be used: ${printable(reason)}; try again later, or tell the operator.`,
  }),
  INTERNAL_ERROR: kind({
    details: () => ({ requestId: text("As in X-Request-Id.") }),
    message: () =>
      "The service failed unexpectedly; try again later, and if it happens again, send the operator this request id.",
  }),
} satisfies Readonly<Record<ErrorCode, ErrorKind>>;

/** The details of an error code. */
export type ErrorDetails<Code extends ErrorCode> = {
  [Each in Code]: ValueOf<
    z.ZodObject<ReturnType<(typeof ERRORS)[Each]["details"]>, z.core.$strict>
  >;
}[Code];

/** An outcome that the client gets as an error response. It has no stack trace, which would cost as much as the rest of a refusal. */
export class ApiError<Code extends ErrorCode = ErrorCode> implements Error {
  readonly name = "ApiError";
  message: string;
  readonly code: Code;
  readonly details: ErrorDetails<Code>;

  /** @param note for the message; see `ErrorKind` */
  constructor(code: Code, details: ErrorDetails<Code>, note?: string) {
    const { message }: ErrorKind = ERRORS[code];
    this.message = message(details, note);
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return ERROR_CATALOGUE[this.code].status;
  }

  /** The JSON of the response. */
  get body() {
    return { error: { code: this.code, message: this.message, details: this.details } };
  }
}

// Makes it an Error for `instanceof` and for code that prints it.
Object.setPrototypeOf(ApiError.prototype, Error.prototype);

/** A caught error as an error of the API; throws any other error. */
export function apiErrorOf(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  throw error;
}

/** The error for a text that must be an IPv6 address and is not. @param advice if another text is possible too */
export function invalidAddress(address: string, advice?: string): ApiError {
  const { reason, position } = readIpv6(address) as ParseFailure;
  return new ApiError("INVALID_ADDRESS", { address, reason, position }, advice);
}

/** The error that ends the work for a client that has disconnected; nobody reads the response. */
export function clientGone(): DOMException {
  return new DOMException("the client disconnected, or the service is stopping", "AbortError");
}
