/** Every error code of the interface and the status that goes with it. */
export const ERROR_STATUS = {
  INVALID_ADDRESS: 400,
  INVALID_HOSTNAME: 400,
  INVALID_PARAMETER: 400,
  TARGET_NOT_ALLOWED: 400,
  HTTPS_REQUIRED: 400,
  UNAUTHORIZED: 401,
  NOT_FOUND: 404,
  HOSTNAME_NOT_FOUND: 404,
  NO_IPV6_ADDRESS: 404,
  RATE_LIMITED: 429,
  TOO_MANY_PROBES: 429,
  RESOLVER_TIMEOUT: 500,
  RESOLVER_FAILURE: 500,
  ICMP_UNAVAILABLE: 500,
  NETWORK_UNREACHABLE: 500,
  INTERNAL_ERROR: 500,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

export type ErrorDetails = Readonly<Record<string, unknown>>;

/** The body of every error response. */
export interface ErrorBody {
  readonly error: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly details: ErrorDetails;
  };
}

/** An outcome that the caller gets as an error response; thrown by handlers, written in one place. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  /** Response headers that belong to this error, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    message: string,
    details: ErrorDetails = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.code = code;
    this.details = details;
    this.headers = headers;
  }

  get status(): (typeof ERROR_STATUS)[ErrorCode] {
    return ERROR_STATUS[this.code];
  }

  get body(): ErrorBody {
    return { error: { code: this.code, message: this.message, details: this.details } };
  }
}

/** More characters of an input than this do not help anybody to recognise it in a message. */
const QUOTED_CHARACTERS = 80;

/** An input as a message shows it: in quotes, control characters escaped, cut where it is long. */
export function quote(input: string): string {
  return JSON.stringify(
    input.length > QUOTED_CHARACTERS ? `${input.slice(0, QUOTED_CHARACTERS)}…` : input,
  );
}

/** A text that should be an IPv6 address and is none. */
export function invalidAddress(input: string): ApiError {
  return new ApiError(
    "INVALID_ADDRESS",
    `${quote(input)} is not a valid IPv6 address; write it like 2001:db8::1, without zone, prefix length or brackets.`,
    { address: input },
  );
}

/** A name that breaks the rules of DNS names. */
export function invalidHostname(hostname: string, reason: string): ApiError {
  return new ApiError("INVALID_HOSTNAME", `${quote(hostname)} is no host name: ${reason}.`, {
    hostname,
    reason,
  });
}

/** Ends the work for a client that nobody is waiting for any more; no response of it is ever read. */
export function clientGone(): DOMException {
  return new DOMException("the client went away, or the service stops", "AbortError");
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
export function tooMany(
  code: "RATE_LIMITED" | "TOO_MANY_PROBES",
  message: string,
  details: ErrorDetails & { readonly retryAfterSeconds: number },
): ApiError {
  return new ApiError(code, message, details, { "Retry-After": String(details.retryAfterSeconds) });
}
