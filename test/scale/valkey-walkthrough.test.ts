/** The walkthrough of docs/operations.md with two instances, word for word. */
import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { patientProgram } from "../lab/program.ts";
import { run } from "../lab/run.ts";

const ROOT = join(import.meta.dir, "../..");
const PAGE = readFileSync(join(ROOT, "docs/operations.md"), "utf8");

const curlTest = testWith(labMissing, programMissing("redis-server"), programMissing("curl"));

/** All blocks of one language in a section, one after the other. */
function blocksOf(section: string, language: string): string {
  const blocks = section.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"));
  return [...blocks].map(([, block]) => block).join("");
}

curlTest("the walkthrough with Valkey prints what the page says", async () => {
  const section = PAGE.split("### Try it on one machine")[1]?.split("\n### ")[0] ?? "";
  const folder = mkdtempSync(join(tmpdir(), "sixscope-walkthrough-"));
  const program = join(folder, "sixscope");
  const [patient = ""] = await patientProgram();
  symlinkSync(patient, program);
  const script = `cd '${folder}'\nPATH='${folder}':"$PATH"\n${blocksOf(section, "sh")}wait\n`;
  const printed = await run(["sh", "-c", script]);
  rmSync(folder, { recursive: true });
  expect(printed.replaceAll("\r", "")).toBe(blocksOf(section, "text"));
});
