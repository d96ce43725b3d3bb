import { expect, test } from "bun:test";
import { patienceFor } from "../../src/icmp/probe-wait.ts";

test.each([
  ["none has answered", null, 2000, { repeatMs: 500, lastMs: 1000 }],
  ["none has answered, and the timeout is short", null, 200, { repeatMs: 100, lastMs: 100 }],
  ["they are near: no faster than a router answers", 1, 2000, { repeatMs: 100, lastMs: 100 }],
  ["they are far", 200, 2000, { repeatMs: 300, lastMs: 400 }],
  ["they are very far: no longer than the timeout", 1500, 2000, { repeatMs: 500, lastMs: 1000 }],
])(
  "how long a silent hop is waited for where later ones answer: %s",
  (_, laterRttMs, timeoutMs, expected) => {
    expect(patienceFor(laterRttMs, timeoutMs)).toEqual(expected);
  },
);
