import { describe, expect, test } from "bun:test";
import { ByteReader, FormatError } from "../../src/util/bytes.ts";

const BYTES = Uint8Array.of(0x01, 0xff, 0xfe, 0x80, 0x00, 0x00, 0x01);

describe("ByteReader", () => {
  test("reads unsigned integers, most significant byte first", () => {
    const reader = new ByteReader(BYTES);
    expect([reader.uint8(), reader.uint16(), reader.uint32()]).toEqual([1, 0xfffe, 0x80000001]);
    expect([reader.offset, reader.remaining]).toEqual([7, 0]);
  });

  test("returns a view that shares memory", () => {
    const taken = new ByteReader(BYTES, 1).take(2);
    expect(taken).toEqual(Uint8Array.of(0xff, 0xfe));
    expect(taken.buffer).toBe(BYTES.buffer);
  });

  test.each<[string, (reader: ByteReader) => unknown]>([
    ["uint8", (reader) => reader.uint8()],
    ["uint16", (reader) => reader.uint16()],
    ["uint32", (reader) => reader.uint32()],
    ["take", (reader) => reader.take(1)],
    ["take a negative count", (reader) => reader.take(-1)],
  ])("%s stops at the end", (_, read) => {
    const reader = new ByteReader(BYTES, 3, 3);
    expect(() => read(reader)).toThrow(FormatError);
    expect(reader.offset).toBe(3);
  });

  test.each([
    [-1, 7],
    [0, 8],
    [5, 4],
  ])("rejects the range %d to %d", (offset, end) => {
    expect(() => new ByteReader(BYTES, offset, end)).toThrow(FormatError);
  });
});
