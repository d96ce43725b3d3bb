import type { ParseFailure } from "../addr/ipv4.ts";
import { readIpv6 } from "../addr/ipv6.ts";
import { quote } from "../util/text.ts";
import { ERRORS, type ErrorCode, type ErrorDetails } from "./error-table.ts";

/** The body of every error response. */
export interface ErrorBody<Code extends ErrorCode = ErrorCode> {
  readonly error: {
    readonly code: Code;
    readonly message: string;
    readonly details: ErrorDetails<Code>;
  };
}

/** An outcome that the caller gets as an error response; thrown by handlers, written in one place. */
export class ApiError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = "ApiError";
  readonly code: Code;
  readonly details: ErrorDetails<Code>;
  /** Response headers that belong to this error, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: Code,
    message: string,
    details: ErrorDetails<Code>,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.code = code;
    this.details = details;
    this.headers = headers;
  }

  get status(): (typeof ERRORS)[Code]["status"] {
    return ERRORS[this.code].status;
  }

  get body(): ErrorBody<Code> {
    return { error: { code: this.code, message: this.message, details: this.details } };
  }
}

/** A text that must be an IPv6 address and is not. */
export function invalidAddress(input: string): ApiError {
  const { reason, position } = readIpv6(input) as ParseFailure;
  return new ApiError(
    "INVALID_ADDRESS",
    `${quote(input)} is not a valid IPv6 address: ${reason} (at character ${position}); write it like 2001:db8::1.`,
    { address: input, reason, position },
  );
}

/** A text that cannot be asked for in the DNS: `reason` ends a sentence that names it. */
export function refusedHostname(
  hostname: string,
  {
    code,
    reason,
  }: { readonly code: "INVALID_HOSTNAME" | "INVALID_ADDRESS"; readonly reason: string },
): ApiError {
  return code === "INVALID_ADDRESS"
    ? new ApiError(
        code,
        `${quote(hostname)} cannot be looked up, for ${reason}; write it like 2001:db8::1 or 192.0.2.1.`,
        { address: hostname },
      )
    : new ApiError(
        code,
        `${quote(hostname)} is no host name, for ${reason}; write it like www.example.com.`,
        { hostname, reason },
      );
}

/** Ends the work for a client that nobody is waiting for any more; no response of it is ever read. */
export function clientGone(): DOMException {
  return new DOMException("the client went away, or the service stops", "AbortError");
}

/** A set-up that the operator has to put right: the log says what, and the caller gets INTERNAL_ERROR. */
export class OperatorError extends Error {
  override readonly name = "OperatorError";
}

/** A fault of ours: nothing about it reaches the caller but the id under which the log has it. */
export function internalError(requestId: string): ApiError {
  return new ApiError(
    "INTERNAL_ERROR",
    "The service failed unexpectedly; try again later, and give the operator this request id if it goes on.",
    { requestId },
  );
}

/** A 429: `retryAfterSeconds` stands in the details and in `Retry-After`. */
export function tooMany<Code extends "RATE_LIMITED" | "TOO_MANY_PROBES">(
  code: Code,
  message: string,
  details: ErrorDetails<Code>,
): ApiError {
  return new ApiError(code, message, details, { "Retry-After": String(details.retryAfterSeconds) });
}
