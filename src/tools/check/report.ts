import { type Draft, factsOf, type Reporter, tonedVerdict } from "../report.ts";
import { stepTable } from "../steps.ts";
import { FAILURES, inOrder, STEPS } from "./findings.ts";
import type { CheckPath, CheckResult, Step, StepBegin } from "./result.ts";

/** A check as far as it is known. */
export interface CheckDocument extends Omit<Draft<CheckResult, "name">, "steps"> {
  readonly steps: readonly (Step | StepBegin)[];
}

const keyOf = ({ name, ip }: StepBegin) => `${name} ${ip}`;

/** The steps of a check, also those that still run. */
export const checkReport: Reporter<CheckDocument, Step | StepBegin | CheckPath> = {
  draft(name, parts) {
    const steps = parts.filter((part) => "name" in part);
    const path = parts.findLast((part) => "hops" in part);
    return {
      name,
      steps: inOrder([...new Map(steps.map((step) => [keyOf(step), step])).values()]),
      details: path ? { path } : {},
    };
  },
  report({ name, port, steps, details: { verdict, location } }) {
    return {
      title: name,
      verdict: tonedVerdict(verdict),
      facts: factsOf(["Port", port !== undefined && `TCP ${port}`], ["Location", location]),
      tables: [stepTable(steps, STEPS, true)],
      isAnswered: verdict !== undefined && !["unknown", ...FAILURES].includes(verdict.code),
    };
  },
};
