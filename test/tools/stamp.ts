/** The details that every document of a measurement has. */
import { expect } from "bun:test";
import { VERSION } from "../../src/util/version.ts";

export const STAMP = {
  startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
  version: VERSION,
};
