import { plainText, reportText, tablesLines } from "../../tools/report-text.ts";
import { reporterOf } from "../../tools/reports.ts";
import { summaryTable } from "../../tools/summary.ts";
import type { PageTool } from "../caller.ts";
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

/** The results of a run at each location, and their question. */
function resultsOf({ tool, bookmark, current }: ToolProps) {
  const { name } = tool;
  const { subject, options } = bookmark;
  const values = { ...defaultsOf(tool), ...options };
  const located = runsByLocation(current, options[CALLER.from.name]).map(({ location, run }) => ({
    ...{ location, run, document: run && documentOf(name, subject, run, values) },
    problem: run?.problem?.message ?? null,
  }));
  const shown = located.flatMap(({ location, document }) =>
    document ? [{ location: location ?? "", document }] : [],
  );
  const summary = current && summaryOf(current);
  const several = {
    target: subject,
    locations: shown.map(({ location, document }) => ({ location, result: document })),
    ...(summary && { details: summary }),
  };
  // A link contains only a whole result, because it is checked as one.
  const whole = current?.result && !current.repeats ? current : null;
  const document = whole?.result ?? (located.length > 1 ? several : (shown[0]?.document ?? null));
  const asked = {
    values,
    all: shown.map(({ document }) => document),
    linkTo: (options: Bookmark["options"]) => hashOf({ tool: name, subject, options }),
    async linkToAnswer() {
      const hash = whole && (await resultHash(whole, document as object).catch(() => null));
      return new URL(hash ?? hashOf(bookmark), globalThis.document.baseURI).href;
    },
  };
  const places = located.map((each) => ({ ...each, location: each.location ?? "" }));
  return {
    ...{ located, shown, places, whole, document, asked },
    comparison: summary && summaryTable(summary),
    /** The common answer of several locations; null for one, and before all have ended. */
    over: answerOfPlaces(places),
  };
}

type Results = ReturnType<typeof resultsOf>;

/** All results as text, for the clipboard. */
function textOf({ located, comparison }: Results, tool: PageTool, about: readonly string[]) {
  const { report } = reporterOf(tool.name);
  return [
    `${[tool.label, ...about.filter(Boolean)].join("\n")}\n`,
    ...(comparison ? [plainText(tablesLines([comparison]))] : []),
    ...located.map(({ location, document, problem }) => {
      const lines = document ? reportText(report(document)) : `${problem ?? "No answer."}\n`;
      return location === null ? lines : `From ${location}\n${lines}`;
    }),
  ].join("\n");
}

interface PartProps {
  tool: PageTool;
  /** The request, as a heading. */
  title: string;
  results: Results;
}

/** The common answer of several locations, and their differences. */
function AllLocations({ tool, title, results, isRunning }: PartProps & { isRunning: boolean }) {
  const { shown, places, comparison, over } = results;
  const asked = { ...results.asked, parts: [], isRunning };
  const view = viewOf(tool.name);
  const likeness = likenessOf(places);
  return (
    <>
      {over ? (
        <div class={`announce verdict ${over.tone}`} role="status">
          <Headline {...over} evidence={differenceOfPlaces(places)} />
        </div>
      ) : (
        <h1 class="unseen">{title}</h1>
      )}
      {over?.about && view.advice?.(over.about, asked)}
      {places.slice(0, likeness === null ? Infinity : 1).map(({ location, document, problem }) =>
        document
          ? view.way?.(document, asked, likeness ?? location)
          : problem !== null &&
            view.way && (
              <section class="part">
                <h2 class="side">{location}</h2>
                <p class="bad">{problem}</p>
              </section>
            ),
      )}
      {view.overPlaces?.(shown)}
      {comparison && (!view.hasOwnComparison || comparison.heading) && (
        <div class="alone">
          <Tables tables={[comparison]} />
        </div>
      )}
    </>
  );
}

/** The report of each location, folded if a picture of all locations says the same. */
function EachLocation({ tool, title, results, isAsked }: PartProps & { isAsked: boolean }) {
  const { located, asked, over } = results;
  const isAlone = located.length === 1;
  const each = (
    <div class={isAlone ? "alone" : "locations"}>
      {located.map(({ location, run, document, problem }) => {
        const isRunning = run?.state === "running";
        const found = isAsked && (
          <ReportView
            tool={tool.name}
            asked={{ ...asked, parts: run?.parts ?? [], isRunning, isBeside: !isAlone }}
            {...{ document, title, isRunning }}
            waiting={isRunning && run.waits}
            level={isAlone ? 1 : 3}
          />
        );
        if (location === null) return found;
        const heading = `From ${location}`;
        return (
          <section key={heading} class="location" aria-label={heading}>
            {!isAlone && <h2>{heading}</h2>}
            <ProblemOf name={location} problem={problem} />
            {found}
          </section>
        );
      })}
    </div>
  );
  if (!over || !viewOf(tool.name).hasOwnComparison) return each;
  return (
    <div class="more alone">
      <details>
        <summary>Each place by itself</summary>
        {each}
      </details>
    </div>
  );
}

/** The result of a tool at each location, and the actions for it. */
export function ToolPage({ tool, bookmark, current }: ToolProps) {
  const { name, label, needsKey } = tool;
  const { subject, options } = bookmark;
  const title = [label, subject].filter(Boolean).join(" ");
  const results = resultsOf({ tool, bookmark, current });
  const { located, shown, whole, document, asked } = results;
  const isAlone = located.length === 1;
  const isRunning = current?.state === "running";
  const given = current?.given && GIVEN[current.given];
  const problemAt = problemsOf(current, tool);
  const problem = problemAt(SUBJECT) ?? problemAt(FORM);
  const from =
    current?.given || !tool.hasFrom ? "" : `from ${fromText(options[CALLER.from.name] ?? "")}`;
  const isRefused = current?.problem != null && shown.length === 0;
  const text = () => {
    const stamp = current ? stampOf(name, current, asked.values, document) : "";
    return textOf(results, tool, [stamp, given || ""]);
  };
  const [only] = located;
  const more =
    isAlone &&
    only?.document &&
    viewOf(name).more?.(only.document, { ...asked, parts: only.run?.parts ?? [], isRunning });
  const part = { tool, title, results };
  return (
    <article id="result" data-tool={name} aria-busy={isRunning ? "true" : "false"}>
      {given && <p class="given soft">{given}</p>}
      {current && !isRefused && (
        <p class="stamp soft" data-state={current.state}>
          {aboutOf(name, current, asked.values, document, from).join(", ")}
        </p>
      )}
      <ProblemOf name={problemAt(SUBJECT) === null ? FORM : SUBJECT} problem={problem} />
      {isAlone ? (
        current === null && <h1 class="unseen">{title}</h1>
      ) : (
        <AllLocations {...part} isRunning={isRunning} />
      )}
      <EachLocation {...part} isAsked={current !== null} />
      {/* Not during a run, whose rows would push it down. */}
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
