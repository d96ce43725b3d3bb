import { type StepRow, TONES } from "../../../tools/steps.ts";
import { Breakable } from "./parts.tsx";

/** The mark of each outcome, which does not depend on colour. */
const MARKS = { ok: "✓", warn: "!", fail: "✗", skipped: "–", running: "…" } as const;

/** The outcomes in words for screen readers, the worst first. */
const WORDS = {
  fail: "failed",
  warn: "warning",
  running: "running",
  ok: "fine",
  skipped: "not tested",
} as const;

/** A step that has ended, or one that runs. */
export type Step = StepRow & { readonly finding?: string };

/** The mark of a step in its colour. */
function Mark({ step: { status } }: { step: Step }) {
  return (
    <span class={`mark ${status ? TONES[status] : ""}`} aria-hidden="true">
      {MARKS[status ?? "running"]}
    </span>
  );
}

const OUTCOMES = Object.keys(WORDS) as (keyof typeof WORDS)[];

const outcomeOf = ({ status }: Step): keyof typeof WORDS => status ?? "running";

/** The worst of some steps; undefined without any. */
const worstOf = (steps: readonly Step[]) =>
  OUTCOMES.flatMap((outcome) => steps.find((step) => outcomeOf(step) === outcome) ?? [])[0];

/** The worst outcome of some steps: a mark, and a word for screen readers. */
export function Outcome({ steps }: { steps: readonly Step[] }) {
  const worst = worstOf(steps);
  if (worst === undefined) return null;
  return (
    <>
      <Mark step={worst} />
      <span class="unseen"> {WORDS[outcomeOf(worst)]}</span>
    </>
  );
}

interface StepsProps {
  /** The steps of each list, by its heading. */
  groups: Iterable<readonly [heading: string, steps: readonly Step[]]>;
  isDone: boolean;
}

/** Steps as lists. At the end, those without a finding are folded. */
export function Steps({ groups, isDone }: StepsProps) {
  return (
    <div class="steps">
      {[...groups].map(([heading, steps]) => (
        <details open={!isDone || steps.some((step) => "finding" in step)}>
          <summary>
            <Breakable text={heading} />{" "}
            {steps.map((step) => (
              <Mark step={step} />
            ))}
            <span class="unseen"> {WORDS[outcomeOf(worstOf(steps) ?? { name: "" })]}</span>
          </summary>
          <ul>
            {steps.map((step) => (
              <li>
                <Mark step={step} />
                <span class="soft">
                  {step.name}
                  <span class="unseen"> {WORDS[outcomeOf(step)]}</span>
                </span>
                <span>{step.text && <Breakable text={step.text} />}</span>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </div>
  );
}
