import { expect, test } from "bun:test";
import { FormatError } from "../../src/util/bytes.ts";
import { ByteWriter } from "./byte-writer.ts";

const BYTES = Uint8Array.of(0x01, 0xff, 0xfe, 0x80, 0x00, 0x00, 0x01);

test("writes what a reader reads", () => {
  const writer = new ByteWriter(7).uint8(1).uint16(0xfffe).uint32(0x80000001);
  expect(writer.finish()).toEqual(BYTES);
  expect(writer.length).toBe(7);
});

test("returns a copy that later writes do not change", () => {
  const writer = new ByteWriter(7).put(Uint8Array.of(1, 2));
  const early = writer.finish();
  writer.put(Uint8Array.of(3));
  expect([early, writer.finish()]).toEqual([Uint8Array.of(1, 2), Uint8Array.of(1, 2, 3)]);
});

test.each<[string, (writer: ByteWriter) => unknown]>([
  ["uint8", (writer) => writer.uint8(1)],
  ["uint16", (writer) => writer.uint16(1)],
  ["uint32", (writer) => writer.uint32(1)],
  ["put", (writer) => writer.put(BYTES)],
])("%s stops at the limit", (_, write) => {
  expect(() => write(new ByteWriter(0))).toThrow(FormatError);
});
