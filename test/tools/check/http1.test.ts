import { expect, test } from "bun:test";
import { headReader, MAX_HEAD_BYTES, MAX_LINE } from "../../../src/tools/check/http1.ts";

/** What a reader says at last, of bytes that come at once or one by one. */
function read(text: string, pieceBytes: number) {
  const take = headReader();
  for (let at = 0; at < text.length; at += pieceBytes) {
    const outcome = take(Buffer.from(text.slice(at, at + pieceBytes), "latin1"));
    if (outcome !== null) return outcome;
  }
  return null;
}

const head = (status: number, headers: Record<string, string> = {}) => ({
  status,
  headers: new Map(Object.entries(headers)),
  rest: "",
});

const PIECES = [1, 2, 7, MAX_HEAD_BYTES * 2];

test.each([
  ["a status", "HTTP/1.1 200 OK\r\n\r\n", head(200)],
  ["no reason", "HTTP/1.0 204\n\n", head(204)],
  ["a status of three zeros", "HTTP/1.1 000 None\r\n\r\n", head(0)],
  [
    "headers",
    "HTTP/1.1 200 OK\r\nServer: a\r\nX-Y:\t b : c \r\n\r\n",
    head(200, { server: "a", "x-y": "b : c" }),
  ],
  ["one header twice", "HTTP/1.1 200 OK\r\nA: b\r\na: c\r\n\r\n", head(200, { a: "b" })],
  ["an empty value", "HTTP/1.1 200 OK\r\nA:\r\n\r\n", head(200, { a: "" })],
  ["lines without a colon or a name", "HTTP/1.1 200 OK\r\nA\r\n:b\r\n\r\n", head(200)],
  ["bytes beyond ASCII", "HTTP/1.1 200 OK\r\nA: \xe4\r\n\r\n", head(200, { a: "\xe4" })],
  [
    "the longest line",
    `HTTP/1.1 200 OK\r\nA: ${"b".repeat(MAX_LINE - 3)}\r\n\r\n`,
    head(200, { a: "b".repeat(MAX_LINE - 3) }),
  ],
  [
    "a line that is longer, and one behind it",
    `HTTP/1.1 200 OK\r\nA: ${"b".repeat(MAX_LINE)}\r\nC: d\r\n\r\n`,
    head(200, { c: "d" }),
  ],
  [
    "responses before the last",
    `HTTP/1.1 103 E\r\nA: b\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 301 M\r\nC: d\r\n\r\n`,
    head(301, { c: "d" }),
  ],
  ["another protocol from here on", "HTTP/1.1 101 S\r\n\r\n", head(101)],
  ["a head that has no end yet", "HTTP/1.1 200 OK\r\nA: b\r\n", null],
  ["a line that has no end yet", "HTTP/1.1 200", null],
  ["nothing", "", null],
] as const)("reads %s", (_, text, expected) => {
  for (const bytes of PIECES) expect(read(text, bytes)).toEqual(expected);
});

test("keeps the beginning of the body that comes with the end of the head", () => {
  const text = "HTTP/1.1 200 OK\r\n\r\nA: b\r\n\r\nc";
  expect(read(text, MAX_HEAD_BYTES)).toEqual({ ...head(200), rest: "A: b\r\n\r\nc" });
  expect(read(text, 20)).toEqual({ ...head(200), rest: "A" });
});

test.each([
  ["another protocol", "SSH-2.0-x\r\n", 1, "S"],
  ["another protocol at once", "SSH-2.0-x\r\n", 99, "SSH-2.0-x\r\n"],
  ["another version", "HTTP/2 200\r\n\r\n", 1, "HTTP/2"],
  ["no status", "HTTP/1.1 OK\r\n\r\n", 99, "HTTP/1.1 OK\r\n\r\n"],
  ["a status of ten digits", "HTTP/1.1 1234567890\n\n", 99, "HTTP/1.1 1234567890\n\n"],
  ["a second response that is none", "HTTP/1.1 100\n\nX\n", 99, "HTTP/1.1 100\n\nX\n"],
  [
    "a head without an end",
    `HTTP/1.1 200\n${"a".repeat(MAX_HEAD_BYTES)}`,
    1000,
    /^HTTP.{9}a{187}$/s,
  ],
  [
    "endless responses before the last",
    "HTTP/1.1 100 C\r\n\r\n".repeat(4000),
    1000,
    /^HTTP\/1.1 100 C\r\n\r\nHTTP/,
  ],
] as const)("shows the beginning of %s", (_, text, bytes, expected) => {
  expect(read(text, bytes)).toEqual(expect.stringMatching(expected));
});
