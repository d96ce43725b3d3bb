import { z } from "zod";
import type { ErrorHeader } from "./response-headers.ts";
import {
  addressType,
  extendedError,
  ipv6Text,
  once,
  resolverName,
  type ValueOf,
} from "./schemas.ts";

/** What the interface says about one error code. */
export interface ErrorKind<Details extends z.ZodType = z.ZodType> {
  readonly status: 400 | 401 | 404 | 429 | 500;
  /** When it is given. */
  readonly meaning: string;
  /** Made when the interface document is, so that a start does not wait for it. */
  readonly details: () => Details;
  /** Headers that come with it, always unless their description says otherwise. */
  readonly headers?: readonly ErrorHeader[];
  readonly example: { readonly message: string; readonly details: NoInfer<ValueOf<Details>> };
}

function kind<Details extends z.ZodType>(row: ErrorKind<Details>): ErrorKind<Details> {
  return row;
}

const retryAfterSeconds = () => z.int().min(1).describe("Seconds, as in Retry-After.");

const askedResolver = () => ({
  hostname: z.string().describe("The name as it was sent."),
  resolver: resolverName(),
});

/** Every error code of the interface: its status, when it is given, and what its details hold. */
export const ERRORS = {
  INVALID_ADDRESS: kind({
    status: 400,
    meaning: "an address, or a target with a `:` or of IPv4 shape, is no valid IPv6 address",
    details: () =>
      z.strictObject({
        address: z.string().describe("The text as it was sent."),
        reason: z.string().exactOptional().describe("Why it is not an IPv6 address."),
        position: z
          .int()
          .min(1)
          .exactOptional()
          .describe("The character at which the reason applies, from 1."),
      }),
    example: {
      message:
        '"2001:db8::g" is not a valid IPv6 address: neither a hex digit nor a colon (at character 11); write it like 2001:db8::1.',
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
        hostname: z.string().describe("The name as it was sent."),
        reason: z.string().describe("Which rule it breaks."),
      }),
    example: {
      message:
        '"a..example" is no host name, for it has an empty label; write it like www.example.com.',
      details: { hostname: "a..example", reason: "it has an empty label" },
    },
  }),
  INVALID_PARAMETER: kind({
    status: 400,
    meaning: "a parameter is missing, repeated, malformed, out of range or not in its list",
    details: () =>
      z.strictObject({
        parameter: z.string().describe("Its name; `Host` where that header is malformed."),
        value: z
          .union([z.string(), z.array(z.string()), z.null()])
          .describe("As it was sent: a list where it was repeated, null where it is missing."),
        allowed: z.array(z.string()).exactOptional().describe("The values of its list."),
        minimum: z.int().exactOptional().describe("The least value."),
        maximum: z.int().exactOptional().describe("The greatest value."),
      }),
    example: {
      message:
        'The parameter count is "99"; it must be a whole number from 1 to 10, in decimal digits.',
      details: { parameter: "count", value: "99", minimum: 1, maximum: 10 },
    },
  }),
  TARGET_NOT_ALLOWED: kind({
    status: 400,
    meaning: "the operator does not let this target be probed",
    details: () =>
      z.strictObject({
        target: z.string().describe("The target as it was sent."),
        ip: ipv6Text("Its address."),
        type: addressType(),
      }),
    example: {
      message:
        "ff02::1 cannot be probed: no IPv6 host has an address of type Multicast; choose another target.",
      details: { target: "ff02::1", ip: "ff02::1", type: "Multicast" },
    },
  }),
  HTTPS_REQUIRED: kind({
    status: 400,
    meaning: "plain HTTP from another machine",
    details: () => z.strictObject({}),
    example: {
      message: "This service answers over HTTPS only; repeat the request with https://.",
      details: {},
    },
  }),
  UNAUTHORIZED: kind({
    status: 401,
    meaning: "ping or traceroute without a valid key",
    details: () => z.strictObject({}),
    headers: ["WWW-Authenticate"],
    example: {
      message: "This endpoint needs an API key; send it in the header X-API-Key.",
      details: {},
    },
  }),
  NOT_FOUND: kind({
    status: 404,
    meaning: "no such endpoint or method",
    details: () =>
      z.strictObject({
        method: z.string().describe("The request's method."),
        path: z.string().describe("The request's path."),
      }),
    headers: ["Allow"],
    example: {
      message:
        "There is nothing at /api/v1/whois; GET /api/v1/openapi.json describes every endpoint.",
      details: { method: "GET", path: "/api/v1/whois" },
    },
  }),
  HOSTNAME_NOT_FOUND: kind({
    status: 404,
    meaning: "the name does not exist",
    details: () => z.strictObject(askedResolver()),
    example: {
      message: '"nobody.example" does not exist, says resolver_a (NXDOMAIN); check its spelling.',
      details: { hostname: "nobody.example", resolver: "resolver_a" },
    },
  }),
  NO_IPV6_ADDRESS: kind({
    status: 404,
    meaning: "the target's name has no AAAA record",
    details: () => z.strictObject(askedResolver()),
    example: {
      message:
        '"ipv4only.example" exists and has no AAAA record, so it cannot be reached over IPv6; choose a target that has one.',
      details: { hostname: "ipv4only.example", resolver: "resolver_a" },
    },
  }),
  RATE_LIMITED: kind({
    status: 429,
    meaning: "the limit is used up; `Retry-After` says when to come back",
    details: () =>
      z.strictObject({
        limit: z.int().min(1).describe("Requests that the bucket holds for a window."),
        windowSeconds: z.int().min(1).describe("Seconds from the window's beginning to its end."),
        retryAfterSeconds: retryAfterSeconds(),
      }),
    headers: ["Retry-After"],
    example: {
      message: "The limit of 100 requests in 60 seconds is used up; try again in 17 seconds.",
      details: { limit: 100, windowSeconds: 60, retryAfterSeconds: 17 },
    },
  }),
  TOO_MANY_PROBES: kind({
    status: 429,
    meaning: "all places for pings and traces are taken",
    details: () =>
      z.strictObject({
        limit: z.int().min(1).describe("Pings and traces that may run at once."),
        retryAfterSeconds: retryAfterSeconds(),
      }),
    headers: ["Retry-After"],
    example: {
      message: "The places for pings and traces (64) are all taken; try again in 2 seconds.",
      details: { limit: 64, retryAfterSeconds: 2 },
    },
  }),
  RESOLVER_TIMEOUT: kind({
    status: 500,
    meaning: "the resolver did not answer in time",
    details: () => z.strictObject(askedResolver()),
    example: {
      message:
        'resolver_b did not answer in time for "www.example.com"; try again or another resolver.',
      details: { hostname: "www.example.com", resolver: "resolver_b" },
    },
  }),
  RESOLVER_FAILURE: kind({
    status: 500,
    meaning: "the resolver refused or failed",
    details: () =>
      z.strictObject({
        ...askedResolver(),
        rcode: z
          .string()
          .describe(
            "The response code's name; without a code `MALFORMED`, `UNREACHABLE`, `REFERRAL` or `TOO_LARGE`.",
          ),
        extendedErrors: z
          .array(extendedError())
          .exactOptional()
          .describe("What the resolver says about the reason; absent where it says nothing."),
      }),
    example: {
      message:
        'resolver_a failed with REFUSED for "www.example.com"; try again or another resolver.',
      details: {
        hostname: "www.example.com",
        resolver: "resolver_a",
        rcode: "REFUSED",
        extendedErrors: [{ code: 20, name: "Not Authoritative" }],
      },
    },
  }),
  ICMP_UNAVAILABLE: kind({
    status: 500,
    meaning: "the service has no raw socket",
    details: () => z.strictObject({ reason: z.string().describe("The system call that failed.") }),
    example: {
      message:
        "This service has no raw socket (socket(AF_INET6, 3, 58): EPERM); the operator must grant CAP_NET_RAW.",
      details: { reason: "socket(AF_INET6, 3, 58): EPERM" },
    },
  }),
  NETWORK_UNREACHABLE: kind({
    status: 500,
    meaning: "the service's machine has no route to the target",
    details: () =>
      z.strictObject({
        target: z.string().describe("The target as it was sent."),
        ip: ipv6Text("Its address."),
      }),
    example: {
      message:
        "This machine cannot send to 2001:db8::1 (ENETUNREACH); the operator must check its IPv6 routes and firewall.",
      details: { target: "2001:db8::1", ip: "2001:db8::1" },
    },
  }),
  INTERNAL_ERROR: kind({
    status: 500,
    meaning: "our fault; the log has it under `details.requestId`",
    details: () => z.strictObject({ requestId: z.string().describe("As in X-Request-Id.") }),
    example: {
      message:
        "The service failed unexpectedly; try again later, and give the operator this request id if it goes on.",
      details: { requestId: "0b8d8f2e-5c0c-4b53-9a53-2b7b0e6a4f10" },
    },
  }),
} as const;

export type ErrorCode = keyof typeof ERRORS;

/** What the details of an error code hold. */
export type ErrorDetails<Code extends ErrorCode> = {
  [Each in Code]: ValueOf<ReturnType<(typeof ERRORS)[Each]["details"]>>;
}[Code];

/** What can befall every request, whatever its endpoint. */
export const COMMON_ERRORS: readonly ErrorCode[] = [
  "INVALID_PARAMETER",
  "HTTPS_REQUIRED",
  "RATE_LIMITED",
  "INTERNAL_ERROR",
];

/** The schema of each error's body. */
export const errorSchemas = once(
  () =>
    Object.fromEntries<z.ZodType>(
      Object.entries<ErrorKind>(ERRORS).map(([code, { meaning, details }]) => [
        code,
        z
          .strictObject({
            error: z.strictObject({
              code: z.literal(code),
              message: z.string().describe("What was wrong, and what to do next; one sentence."),
              details: details(),
            }),
          })
          .meta({ id: pascalCase(code), description: meaning }),
      ]),
    ) as Readonly<Record<ErrorCode, z.ZodType>>,
);

/** `InvalidAddress` for INVALID_ADDRESS. */
function pascalCase(code: string): string {
  return code.toLowerCase().replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
}
