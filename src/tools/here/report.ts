import { factsOf, type Reporter, tonedVerdict } from "../report.ts";
import { TONES } from "../steps.ts";
import { STEPS } from "./codes.ts";
import type { HereResult, HereStep } from "./result.ts";

type StepBegin = Pick<HereStep, "name" | "interface">;

/** A look at a machine as far as it is known. */
export interface HereDocument {
  readonly steps: readonly (HereStep | StepBegin)[];
  readonly details: Partial<HereResult["details"]>;
}

const COLUMNS = [
  { name: "step", kind: "text" },
  { name: "result", kind: "text", isToned: true },
  { name: "", kind: "text" },
] as const;

const WIDEST = Math.max(...STEPS.map(({ length }) => length));

/** The steps of a look at a machine, those that run too. */
export const hereReport: Reporter<HereDocument, HereStep | StepBegin> = {
  draft: (_, parts) => {
    const latest = new Map(parts.map((part) => [part.name, part]));
    return { steps: STEPS.flatMap((name) => latest.get(name) ?? []), details: {} };
  },
  report({ steps, details: { verdict, location } }) {
    const rows = steps.map((step) => {
      const { status, text } = "status" in step ? step : { status: null, text: null };
      const tone = status && TONES[status];
      return { cells: [step.name.padEnd(WIDEST), status ?? "…", text], ...(tone && { tone }) };
    });
    return {
      title: "this machine",
      verdict: tonedVerdict(verdict),
      facts: factsOf(["Location", location]),
      tables: [{ columns: COLUMNS, rows }],
      isAnswered: verdict?.code === "works",
    };
  },
};
