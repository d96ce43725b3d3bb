import { answerOf } from "../../../tools/answer.ts";
import type { RunDetails } from "../../../tools/report.ts";
import { toneOf } from "../../../tools/report.ts";
import type { Outcome } from "../../../tools/summary.ts";
import { listText, plural, utcText } from "../../../util/text.ts";
import type { ChangeDetail, Watches, WatchRow, WatchSeries } from "../../../watch/result.ts";
import { sameParts } from "../../../watch/same.ts";
import { hashOf } from "../bookmark.ts";
import { toolOf } from "../caller.ts";
import { textToSend } from "../forward.ts";
import { Copy } from "../pictures/parts.tsx";
import { Answer, Unanswered, useAnswer } from "./answer.tsx";
import { SPANS, type WatchPlace, watchHash } from "./place.ts";
import { Sides } from "./sides.tsx";
import { Circle, classOf, type Mark, Timeline } from "./timeline.tsx";
import { mannerText, optionsOf, sentencesOf, sinceText, timeText, titleOf } from "./words.ts";

/** Parts of the shown time: one for two or three pixels. */
const POINTS = 336;

/** A watch: its verdict, its measurements over a time, and its changes; one of them may be open. */
export function OneWatch({ place }: { place: WatchPlace }) {
  const { name, hours, change: open } = place;
  const path = `watch/${encodeURIComponent(name)}`;
  const { result, problem } = useAnswer<WatchSeries>(`${path}?since=${hours}h&points=${POINTS}`);
  const list = useAnswer<Watches>("watch");
  const watch = list.result?.watches.find((each) => each.name === name);
  if (!result || !watch) return <Unanswered problem={problem ?? list.problem} />;
  const { verdict, target } = watch;
  const tool = toolOf(watch.tool);
  const manner = mannerText(watch, tool);
  const marks = result.changes
    .filter(({ confirmed }) => confirmed)
    .map((change, at): Mark => {
      const isOpen = change.id === open;
      const hash = watchHash({ ...place, change: isOpen ? null : change.id });
      return { ...change, number: at + 1, isOpen, hash };
    });
  const runs = result.series.reduce((sum, part) => sum + part.runs, 0);
  return (
    <>
      <Answer
        tone={verdict && toneOf(verdict.code)}
        word={verdict ? `${answerOf(verdict.code)}.` : "No run yet."}
        headline={verdict ? sinceText(verdict) : titleOf(watch)}
        above={[<a href="#/watch">Watch ›</a>, `${manner}, ${plural(runs, "run")}`]}
        evidence={sentencesOf(verdict?.text ?? "")[1]}
      />
      <div class="tools stamp">
        <nav aria-label="Time">
          {Object.entries(SPANS).map(([label, each]) => (
            <a
              href={watchHash({ ...place, hours: each })}
              aria-current={each === hours ? "true" : undefined}
            >
              {label}
            </a>
          ))}
        </nav>
      </div>
      <Timeline {...{ series: result.series, marks, hours }} />
      <section class="part">
        <h2 class="side soft">{marks.length === 0 ? "No changes" : "Changes"}</h2>
        <ol>
          {marks.toReversed().map((mark) => (
            <li class="small change" key={mark.id}>
              <a class="ink" href={mark.hash} aria-expanded={`${mark.isOpen}`}>
                <svg aria-hidden="true" class={classOf(mark)} width="24" height="24">
                  <Circle x="50%" text={`${mark.number}`} />
                </svg>
                <span class="soft">{timeText(mark.at)}</span> {mark.text}
              </a>
              {mark.isOpen && (
                <Change path={`${path}/changes/${open}`} {...{ mark, watch, manner }} />
              )}
            </li>
          ))}
        </ol>
      </section>
      <section class="part">
        <h2 class="side soft">More</h2>
        <div class="more">
          <a href={hashOf({ tool: watch.tool, subject: target ?? "", options: optionsOf(watch) })}>
            Open in {tool.label}
          </a>
          <Copy text={() => JSON.stringify(result)} label="Copy JSON" />
        </div>
      </section>
    </>
  );
}

/** An open change: both sides, the findings of other locations, and a text for the one who can mend it. */
function Change(props: { path: string; mark: Mark; watch: WatchRow; manner: string }) {
  const { path, mark, watch, manner } = props;
  const { result, problem } = useAnswer<ChangeDetail>(path);
  if (!result) return <Unanswered problem={problem} />;
  const { before, after, diff, evidence } = result;
  const same = sameParts(before ?? {}, after ?? {});
  const hop = diff.find((each) => each.hop)?.hop;
  const text = textToSend(mark.text, {
    Where: `${hop ? `hop ${hop} on the way to ` : ""}${titleOf(watch)}`,
    Tried: manner,
    When: `since ${utcText(mark.at, "minute")}`,
    Link: location.href,
  });
  return (
    <>
      <Sides {...result} />
      {evidence?.map((outcome) => (
        <p>{evidenceText(outcome)}</p>
      ))}
      <div class="advice">
        <p class="soft">{same.length > 0 && `Unchanged: ${listText(same)}.`}</p>
        {before && after && (
          <Copy text={() => JSON.stringify({ before, after })} label="Copy both documents" />
        )}
        <Copy text={() => text} label="Copy for your provider" />
      </div>
    </>
  );
}

/** The finding of a location. */
function evidenceText(outcome: object): string {
  const { location, result, error } = outcome as Partial<Outcome<{ readonly message: string }>>;
  const { details } = (result ?? {}) as { readonly details?: Partial<RunDetails> };
  return `${location}: ${details?.verdict?.text ?? error?.message}`;
}
