import { plainText, reportText, tablesLines } from "../../tools/report-text.ts";
import { reporterOf } from "../../tools/reports.ts";
import { summaryTable } from "../../tools/summary.ts";
import { Headline } from "./answer.tsx";
import { Below } from "./below.tsx";
import { type Bookmark, hashOf } from "./bookmark.ts";
import { runsByLocation, summaryOf } from "./by-location.ts";
import { CALLER, defaultsOf } from "./caller.ts";
import { ProblemOf } from "./fields.tsx";
import type { ToolProps } from "./form.tsx";
import { fromText } from "./from-field.tsx";
import { GIVEN, resultHash } from "./given.ts";
import { answerOfPlaces, differenceOfPlaces, likenessOf } from "./places.ts";
import { FORM, problemsOf, SUBJECT } from "./problems.ts";
import { ReportView, Tables } from "./report-view.tsx";
import { aboutOf, documentOf, stampOf } from "./run-document.ts";
import { viewOf } from "./views.ts";

/** The result of a tool at each location, and what can be done with it. */
export function ToolPage({ tool, bookmark, current }: ToolProps) {
  const { name, label, needsKey } = tool;
  const { subject, options } = bookmark;
  const title = [label, subject].filter(Boolean).join(" ");
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
  const several = {
    target: subject,
    locations: shown.map(({ location, document }) => ({ location, result: document })),
    ...(summary && { details: summary }),
  };
  // A link has a result that is whole, because it is checked as one.
  const whole = current?.result && !current.repeats ? current : null;
  const document = whole?.result ?? (located.length > 1 ? several : (shown[0]?.document ?? null));
  const linkTo = async () => {
    const hash = whole && (await resultHash(whole, document as object).catch(() => null));
    return new URL(hash ?? hashOf(bookmark), globalThis.document.baseURI).href;
  };
  const asked = {
    ...question,
    linkToAnswer: linkTo,
    all: shown.flatMap(({ document }) => document ?? []),
  };
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
  const problemAt = problemsOf(current, tool);
  const problem = problemAt(SUBJECT) ?? problemAt(FORM);
  const isRunning = current?.state === "running";
  const isAlone = located.length === 1;
  const view = viewOf(name);
  const places = located.map(({ location, document, run }) => ({
    ...{ location: location ?? "", document, problem: run?.problem?.message ?? null },
  }));
  const over = isAlone ? null : answerOfPlaces(places);
  const likeness = likenessOf(places);
  const [only] = shown;
  const more =
    isAlone &&
    only?.document &&
    view.more?.(only.document, { ...asked, parts: only.run?.parts ?? [], isRunning });
  const from =
    current?.given || !tool.hasFrom ? "" : `from ${fromText(options[CALLER.from.name] ?? "")}`;
  const isRefused = current?.problem != null && shown.length === 0;
  const about = current && !isRefused && (
    <p class="stamp soft" data-state={current.state}>
      {aboutOf(name, current, question.values, document, from).join(", ")}
    </p>
  );
  const each = (
    <div class={isAlone ? "alone" : "locations"}>
      {located.map(({ location, run, document }) => {
        const isRunningHere = run?.state === "running";
        const own = {
          ...asked,
          parts: run?.parts ?? [],
          isRunning: isRunningHere,
          isBeside: !isAlone,
        };
        const found = current && (
          <ReportView
            tool={name}
            asked={own}
            {...{ document, title, isRunning: isRunningHere }}
            waiting={isRunningHere && run.waits}
            level={isAlone ? 1 : 3}
          />
        );
        if (location === null) return found;
        const heading = `From ${location}`;
        return (
          <section key={heading} class="location" aria-label={heading}>
            {!isAlone && <h2>{heading}</h2>}
            <ProblemOf name={location} problem={run?.problem?.message ?? null} />
            {found}
          </section>
        );
      })}
    </div>
  );
  return (
    <article id="result" data-tool={name} aria-busy={isRunning ? "true" : "false"}>
      {given && <p class="given soft">{given}</p>}
      {about}
      <ProblemOf name={problemAt(SUBJECT) === null ? FORM : SUBJECT} problem={problem} />
      {over ? (
        <div class={`announce verdict ${over.tone}`} role="status">
          <Headline {...over} evidence={differenceOfPlaces(places)} />
        </div>
      ) : (
        (!isAlone || current === null) && <h1 class="unseen">{title}</h1>
      )}
      {over?.about && view.advice?.(over.about, { ...asked, parts: [], isRunning })}
      {!isAlone &&
        located.slice(0, likeness === null ? Infinity : 1).map(({ location, document, run }) =>
          document ? (
            view.way?.(document, { ...asked, parts: [], isRunning }, likeness ?? location ?? "")
          ) : run?.problem && view.way ? (
            <section class="part">
              <h2 class="side">{location}</h2>
              <p class="bad">{run.problem.message}</p>
            </section>
          ) : null,
        )}
      {!isAlone &&
        view.overPlaces?.(
          shown.map(({ location, document }) => ({
            location: location ?? "",
            document: document as object,
          })),
        )}
      {comparison && (!view.hasOwnComparison || comparison.heading) && (
        <div class="alone">
          <Tables tables={[comparison]} />
        </div>
      )}
      {over && view.hasOwnComparison ? (
        <div class="more alone">
          <details>
            <summary>Each place by itself</summary>
            {each}
          </details>
        </div>
      ) : (
        each
      )}
      {/* While rows come, they would push it down. */}
      {current && !isRunning && (
        <Below
          {...{ bookmark, needsKey, text, document }}
          path={current.path}
          run={whole}
          more={more}
        />
      )}
    </article>
  );
}
