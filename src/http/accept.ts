import { parseAccept } from "hono/utils/accept";

/** Whether a request wants one media type rather than another; RFC 9110 section 12.5.1. Who takes both alike gets the other. */
export function prefers(accept: string | null, type: string, other: string): boolean {
  if (accept === null) return false;
  const ranges = parseAccept(accept.toLowerCase());
  const quality = (range: string) => ranges.find(({ type }) => type === range)?.q;
  const wanted = quality(type) ?? 0;
  const otherwise = quality(other);
  if (otherwise !== undefined) return wanted > otherwise;
  const anyOfKind = quality(other.replace(/\/.*/, "/*"));
  return wanted > 0 && wanted >= (anyOfKind ?? quality("*/*") ?? 0);
}
