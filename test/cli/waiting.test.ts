/** A run that has to wait says so above its table, which goes on below. */
import { expect } from "bun:test";
import CHECK from "../../src/tools/check/example.json" with { type: "json" };
import { programMissing, testWith } from "../lab/lab.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { inTerminal, screenOf } from "../lab/terminal.ts";

const terminalTest = testWith(programMissing("script"));

terminalTest("a wait is told above the table, and nothing is there twice", async () => {
  const [step] = CHECK.steps;
  const events: readonly (readonly [string, object])[] = [
    ["begin", { name: step?.name }],
    ["waiting", { for: "target" }],
    ["step", step ?? {}],
    ["result", CHECK],
  ];
  const text = events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  using server = Bun.serve({
    hostname: "::1",
    port: 0,
    fetch: () => new Response(text.join(""), { headers: { "Content-Type": "text/event-stream" } }),
  });
  const [program] = await sixscopeProgram();
  const command = `${program} check ${CHECK.name} --server ${server.url.origin}`;
  const screen = screenOf(await inTerminal(`${command} || true`));
  const count = (part: string) => screen.filter((line) => line.startsWith(part)).length;
  expect([count("sixscope: "), count(`check ${CHECK.name}`), count("step ")]).toEqual([1, 1, 1]);
});
