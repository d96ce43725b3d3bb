import type { RunDetails } from "../../../tools/report.ts";
import type { Outcome } from "../../../tools/summary.ts";
import type { ChangeDetail } from "../../../watch/result.ts";
import { Shell } from "../shell.tsx";
import { aligned } from "./aligned.ts";
import { Unanswered, useAnswer } from "./answer.tsx";

/** A change with both sides beside each other: `−` before what was there, `+` before what is there. */
export function ChangeView({ path }: { path: string }) {
  const { result, problem } = useAnswer<ChangeDetail>(path);
  if (result === undefined) return <Unanswered problem={problem} />;
  return (
    <>
      <table class="sides">
        <thead>
          <tr>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {result.diff.flatMap((each) =>
            aligned(linesOf(each.before), linesOf(each.after)).map(([one, other]) => (
              <tr class={one === other ? "soft" : ""}>
                <td>{one !== null && `${one === other ? "" : "− "}${one}`}</td>
                <td>{other !== null && `${one === other ? "" : "+ "}${other}`}</td>
              </tr>
            )),
          )}
        </tbody>
      </table>
      <ul class="evidence">
        {result.evidence?.map((outcome) => (
          <li>{evidenceText(outcome)}</li>
        ))}
      </ul>
      <Shell path={path} needsKey />
    </>
  );
}

/** What a location found. */
function evidenceText(outcome: object): string {
  const { location, result, error } = outcome as Partial<Outcome<{ readonly message: string }>>;
  const { details } = (result ?? {}) as { readonly details?: Partial<RunDetails> };
  return `${location}: ${details?.verdict?.text ?? error?.message}`;
}

/** A value as lines: one for each item of a list. */
function linesOf(value: unknown): readonly string[] {
  if (value === null || value === undefined) return [];
  return [value].flat().map((item) => (typeof item === "string" ? item : JSON.stringify(item)));
}
