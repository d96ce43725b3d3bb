import { parseAccept } from "hono/utils/accept";
import type { ErrorCode } from "../api/errors.ts";
import type { KeyRecord } from "../keys/key-file.ts";
import type { Caller } from "./client-address.ts";

/** A request before it is routed. */
export interface RequestInfo {
  readonly request: Request;
  /** The time of its arrival, by `performance.now()`. */
  readonly startMs: number;
  readonly id: string;
  readonly caller: Caller;
  /** The valid API key of the request, or null. */
  readonly key: KeyRecord | null;
  /** Headers of the response beside the constant ones, whatever its status. */
  readonly headers: Readonly<Record<string, string>>;
  /** Keeps the connection open for a handler that may be silent for this time. */
  readonly allowSeconds: (seconds: number) => void;
  /** True if it does not count towards the client's limit: plain HTTP, a preflight, or over the limit. */
  readonly isFree: boolean;
  /** True if it is for the page or one of its files, not for the API. */
  readonly isPage: boolean;
  /** The pattern of the path; null if the path does not exist. */
  readonly route: string | null;
  /** The code of the response if it is an error. */
  code?: ErrorCode;
  /** The target, its address and the places asked, if the operator wants them in the log. */
  subject?: Record<string, string | undefined>;
  /** The status of a response with events, at its end. */
  ended?: Promise<number>;
}

/** True if a client prefers one media type, or one encoding, to another; false if it has no preference; RFC 9110 section 12.5. */
export function prefers(accept: string | null, type: string, other: string): boolean {
  const ranges = parseAccept(accept?.toLowerCase() ?? "");
  const quality = (range: string) => ranges.find(({ type }) => type === range)?.q;
  const [wanted = 0, named] = [quality(type), quality(other)];
  const unnamed = quality(other.replace(/\/.*/, "/*")) ?? quality("*/*") ?? 0;
  return named === undefined ? wanted > 0 && wanted >= unnamed : wanted > named;
}

/** True if the list in `If-None-Match` has a weak ETag, so that the client has the content; RFC 9110 section 13.1.2. */
export function hasAlready({ headers }: Request, etag: string): boolean {
  const etags = headers.get("if-none-match")?.split(",") ?? [];
  return etags.some((each) => each.trim().replace(/^(?!W\/)/, "W/") === etag);
}
