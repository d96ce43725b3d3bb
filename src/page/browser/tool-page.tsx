import { plainText, reportText, tablesLines } from "../../tools/report-text.ts";
import { reporterOf } from "../../tools/reports.ts";
import { summaryTable } from "../../tools/summary.ts";
import { Below } from "./below.tsx";
import { type Bookmark, hashOf } from "./bookmark.ts";
import { runsByLocation, summaryOf } from "./by-location.ts";
import { CALLER, defaultsOf } from "./caller.ts";
import { ProblemOf } from "./fields.tsx";
import { GIVEN } from "./given.ts";
import { ReportView, Tables } from "./report-view.tsx";
import { documentOf, stampOf } from "./run-document.ts";
import { ToolForm, type ToolProps } from "./tool-form.tsx";

/** A tool: its form, its result at each location, and what can be done with the result. */
export function ToolPage({ tool, bookmark, current }: ToolProps) {
  const { name, needsKey } = tool;
  const [label] = tool.labels;
  const { subject, options } = bookmark;
  const question = {
    values: { ...defaultsOf(tool), ...options },
    linkTo: (options: Bookmark["options"]) => hashOf({ tool: name, subject, options }),
  };
  const located = runsByLocation(current, options[CALLER.from.name]).map(({ location, run }) => ({
    location,
    run,
    document: run && documentOf(name, subject, run, question.values),
  }));
  const { report } = reporterOf(name);
  const summary = current && summaryOf(current);
  const comparison = summary && summaryTable(summary);
  const shown = located.filter(({ document }) => document !== null);
  const asked = { ...question, all: shown.flatMap(({ document }) => document ?? []) };
  const several = {
    target: subject,
    locations: shown.map(({ location, document }) => ({ location, result: document })),
    ...(summary && { details: summary }),
  };
  // A link has a result that is whole, because it is checked as one.
  const whole = current?.result && !current.repeats ? current : null;
  const document = whole?.result ?? (located.length > 1 ? several : (shown[0]?.document ?? null));
  const stamp = current ? stampOf(name, current, question.values, document) : "";
  const given = current?.given && GIVEN[current.given];
  const text = () =>
    [
      `${[label, stamp, given].filter(Boolean).join("\n")}\n`,
      ...(comparison ? [plainText(tablesLines([comparison]))] : []),
      ...located.map(({ location, run, document }) => {
        const lines = document ? reportText(report(document)) : `${run?.problem?.message}\n`;
        return location === null ? lines : `From ${location}\n${lines}`;
      }),
    ].join("\n");
  return (
    <>
      <h1 class="unseen">
        {label} {subject}
      </h1>
      <ToolForm {...{ tool, bookmark, current }} />
      {given && <p class="given">{given}</p>}
      {current && <p class="stamp">{stamp}</p>}
      {comparison && <Tables tables={[comparison]} />}
      <div id="result" class={located.length > 1 ? "locations" : ""}>
        {located.map(({ location, run, document }) => {
          const waiting = run?.state === "running" && run.waits;
          const view = <ReportView tool={name} {...{ document, asked, waiting }} />;
          if (location === null) return view;
          const heading = `From ${location}`;
          return (
            <section key={heading} class="location" aria-label={heading}>
              <h2>{heading}</h2>
              <ProblemOf name={location} problem={run?.problem?.message ?? null} />
              {view}
            </section>
          );
        })}
      </div>
      {/* While rows come, they would push it down. */}
      {current && current.state !== "running" && (
        <Below {...{ bookmark, needsKey, text, document }} path={current.path} run={whole} />
      )}
    </>
  );
}
