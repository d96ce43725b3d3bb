/** The targets and ports of a command that works here. */
import { expect, test } from "bun:test";
import { configHere } from "../../src/cli/call-here.ts";
import { judgePolicy } from "../../src/tools/check/judge.ts";

const mayCheck = (ip: string, environment: NodeJS.ProcessEnv) =>
  judgePolicy(ip, { config: configHere(environment) }).finding === undefined;

test.each(["::1", "fe80::1", "fd00::1", "127.0.0.1", "10.0.0.1"])(
  "a user may check %s from here",
  (ip) => expect(mayCheck(ip, {})).toBe(true),
);

test.each(["fd00::1", "10.0.0.1"])("a user who chooses global targets may not check %s", (ip) => {
  expect(mayCheck(ip, { SIXSCOPE_TARGETS: "global" })).toBe(false);
});

test("a user may probe all ports from here", () => {
  expect(configHere({}).probePorts).toEqual([[1, 65_535]]);
});
