import { expect, test } from "bun:test";
import { interfaceIndex, interfaceName } from "../../../src/icmp/socket/interfaces.ts";

test.each([
  ["loopback", "lo", 1],
  ["an interface that is not there", "none0", null],
  ["an index in place of a name", "1", 1],
  ["an index of no interface", "999999999", null],
  ["an index with a zero in front", "01", null],
  ["no index", "0", null],
  ["no name", "", null],
  ["a zero byte behind a name", "lo\0x", null],
  ["a name as long as none can be", "l".repeat(16), null],
  ["a very long name", "l".repeat(100_000), null],
])("the index of an interface: %s", (_name, name, index) => {
  expect(interfaceIndex(name)).toBe(index);
});

test("the name of an interface", () => {
  expect(interfaceName(1)).toBe("lo");
  expect(interfaceName(999_999_999)).toBeNull();
});
