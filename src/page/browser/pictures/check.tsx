import { WITH_ADDRESS } from "../../../tools/check/findings.ts";
import { type CheckDocument, TONES } from "../../../tools/check/report.ts";
import { Breakable } from "./parts.tsx";
import type { View } from "./picture.ts";

/** A mark beside the colour of each outcome; a step that runs has none yet. */
const MARKS = { ok: "✓", warn: "!", fail: "✗", skipped: "–", running: "…" } as const;

type Steps = CheckDocument["steps"];

const statusOf = (step: Steps[number]) => ("status" in step ? step.status : "running");

/** The mark of a step in its colour. */
function Mark({ step }: { step: Steps[number] }) {
  const status = statusOf(step);
  return (
    <span class={`mark ${status === "running" ? "" : TONES[status]}`} aria-hidden="true">
      {MARKS[status]}
    </span>
  );
}

/** The steps as lists: of the name, of each address, and of the path. At the end, those without a finding are folded. */
export const checkView: View<CheckDocument> = {
  insteadOfTables: ({ steps, details }) => (
    <div class="steps">
      {groupsOf(steps).map(([heading, group]) => (
        <details open={details.verdict === undefined || group.some((step) => "finding" in step)}>
          <summary>
            <Breakable text={heading} />{" "}
            {group.map((step) => (
              <Mark step={step} />
            ))}
          </summary>
          <ul>
            {group.map((step) => (
              <li>
                <Mark step={step} />
                <span class="soft">
                  {step.name}
                  <span class="unseen"> {statusOf(step)}</span>
                </span>
                <span>{"text" in step && <Breakable text={step.text} />}</span>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </div>
  ),
};

/** Steps by what they are about, in the order of the first of each. */
function groupsOf(steps: Steps) {
  const of = ({ name, ip }: Steps[number]) => {
    if (WITH_ADDRESS.includes(name)) return ip ?? "";
    return name === "names" ? "Name" : name === "compare" ? "IPv6 and IPv4" : `Path to ${ip}`;
  };
  return [...Map.groupBy(steps, of)];
}
