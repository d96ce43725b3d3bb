import { test } from "bun:test";
import fc from "fast-check";
import { PROPERTIES } from "./properties.ts";

test.each(PROPERTIES)("%s", (_name, property) => {
  fc.assert(property, { numRuns: 1000 });
});
