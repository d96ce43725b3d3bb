/** The words about a run: its state, how far it came, and its document until then. */
import { expect, test } from "bun:test";
import type { Run } from "../../src/page/browser/run.ts";
import { callerOf } from "../../src/page/caller.ts";
import { parseIpv6 } from "../addr/parse.ts";

// The page has them from the browser.
const content = JSON.stringify(callerOf(parseIpv6("::1"), true, { config: { familyUrls: null } }));
Object.assign(globalThis, {
  document: { querySelector: () => ({ content }) },
  location: { host: "six.example.test" },
});
const { documentOf, stampOf } = await import("../../src/page/browser/run-document.ts");

const VALUES = { count: "10", rounds: "60" };

const run = (part: Partial<Run>): Run => ({
  ...{ bookmark: { tool: "ping", subject: "a", options: {} }, path: "", state: "stopped" },
  ...{
    repeats: false,
    parts: [],
    waits: "",
    result: null,
    problem: null,
    startedMs: 0,
    given: null,
  },
  ...part,
});

const sample = { seq: 3, ttl: 64, rtt: 1 };
const outcome = { location: "ams", result: {} };
const stamped = { details: { startedAt: "2026-11-22T12:00:00.000Z", version: "1.0.0" } };

test.each<[what: string, run: Run, document: object | null, says: string]>([
  ["nothing yet", run({ state: "running" }), null, "Running: 1970"],
  ["some requests", run({ parts: [sample] }), null, "Stopped after 3 of 10 requests: 1970"],
  [
    "the result of a location behind them",
    run({ parts: [sample, { location: "fra", ...sample }, outcome] }),
    null,
    "Stopped after 3 of 10 requests: 1970",
  ],
  ["only results of locations", run({ parts: [outcome] }), null, "Stopped: 1970"],
  ["a run that goes on", run({ repeats: true, parts: [sample] }), null, "Stopped after 3 requests"],
  ["a broken one", run({ state: "broken", parts: [sample] }), null, "Broken off after 3 of 10"],
  ["the end", run({ state: "done", parts: [sample] }), null, "Finished: 1970"],
  [
    "the service's own time",
    run({ state: "done" }),
    stamped,
    "Finished: 2026-11-22 12:00:00 UTC, sixscope 1.0.0",
  ],
  [
    "the time of the first of several locations",
    run({ state: "done" }),
    { locations: [{ location: "fra" }, { location: "ams", result: stamped }] },
    "Finished: 2026-11-22 12:00:00 UTC, sixscope 1.0.0 at six.example.test",
  ],
  ["a file without a date", run({ state: "done", startedMs: null, given: "file" }), {}, "Finished"],
])("the stamp says %s", (_, run, document, says) => {
  expect(stampOf("ping", run, VALUES, document)).toStartWith(says);
});

test("a document that is not whole says when it began, how far it came, and its state", () => {
  const stopped = run({ parts: [sample] });
  const document = documentOf("ping", "a", stopped, VALUES);
  expect(document).toMatchObject({
    target: "a",
    results: [sample],
    details: {
      startedAt: "1970-01-01T00:00:00.000Z",
      version: expect.any(String),
      state: "stopped",
      progress: "3 of 10 requests",
    },
  });
});
