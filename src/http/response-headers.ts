import { z } from "zod";

/** What the interface document says about a response header. */
export interface ResponseHeader {
  readonly description: string;
  /** Whether it is there wherever it is described. */
  readonly required: boolean;
  readonly schema: () => z.ZodType;
  /** Where a header always has the same value: that one. */
  readonly example: string | number;
}

const text = () => z.string();
const count = () => z.int().min(0);

/** Headers that any answer can have. */
export const COMMON_HEADERS = {
  "X-RateLimit-Limit": {
    description: "Requests that your bucket holds for a window of 60 seconds.",
    required: true,
    schema: count,
    example: 100,
  },
  "X-RateLimit-Remaining": {
    description: "Requests left in the window.",
    required: true,
    schema: count,
    example: 99,
  },
  "X-RateLimit-Reset": {
    description: "The Unix second in which the window ends and the bucket is full again.",
    required: true,
    schema: count,
    example: 1_767_225_600,
  },
  "X-Request-Id": {
    description: "The name of this request in the operator's log.",
    required: true,
    schema: text,
    example: "0b8d8f2e-5c0c-4b53-9a53-2b7b0e6a4f10",
  },
  "Access-Control-Allow-Origin": {
    description: "Pages of every origin may read the answer.",
    required: true,
    schema: () => z.literal("*"),
    example: "*",
  },
  "Access-Control-Expose-Headers": {
    description: "Headers that a page of another origin may read.",
    required: true,
    schema: text,
    example:
      "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id, X-Content-Type-Options, Retry-After",
  },
  "Cache-Control": {
    description: "No answer may be kept.",
    required: true,
    schema: () => z.literal("no-store"),
    example: "no-store",
  },
  "X-Content-Type-Options": {
    description: "An answer is JSON, whatever it looks like.",
    required: true,
    schema: () => z.literal("nosniff"),
    example: "nosniff",
  },
  "Strict-Transport-Security": {
    description: "HTTPS alone for a year; absent where a proxy in front speaks it.",
    required: false,
    schema: text,
    example: "max-age=31536000",
  },
} as const satisfies Record<string, ResponseHeader>;

/** Headers that come with certain errors. */
export const ERROR_HEADERS = {
  "Retry-After": {
    description: "Seconds after which it is worth trying again.",
    required: true,
    schema: () => z.int().min(1),
    example: 17,
  },
  "WWW-Authenticate": {
    description: "The scheme and header that a key is sent in.",
    required: true,
    schema: text,
    example: 'ApiKey realm="sixscope", header="X-API-Key"',
  },
  Allow: {
    description: "The methods of the path; absent where there is nothing at the path.",
    required: false,
    schema: text,
    example: "GET, HEAD",
  },
} as const satisfies Record<string, ResponseHeader>;

/** The name of a header that comes with certain errors. */
export type ErrorHeader = keyof typeof ERROR_HEADERS;
