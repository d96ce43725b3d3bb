/** How the run of several locations becomes a run for each. */
import { expect, test } from "bun:test";
import { runsByLocation } from "../../src/page/browser/by-location.ts";
import type { Problem, Run } from "../../src/page/browser/run.ts";

const problem: Problem = { code: "TARGET_NOT_ALLOWED", message: "no" };

const run = (part: Partial<Run>): Run => ({
  ...({ bookmark: { tool: "ping", subject: "a", options: {} }, given: null } as const),
  ...{ path: "", state: "running", repeats: false, parts: [], waits: "" },
  ...{ result: null, problem: null, startedMs: 0, ...part },
});

/** The parts of a run that say something. */
const brief = (run: Run | null) =>
  run && {
    parts: run.parts.length,
    state: run.state,
    result: run.result,
    problem: run.problem,
  };

const split = (from: string | undefined, whole: Run | null) =>
  runsByLocation(whole, from).map(({ location, run }) => [location, brief(run)] as const);

const open = { parts: 0, state: "running" as const, result: null, problem: null };

const part = (location: string) => ({ location, hop: 1 });
const summary = (...names: readonly string[]) => ({
  summary: names.map((location) => ({ location })),
  matching: names.length,
});
const result = (location: string) => ({ location, result: { target: location } });

test.each<[string, string | undefined, Run | null, ReturnType<typeof split>]>([
  ["nothing has run", "ams,fra", null, [[null, null]]],
  ["the service itself", undefined, run({ parts: [{}] }), [[null, { ...open, parts: 1 }]]],
  ["one location", "ams", run({ parts: [{}] }), [["ams", { ...open, parts: 1 }]]],
  [
    "an error of one location, which is at the field",
    "ams",
    run({ state: "done" as const, problem, parts: [{}] }),
    [["ams", { ...open, parts: 1, state: "done" as const }]],
  ],
  [
    "an error of the whole, which is at the field",
    "ams,zrh",
    run({ state: "done" as const, problem }),
    [[null, { ...open, state: "done" as const, problem }]],
  ],
  [
    "none has answered",
    "fra,ams",
    run({ parts: [summary("fra", "ams")] }),
    [
      ["fra", open],
      ["ams", open],
    ],
  ],
  ["nothing is said yet", "fra,ams", run({}), [["fra,ams", open]]],
  [
    "the locations with a tag, as the service chose them",
    "eu",
    run({ parts: [summary("ams", "fra"), part("fra")] }),
    [
      ["ams", open],
      ["fra", { ...open, parts: 1 }],
    ],
  ],
  [
    "one is done, one has failed, one goes on",
    "ams,fra,zrh",
    run({
      parts: [
        summary("ams", "fra", "zrh"),
        ...[part("ams"), part("zrh"), result("ams"), { location: "fra", error: problem }],
      ],
    }),
    [
      ["ams", { parts: 1, state: "done" as const, result: { target: "ams" }, problem: null }],
      ["fra", { ...open, state: "done" as const, problem }],
      ["zrh", { ...open, parts: 1 }],
    ],
  ],
  [
    "all are done, in the order of the result",
    "all",
    run({
      state: "done" as const,
      result: { details: summary("fra", "ams"), locations: [result("fra"), result("ams")] },
    }),
    [
      ["fra", { ...open, state: "done" as const, result: { target: "fra" } }],
      ["ams", { ...open, state: "done" as const, result: { target: "ams" } }],
    ],
  ],
  [
    "a run that repeats goes on after a result, and has the last one",
    "ams,fra",
    run({
      repeats: true,
      parts: [result("ams"), { location: "ams", result: { target: "again" } }],
      result: { details: summary("ams", "fra"), locations: [result("ams"), result("fra")] },
    }),
    [
      ["ams", { ...open, result: { target: "again" } }],
      ["fra", { ...open, result: { target: "fra" } }],
    ],
  ],
])("%s", (_, from, whole, expected) => {
  expect(split(from, whole)).toEqual(expected);
});
