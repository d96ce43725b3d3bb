import { expect, test } from "bun:test";
import { frameMessage, MessageStream } from "../../src/dns/message-stream.ts";

const message = Uint8Array.from({ length: 60_000 }, (_, at) => at);

/** What comes out when the bytes arrive in pieces of this length. */
function inPieces(bytes: Uint8Array, length: number): Uint8Array | null {
  const stream = new MessageStream();
  let whole: Uint8Array | null = null;
  for (let at = 0; at < bytes.length && whole === null; at += length) {
    whole = stream.add(bytes.subarray(at, at + length));
  }
  return whole;
}

test.each([1, 2, 3, 1460, 60_002, 100_000])("a message in pieces of %d bytes", (length) => {
  expect(inPieces(frameMessage(message), length)).toEqual(message);
});

test("the length stands before the message", () => {
  expect(frameMessage(message).subarray(0, 3)).toEqual(Uint8Array.of(0xea, 0x60, 0));
});

test("what comes behind the message is ignored", () => {
  const two = Uint8Array.of(0, 1, 7, 0, 1, 8);
  expect(inPieces(two, 6)).toEqual(Uint8Array.of(7));
});

test("nothing before the last byte", () => {
  const framed = frameMessage(message);
  expect(inPieces(framed.subarray(0, -1), 999)).toBeNull();
  expect(inPieces(framed.subarray(0, 1), 1)).toBeNull();
});

test("an empty message is a message", () => {
  expect(inPieces(Uint8Array.of(0, 0), 2)).toEqual(new Uint8Array(0));
});
