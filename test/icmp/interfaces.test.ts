import { expect, test } from "bun:test";
import { interfaceIndex } from "../../src/icmp/socket.ts";

test.each([
  ["loopback", "lo", 1],
  ["an interface that is not there", "none0", null],
  ["an index in place of a name", "1", null],
  ["no name", "", null],
  ["a zero byte behind a name", "lo\0x", null],
  ["a name as long as none can be", "l".repeat(16), null],
  ["a very long name", "l".repeat(100_000), null],
])("the index of an interface: %s", (_name, name, index) => {
  expect(interfaceIndex(name)).toBe(index);
});
