import { reportText } from "../../tools/report-text.ts";
import { reporterOf } from "../../tools/reports.ts";
import type { PageTool } from "../caller.ts";
import { Below } from "./below.tsx";
import { type Bookmark, hashOf } from "./bookmark.ts";
import { runsByLocation } from "./by-location.ts";
import { CALLER, defaultsOf } from "./caller.ts";
import { ReportView } from "./report-view.tsx";
import type { Run } from "./run.ts";
import { TEXTS } from "./texts.ts";
import { ToolForm, type ToolProps } from "./tool-form.tsx";

/** A tool: its form, its result at each location, and what can be done with the result. */
export function ToolPage({ tool, bookmark, current }: ToolProps) {
  const { name, needsKey } = tool;
  const { subject, options } = bookmark;
  const asked = {
    values: { ...defaultsOf(tool), ...options },
    linkTo: (options: Bookmark["options"]) => hashOf({ tool: name, subject, options }),
  };
  const located = runsByLocation(current, options[CALLER.from.name], CALLER.from).map(
    ({ location, run }) => ({
      heading: location === null ? null : TEXTS.from.heading(location),
      run,
      document: run && documentOf(tool, subject, run),
    }),
  );
  const { report } = reporterOf(name);
  const text = () =>
    [
      `${tool.labels[0]}\n`,
      ...located.map(({ heading, run, document }) => {
        const said = document ? reportText(report(document)) : `${run?.problem?.message}\n`;
        return heading === null ? said : `${heading}\n${said}`;
      }),
    ].join("\n");
  return (
    <>
      <ToolForm tool={tool} bookmark={bookmark} current={current} />
      <div id="result" class={located.length > 1 ? "locations" : ""}>
        {located.map(({ heading, run, document }) => {
          const isRunning = run?.isRunning ?? false;
          const view = <ReportView tool={name} {...{ document, asked, isRunning }} />;
          if (heading === null) return view;
          return (
            <section key={heading} class="location" aria-label={heading}>
              <h2>{heading}</h2>
              {run?.problem && (
                <p class="problem" role="alert">
                  {run.problem.message}
                </p>
              )}
              {view}
            </section>
          );
        })}
      </div>
      {current && (
        <Below {...{ bookmark, needsKey, text }} path={current.path} result={current.result} />
      )}
    </>
  );
}

/** The document of a run as far as it is known: of the result, an error, or the events; null if nothing is. */
function documentOf({ name }: PageTool, subject: string, run: Run): object | null {
  const { result, problem, parts, repeats } = run;
  if (result !== null && !repeats) return result;
  const { draft, explain } = reporterOf(name);
  const said = problem?.details && explain?.({ ...problem.details });
  if (draft === undefined || parts.length === 0) return said ?? null;
  const drafted = draft(subject, parts);
  if (result === null) return drafted;
  // The details of the last call are valid for the whole run, except for its verdict.
  const { details: last } = result as { readonly details: object };
  const { details } = drafted as { readonly details: object };
  return { ...result, ...drafted, details: { ...last, ...details, verdict: undefined } };
}
