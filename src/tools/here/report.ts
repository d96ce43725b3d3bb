import { factsOf, type Reporter, tonedVerdict } from "../report.ts";
import { stepTable } from "../steps.ts";
import { STEPS } from "./codes.ts";
import type { HereResult, HereStep } from "./result.ts";

type StepBegin = Pick<HereStep, "name" | "interface">;

/** A look at a machine as far as it is known. */
export interface HereDocument {
  readonly steps: readonly (HereStep | StepBegin)[];
  readonly details: Partial<HereResult["details"]>;
}

/** The steps of a look at a machine, also those that still run. */
export const hereReport: Reporter<HereDocument, HereStep | StepBegin> = {
  draft: (_, parts) => {
    const latest = new Map(parts.map((part) => [part.name, part]));
    return { steps: STEPS.flatMap((name) => latest.get(name) ?? []), details: {} };
  },
  report({ steps, details: { verdict, location } }) {
    return {
      title: "this machine",
      verdict: tonedVerdict(verdict),
      facts: factsOf(["Location", location]),
      tables: [stepTable(steps, STEPS, false)],
      isAnswered: verdict?.code === "works",
    };
  },
};
