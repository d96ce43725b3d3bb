/** Who waits longest, once a minute, in the log and in the metrics. */
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { Gate } from "../../src/gate/gate.ts";
import type { Keyring } from "../../src/keys/keyring.ts";
import { reportWaiting } from "../../src/server/waiting.ts";
import { createLog } from "../../src/util/log.ts";

const KEYS = { records: () => [{ sha256: "ab12", name: "office" }] } as unknown as Keyring;

beforeEach(() => jest.useFakeTimers());

afterEach(() => jest.useRealTimers());

function start(names: boolean) {
  const gate = new Gate();
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const log = createLog({ level: "info", format: "text", priorities: false, write });
  return { gate, lines, longest: reportWaiting(gate, KEYS, names, log) };
}

test("the client that waited longest is named, by its key or address, for a minute", () => {
  const { gate, lines, longest } = start(true);
  gate.waited("2001:db8::1", 2500);
  gate.waited("ab12", 2000);
  gate.waited("ab12", 1234);
  expect([longest(), lines]).toEqual([null, []]);
  jest.advanceTimersByTime(60_000);
  expect(longest()).toEqual({ client: "office", seconds: 3.2 });
  gate.waited("2001:db8::1", 1000);
  jest.advanceTimersByTime(60_000);
  expect(longest()).toEqual({ client: "2001:db8::1", seconds: 1 });
  jest.advanceTimersByTime(180_000);
  expect(longest()).toBeNull();
  expect(lines).toHaveLength(2);
  expect(lines[0]).toContain("client=office seconds=3.2");
});

test("no client is named where the log names none", () => {
  const { gate, lines, longest } = start(false);
  gate.waited("2001:db8::1", 2500);
  jest.advanceTimersByTime(60_000);
  expect(longest()).toEqual({ seconds: 2.5 });
  expect(lines.join()).not.toContain("2001:db8");
});
