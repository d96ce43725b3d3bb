import { type Draft, factsOf, type Reporter, tonedVerdict } from "../report.ts";
import { TONES } from "../steps.ts";
import { FAILURES, inOrder, STEPS } from "./findings.ts";
import type { CheckPath, CheckResult, Step, StepBegin } from "./result.ts";

/** A check as far as it is known. */
export interface CheckDocument extends Omit<Draft<CheckResult, "name">, "steps"> {
  readonly steps: readonly (Step | StepBegin)[];
}

const keyOf = ({ name, ip }: StepBegin) => `${name} ${ip}`;

/** The steps of a check, those that run too. */
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
    const rows = steps.map((step) => {
      const { status, text } = "status" in step ? step : { status: null, text: "" };
      const tone = status && TONES[status];
      const cells = [step.name.padEnd(WIDEST), status ?? "…", step.ip ?? null, text || null];
      return { cells, ...(tone && { tone }) };
    });
    return {
      title: name,
      verdict: tonedVerdict(verdict),
      facts: factsOf(["Port", port !== undefined && `TCP ${port}`], ["Location", location]),
      tables: [{ columns: COLUMNS, rows }],
      isAnswered: verdict !== undefined && !["unknown", ...FAILURES].includes(verdict.code),
    };
  },
};

/** Rows that have left the screen cannot move when a longer name comes. */
const WIDEST = Math.max(...STEPS.map(({ length }) => length));

const COLUMNS = [
  { name: "step", kind: "text" },
  { name: "result", kind: "text", isToned: true },
  { name: "address", kind: "value" },
  { name: "", kind: "text" },
] as const;
