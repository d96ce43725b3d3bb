import { z } from "zod";
import { tryParseIp } from "../addr/ip.ts";
import type { ParseFailure } from "../addr/ipv4.ts";
import { readIpv6 } from "../addr/ipv6.ts";
import { bogusReason } from "../dns/codes.ts";
import { remedyFor } from "../icmp/engine.ts";
import { printable, quote } from "../util/text.ts";
import { comparison, dnsDetails, dnsRecord, dnssecVerdict } from "./dns-schemas.ts";
import { addressType, ipv6Text, locationName, resolverName, type ValueOf } from "./schemas.ts";

/** What the API says about one error code. */
export interface ErrorKind<Details extends z.ZodType = z.ZodType> {
  readonly status: 400 | 401 | 404 | 429 | 500;
  /** When it is returned. */
  readonly meaning: string;
  /** A function, because only the OpenAPI document needs the schema. */
  readonly details: () => Details;
  /**
   * One sentence: what is wrong, and what to do.
   *
   * @param note what the details do not contain
   */
  message(details: ValueOf<Details>, note?: string): string;
  readonly headers?: readonly string[];
  readonly example: { readonly details: NoInfer<ValueOf<Details>>; readonly note?: string };
}

function kind<Details extends z.ZodType>(row: ErrorKind<Details>): ErrorKind<Details> {
  return row;
}

const asSent = (what: string) => z.string().describe(`${what} as it was sent.`);

const retryAfterSeconds = () => z.int().min(1).describe("Seconds, as in Retry-After.");

const query = () => ({
  hostname: asSent("The name"),
  resolver: resolverName(),
  ...dnsDetails(),
  records: z
    .array(dnsRecord())
    .exactOptional()
    .describe("The CNAME chain in order, as far as it is known; absent if there is none."),
  dnssec: dnssecVerdict().exactOptional(),
  ...comparison(),
});

const EXAMPLE_SOA = {
  name: "example.",
  value: "ns.example. hostmaster.example. 1 3600 900 604800 60",
  ttl: 60,
};

const askedFor = (name: string) => ({ name: `${name}.`, type: "AAAA" });

/** The failures of a resolver that need other words than their code, and what to do. */
const RESOLVER_FAILURES: Readonly<Record<string, readonly [what: string, advice?: string]>> = {
  MALFORMED: ["sent a malformed answer"],
  CNAME_LOOP: ["sent a loop of CNAME records", "its owner must correct the CNAME records"],
  UNREACHABLE: ["could not be reached"],
  REFERRAL: ["only referred to other servers"],
  TOO_LARGE: ["sent an answer that is too large to show", "ask for another name or type"],
};

/** Every error code: status, meaning, details and message. */
export const ERRORS = {
  INVALID_ADDRESS: kind({
    status: 400,
    meaning: "an address, or a target with a `:` or of IPv4 shape, is not a valid IPv6 address",
    details: () =>
      z.strictObject({
        address: asSent("The text"),
        reason: z.string().exactOptional().describe("Why it is not valid."),
        position: z
          .int()
          .min(1)
          .exactOptional()
          .describe("The character at which that shows, from 1."),
      }),
    message({ address, reason, position }, family = "IPv6") {
      const why = reason === undefined ? "" : `: ${reason} (at character ${position})`;
      return `${quote(address)} is not a valid ${family} address${why}; write it like 2001:db8::1.`;
    },
    example: {
      details: {
        address: "2001:db8::g",
        reason: "neither a hex digit nor a colon",
        position: 11,
      },
    },
  }),
  INVALID_HOSTNAME: kind({
    status: 400,
    meaning: "a name breaks the rules of DNS names",
    details: () =>
      z.strictObject({
        hostname: asSent("The name"),
        reason: z.string().describe("The rule that it breaks."),
      }),
    message: ({ hostname, reason }) =>
      `${quote(hostname)} is not a valid hostname: ${reason}; write it like www.example.com.`,
    example: { details: { hostname: "a..example", reason: "it has an empty label" } },
  }),
  INVALID_PARAMETER: kind({
    status: 400,
    meaning: "a parameter is missing, repeated, malformed, out of range or not in its list",
    details: () =>
      z.strictObject({
        parameter: z.string().describe("Its name; `Host` if that header is malformed."),
        value: z
          .union([z.string(), z.array(z.string()), z.null()])
          .describe("As it was sent: a list if it was repeated, null if it is missing."),
        allowed: z.array(z.string()).exactOptional().describe("The values of its list."),
        minimum: z.int().exactOptional().describe("The least value."),
        maximum: z.int().exactOptional().describe("The greatest value."),
      }),
    message({ parameter, value, allowed, minimum, maximum }, note) {
      if (Array.isArray(value)) {
        return `The parameter ${parameter} is given ${value.length} times; give it once.`;
      }
      const state = typeof value === "string" ? quote(value) : "missing";
      const range = `it must be a whole number from ${minimum} to ${maximum}, in decimal digits`;
      const advice = note ?? (allowed ? `it must be one of ${allowed.join(", ")}` : range);
      return `The parameter ${parameter} is ${state}; ${advice}.`;
    },
    example: { details: { parameter: "count", value: "99", minimum: 1, maximum: 10 } },
  }),
  TARGET_NOT_ALLOWED: kind({
    status: 400,
    meaning: "the operator does not allow probes to this target",
    details: () =>
      z.strictObject({
        target: asSent("The target"),
        ip: ipv6Text("Its address."),
        type: addressType(),
      }),
    message: ({ ip, type }, reason = `no IPv6 host has an address of type ${type}`) =>
      `${ip} cannot be probed: ${reason}; choose another target.`,
    example: { details: { target: "ff02::1", ip: "ff02::1", type: "Multicast" } },
  }),
  HTTPS_REQUIRED: kind({
    status: 400,
    meaning: "plain HTTP from another machine",
    details: () => z.strictObject({}),
    message: (_, proxy) =>
      proxy === undefined
        ? "This service requires HTTPS; repeat the request with https://, or if the service is yours, set SIXSCOPE_TLS_CERT or SIXSCOPE_PLAIN_HTTP_FROM."
        : `This service requires HTTPS, and does not trust the proxy ${proxy} that sent the request; if the service is yours, add the proxy to SIXSCOPE_TRUSTED_PROXIES.`,
    example: { details: {}, note: "127.0.0.1" },
  }),
  UNAUTHORIZED: kind({
    status: 401,
    meaning: "an endpoint that sends probes, without a valid key",
    details: () => z.strictObject({}),
    message: (_, problem = "This endpoint needs an API key; send it in the header X-API-Key") =>
      `${problem}.`,
    headers: ["WWW-Authenticate"],
    example: { details: {} },
  }),
  NOT_FOUND: kind({
    status: 404,
    meaning: "no such endpoint or method",
    details: () =>
      z.strictObject({
        method: z.string().describe("The request's method."),
        path: z.string().describe("The request's path."),
      }),
    message: ({ path }, problem = `${path} does not exist`) =>
      `${problem}; GET /api/v1/openapi.json describes every endpoint.`,
    headers: ["Allow"],
    example: { details: { method: "GET", path: "/api/v1/whois" } },
  }),
  HOSTNAME_NOT_FOUND: kind({
    status: 404,
    meaning: "the name does not exist",
    details: () => z.strictObject(query()),
    message({ hostname, resolver }, aliasOf) {
      const isAddress = tryParseIp(hostname) !== null;
      const name = `${isAddress ? "The reverse name of " : ""}${quote(hostname)}`;
      const source = `according to ${resolver} (NXDOMAIN)`;
      if (aliasOf !== undefined) {
        return `${name} is an alias of ${quote(aliasOf)}, which does not exist ${source}; its owner must correct the CNAME record.`;
      }
      const advice = isAddress ? "its owner can add a PTR record" : "check its spelling";
      return `${name} does not exist ${source}; ${advice}.`;
    },
    example: {
      details: {
        hostname: "missing.example",
        resolver: "resolver_a",
        question: askedFor("missing.example"),
        server: "[2001:db8::53]:53",
        transport: "udp",
        rcode: "NXDOMAIN",
        authenticated: false,
        extendedErrors: [],
        soa: EXAMPLE_SOA,
        attempts: [{ server: "[2001:db8::53]:53", transport: "udp", ms: 6, outcome: "NXDOMAIN" }],
      },
    },
  }),
  NO_IPV6_ADDRESS: kind({
    status: 404,
    meaning: "the target's name has no AAAA record",
    details: () => z.strictObject(query()),
    message: ({ hostname }) =>
      `${quote(hostname)} exists but has no AAAA record, so it cannot be reached over IPv6; choose another target.`,
    example: {
      details: {
        hostname: "ipv4only.example",
        resolver: "resolver_a",
        question: askedFor("ipv4only.example"),
        server: "[2001:db8::53]:53",
        transport: "udp",
        rcode: "NOERROR",
        authenticated: false,
        extendedErrors: [],
        soa: EXAMPLE_SOA,
        attempts: [{ server: "[2001:db8::53]:53", transport: "udp", ms: 6, outcome: "NOERROR" }],
      },
    },
  }),
  RATE_LIMITED: kind({
    status: 429,
    meaning: "the limit is used up; `Retry-After` says when to come back",
    details: () =>
      z.strictObject({
        limit: z.int().min(1).describe("Requests per window."),
        windowSeconds: z.int().min(1).describe("The length of a window in seconds."),
        retryAfterSeconds: retryAfterSeconds(),
      }),
    message: (details) =>
      `The limit of ${details.limit} requests in ${details.windowSeconds} seconds is used up; try again in ${details.retryAfterSeconds} seconds.`,
    headers: ["Retry-After"],
    example: { details: { limit: 100, windowSeconds: 60, retryAfterSeconds: 17 } },
  }),
  TOO_MANY_PROBES: kind({
    status: 429,
    meaning: "all probe slots are in use",
    details: () =>
      z.strictObject({
        limit: z.int().min(1).describe("Pings and traces that may run at once."),
        retryAfterSeconds: retryAfterSeconds(),
      }),
    message: (details) =>
      `All ${details.limit} probe slots are in use; try again in ${details.retryAfterSeconds} seconds.`,
    headers: ["Retry-After"],
    example: { details: { limit: 64, retryAfterSeconds: 2 } },
  }),
  RESOLVER_TIMEOUT: kind({
    status: 500,
    meaning: "the resolver did not answer in time",
    details: () => z.strictObject(query()),
    message: ({ hostname, resolver }) =>
      `${resolver} did not answer in time for ${quote(hostname)}; try again, or try another resolver.`,
    example: {
      details: {
        hostname: "www.example.com",
        resolver: "resolver_b",
        question: askedFor("www.example.com"),
        attempts: [
          { server: "[2001:db8::53]:53", transport: "udp", ms: 5000, outcome: "timeout" },
          { server: "192.0.2.53:53", transport: "udp", ms: 4000, outcome: "timeout" },
          { server: "[2001:db8::53]:53", transport: "udp", ms: 2500, outcome: "timeout" },
        ],
      },
    },
  }),
  RESOLVER_FAILURE: kind({
    status: 500,
    meaning: "the resolver refused or failed",
    details: () =>
      z.strictObject({
        ...query(),
        rcode: z
          .string()
          .describe(
            "The name of the response code, or `MALFORMED`, `CNAME_LOOP`, `UNREACHABLE`, `SHORTAGE`, `REFERRAL` or `TOO_LARGE`.",
          ),
      }),
    message({ hostname, resolver, rcode, extendedErrors = [], dnssec }, unreachable) {
      const name = quote(hostname);
      if (rcode === "SHORTAGE") {
        return `This service had no socket left (${unreachable}) to ask ${resolver} for ${name}; try again later, or tell its operator.`;
      }
      const reason = bogusReason(extendedErrors);
      if (reason !== undefined || dnssec?.verdict === "bogus") {
        const why = reason === undefined ? "" : ` (${reason.name})`;
        return `${resolver} says that the DNSSEC data for ${name} is bogus${why}; the owner of its zone must repair the signatures.`;
      }
      const [what, advice] = RESOLVER_FAILURES[rcode] ?? [`failed with ${rcode}`];
      const cause = unreachable ?? extendedErrors[0]?.name;
      const why = cause === undefined ? "" : ` (${cause})`;
      return `${resolver} ${what} for ${name}${why}; ${advice ?? "try again, or try another resolver"}.`;
    },
    example: {
      details: {
        hostname: "www.example.com",
        resolver: "resolver_a",
        question: askedFor("www.example.com"),
        server: "[2001:db8::53]:53",
        transport: "udp",
        rcode: "REFUSED",
        authenticated: false,
        extendedErrors: [{ code: 20, name: "Not Authoritative" }],
        attempts: [{ server: "[2001:db8::53]:53", transport: "udp", ms: 6, outcome: "REFUSED" }],
      },
    },
  }),
  KEYS_UNAVAILABLE: kind({
    status: 500,
    meaning:
      "an endpoint that sends probes, if the service has not been able to check its keys for a day",
    details: () => z.strictObject({}),
    message: () =>
      "This service cannot tell which API keys are valid, because it has not reached Valkey for a day; try again later, or tell its operator.",
    example: { details: {} },
  }),
  ICMP_UNAVAILABLE: kind({
    status: 500,
    meaning: "the service has no raw socket",
    details: () => z.strictObject({ reason: z.string().describe("The system call that failed.") }),
    message: ({ reason }) =>
      `This service has no raw socket (${reason}); the operator must ${remedyFor({ unavailable: reason })}.`,
    example: { details: { reason: "socket(AF_INET6, 3, 58): EPERM" } },
  }),
  NETWORK_UNREACHABLE: kind({
    status: 500,
    meaning: "the service's machine has no route to the target",
    details: () => z.strictObject({ target: asSent("The target"), ip: ipv6Text("Its address.") }),
    message: ({ ip }, errno) =>
      `This machine cannot send to ${ip} (${errno}); try again, or ask the operator to check its IPv6 routes and firewall.`,
    example: { details: { target: "2001:db8::1", ip: "2001:db8::1" }, note: "ENETUNREACH" },
  }),
  LOCATION_NOT_FOUND: kind({
    status: 404,
    meaning: "no agent at the location",
    details: () => z.strictObject({ location: locationName() }),
    message: ({ location }) =>
      location === "all"
        ? "No location can be asked now; leave out from, or ask the operator."
        : `No agent is at the location ${quote(location)} now; GET /api/v1/locations lists all locations.`,
    example: { details: { location: "ams" } },
  }),
  LOCATION_TIMEOUT: kind({
    status: 500,
    meaning: "the agent did not answer in time",
    details: () => z.strictObject({ location: locationName() }),
    message: ({ location }) =>
      `The agent at ${quote(location)} did not answer in time; try again, or another location.`,
    example: { details: { location: "ams" } },
  }),
  LOCATION_UNAVAILABLE: kind({
    status: 500,
    meaning: "the location cannot be used: no connection to NATS, or an agent of another version",
    details: () =>
      z.strictObject({ location: locationName(), reason: z.string().describe("Why.") }),
    message: ({ location, reason }) =>
      `The location ${quote(location)} cannot be used: ${printable(reason)}; try again later, or tell the operator.`,
    example: {
      details: { location: "ams", reason: "this service has no connection to NATS" },
    },
  }),
  INTERNAL_ERROR: kind({
    status: 500,
    meaning: "a fault of the service; the operator's log has it under `details.requestId`",
    details: () => z.strictObject({ requestId: z.string().describe("As in X-Request-Id.") }),
    message: () =>
      "The service failed unexpectedly; try again later, and if it happens again, send the operator this request id.",
    example: { details: { requestId: "0b8d8f2e-5c0c-4b53-9a53-2b7b0e6a4f10" } },
  }),
} as const;

export type ErrorCode = keyof typeof ERRORS;

/** The details of an error code. */
export type ErrorDetails<Code extends ErrorCode> = {
  [Each in Code]: ValueOf<ReturnType<(typeof ERRORS)[Each]["details"]>>;
}[Code];

/** An outcome that the client gets as an error response. */
export class ApiError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = "ApiError";
  readonly code: Code;
  readonly details: ErrorDetails<Code>;

  /** @param note what the message says beyond the details; see `ERRORS` */
  constructor(code: Code, details: ErrorDetails<Code>, note?: string) {
    const { message }: ErrorKind = ERRORS[code];
    super(message(details, note));
    this.code = code;
    this.details = details;
  }

  get status(): (typeof ERRORS)[Code]["status"] {
    return ERRORS[this.code].status;
  }

  /** The JSON of the response. */
  get body() {
    return { error: { code: this.code, message: this.message, details: this.details } };
  }
}

/** The error for a text that must be an IPv6 address and is not. */
export function invalidAddress(address: string): ApiError {
  const { reason, position } = readIpv6(address) as ParseFailure;
  return new ApiError("INVALID_ADDRESS", { address, reason, position });
}

/** The error while there is no connection to NATS. */
export function notConnected(location: string): ApiError {
  const reason = "this service has no connection to NATS";
  return new ApiError("LOCATION_UNAVAILABLE", { location, reason });
}

/** Ends the work for a client that has disconnected; no one reads the response. */
export function clientGone(): DOMException {
  return new DOMException("the client disconnected, or the service is stopping", "AbortError");
}
