/** Bytes of a response that are read for its head; some servers never end it. */
export const MAX_HEAD_BYTES = 65_536;

/** Characters of a header; a longer one, which most servers refuse themselves, is left out. */
export const MAX_LINE = 8192;

/** Characters shown of a response that has no head. */
const MAX_SHOWN = 200;

/** CR and LF behind a chunk. */
const LINE_END_BYTES = 2;

const BEGINNING = "HTTP/1.";
const STATUS_LINE = /^HTTP\/1\.\d (\d{1,9})\b/;

/** The head of an HTTP/1 response; RFC 9112. */
export interface Head {
  readonly status: number;
  /** The first value of each header by its name in lower case; each byte is a character. */
  readonly headers: ReadonlyMap<string, string>;
  /** The beginning of the body, which came with the end of the head. */
  readonly rest: string;
}

/** Responses before the last, such as 103 (Early Hints); 101 is a last one. RFC 9110 section 15.2. */
const isInterim = (status: number) => status >= 100 && status < 200 && status !== 101;

/** Adds the header in a line, if it is the first with its name; RFC 9110 section 5.1. */
function addHeader(headers: Map<string, string>, line: string): void {
  const colon = line.indexOf(":");
  const name = line.slice(0, colon).toLowerCase();
  if (colon > 0 && !headers.has(name)) headers.set(name, line.slice(colon + 1).trim());
}

/**
 * Makes a reader for the pieces of one HTTP/1 response, in time that is linear in their bytes. It returns null until
 * the head is complete, and then the head. If the response has no head, it returns the beginning as text.
 */
export function headReader(): (piece: Buffer) => Head | string | null {
  let [beginning, line, leftBytes] = ["", "", MAX_HEAD_BYTES];
  let head: { readonly status: number; readonly headers: Map<string, string> } | null = null;
  return (piece) => {
    const text = piece.toString("latin1", 0, leftBytes);
    leftBytes -= piece.length;
    if (beginning.length < MAX_SHOWN) beginning = (beginning + text).slice(0, MAX_SHOWN);
    if (!BEGINNING.startsWith(beginning.slice(0, BEGINNING.length))) return beginning;
    const lines = text.split("\n");
    const rest = lines.pop() ?? "";
    for (const [at, end] of lines.entries()) {
      const whole = (line + end).replace(/\r$/, "");
      line = "";
      if (head === null) {
        const status = Number(STATUS_LINE.exec(whole)?.[1]);
        if (Number.isNaN(status)) return beginning;
        head = { status, headers: new Map() };
      } else if (whole === "") {
        if (!isInterim(head.status)) {
          const taken = lines.slice(0, at + 1).reduce((bytes, { length }) => bytes + length + 1, 0);
          return { ...head, rest: piece.toString("latin1", taken) };
        }
        head = null;
      } else if (whole.length <= MAX_LINE) addHeader(head.headers, whole);
    }
    // The rest of a line that is too long is not kept.
    if (line.length <= MAX_LINE) line += rest;
    return leftBytes < 0 ? beginning : null;
  };
}

/** Makes a counter of an HTTP/1 body. It returns the bytes of data so far, and whether the last chunk has come; RFC 9112 section 7.1. */
export function bodyCounter(hasChunks: boolean) {
  let [bytes, line, isLast, isOver] = [0, "", false, false];
  /** Bytes left of the chunk and the line end behind it. */
  let leftBytes = hasChunks ? 0 : Infinity;
  return (piece: Buffer) => {
    let text = piece.toString("latin1");
    while (text !== "" && !isOver) {
      if (leftBytes > 0) {
        bytes += Math.max(0, Math.min(text.length, leftBytes - LINE_END_BYTES));
        [text, leftBytes] = [text.slice(leftBytes), Math.max(0, leftBytes - text.length)];
        continue;
      }
      const end = text.indexOf("\n");
      line = (line + (end < 0 ? text : text.slice(0, end))).slice(0, MAX_LINE);
      text = end < 0 ? "" : text.slice(end + 1);
      if (end < 0) continue;
      const size = Number.parseInt(line, 16);
      // Behind the last chunk are trailers, and an empty line.
      if (isLast) isOver = line.trim() === "";
      else if (size > 0) leftBytes = size + LINE_END_BYTES;
      else isLast = size === 0;
      line = "";
    }
    return { bytes, isOver };
  };
}
