/** Ctrl-C in the middle of each tool: what there is, its verdict, and the exit status. */
import { expect, spyOn, test } from "bun:test";
import { type Output, runTool } from "../../src/cli/tool.ts";
import { ENDPOINTS } from "../../src/server/endpoints.ts";
import mtr from "../../src/tools/mtr/example.json" with { type: "json" };
import mtu from "../../src/tools/mtu/example.json" with { type: "json" };
import ping from "../../src/tools/ping/example.json" with { type: "json" };
import type { ToolName } from "../../src/tools/reports.ts";
import type { Endpoint } from "../../src/tools/services.ts";
import { summaryRow } from "../../src/tools/summary.ts";
import { TOOLS, toolNamed } from "../../src/tools/table.ts";
import trace from "../../src/tools/trace/example.json" with { type: "json" };

type Event = readonly [name: string, data: object];

/** Runs a tool that tells these events and then gets SIGINT; returns its exit status and what it printed. */
async function interrupted(
  name: ToolName,
  events: readonly Event[],
  from?: string,
  output: Partial<Output> = {},
) {
  let printed = "";
  using _write = spyOn(Bun, "write").mockImplementation((async (_: unknown, text: string) => {
    printed += text;
  }) as never);
  const tool = toolNamed(name);
  const { parameters, ...others } = ENDPOINTS.find(
    ({ path }) => path === tool.endpoint.path,
  ) as Endpoint;
  const [subject = ""] = Object.keys(parameters);
  const status = await runTool(
    tool,
    async (_, signal, onEvent) => {
      for (const [event, data] of events) onEvent(event, data);
      process.emit("SIGINT");
      throw signal.reason;
    },
    {
      endpoint: { ...others, parameters },
      parameters: { [subject]: "www.example.com", ...(from && { from }) },
    },
    { json: false, stream: false, isFullScreen: false, ...output },
    {},
  );
  return { status, printed };
}

const [sample] = ping.results;
const LOST = { seq: 2, reason: "timeout" };
const SILENT = { ...mtr.details.verdict, code: "no-reply", text: "The target did not reply." };
const round = (verdict: object) =>
  ["round", { round: 2, length: mtr.hops.length, hops: mtr.hops, verdict }] as const;

test.each<[ToolName, string, readonly Event[], number, string]>([
  [
    "ping",
    "with a reply",
    [
      ["sample", sample as object],
      ["sample", LOST],
    ],
    0,
    "\nThe target did not reply to 1 of 2 requests (50 %).\n",
  ],
  [
    "ping",
    "without a reply",
    [["sample", LOST]],
    1,
    "\nThe target did not reply to the request.\n",
  ],
  ["trace", "after a hop", [["hop", trace.hops[0] as object]], 1, `${trace.hops[0]?.ip}`],
  [
    "trace",
    "after a path that reaches the target, while others are looked for",
    [
      ["hop", trace.hops[0] as object],
      ["path", { flowLabel: 7, labels: 1, reached: true, reason: "reached", addresses: ["::1"] }],
    ],
    1,
    "interrupted",
  ],
  [
    "mtr",
    "after a round",
    [round(mtr.details.verdict)],
    0,
    `\n${mtr.details.verdict.text}\nRounds  2, times in ms\n`,
  ],
  ["mtr", "of a silent target", [round(SILENT)], 1, `\n${SILENT.text}\n`],
  ["mtu", "after a hop", [["hop", mtu.hops[0] as object]], 1, `${mtu.hops[0]?.ip}`],
  ...TOOLS.map(({ name }): [ToolName, string, [], number, string] => [
    name,
    "before anything",
    [],
    1,
    "",
  ]),
])("%s %s", async (name, _, events, status, said) => {
  const end = await interrupted(name, events);
  expect(end).toEqual({ status, printed: expect.stringContaining(said) });
  expect(end.printed).toEndWith("interrupted\n");
});

test.each<[string, Partial<Output>, string]>([
  ["--json", { json: true }, ""],
  ["--json --stream", { json: true, stream: true }, '{"event":"round",'],
  ["--format", { format: () => "a report" }, ""],
])("%s prints no document of a part, and fails", async (_, output, before) => {
  const { status, printed } = await interrupted(
    "mtr",
    [round(mtr.details.verdict)],
    undefined,
    output,
  );
  expect(printed).toStartWith(before);
  expect(printed).toEndWith("sixscope: interrupted, so there is no result\n");
  expect(status).toBe(1);
});

test("of several locations, those that have answered are shown", async () => {
  const summary = [summaryRow("ams", ping), summaryRow("fra")];
  const { status, printed } = await interrupted(
    "ping",
    [
      ["summary", { summary, matching: 2 }],
      ["sample", { ...sample, location: "ams" }],
      ["location", { location: "ams", result: ping }],
      ["summary", { summary, matching: 2 }],
    ],
    "all",
  );
  expect(status).toBe(0);
  expect(printed).toMatch(/^location +verdict .*\nams .*\nfra\n\nams\n/);
  expect(printed).toContain(ping.details.verdict.text);
  expect(printed).toEndWith("interrupted\n");
});
