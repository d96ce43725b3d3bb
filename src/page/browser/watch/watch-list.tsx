import { formatMs } from "../../../tools/numbers.ts";
import { median } from "../../../util/numbers.ts";
import { formatPercent, plural } from "../../../util/text.ts";
import type { WatchDay, Watches, WatchRow } from "../../../watch/result.ts";
import { Shell } from "../shell.tsx";
import { Unanswered, useAnswer } from "./answer.tsx";
import { SPANS, watchHash } from "./place.ts";
import { mannerText, timeText, toneOf } from "./words.ts";

/** The last day of each watch, in parts of 20 minutes. */
const PATH = "watch?points=72";

/** The words of tones, in the order in which people look for them. */
const WORDS = { bad: "Broken", warn: "Doubtful", good: "Good", none: "No run yet" } as const;

/** All watches: the broken ones first, then the doubtful, then the rest, each with a line of its last day. */
export function WatchList() {
  const { result, problem } = useAnswer<Watches>(PATH);
  if (result === undefined) return <Unanswered problem={problem} />;
  const { watches, details } = result;
  const byTone = Map.groupBy(watches, (watch) => toneOf(watch) ?? "none");
  const [bad, warn] = [byTone.get("bad")?.length, byTone.get("warn")?.length];
  const states = [bad && `${bad} broken`, warn && `${warn} doubtful`].filter(Boolean);
  const last = watches
    .map(({ last }) => last?.at ?? "")
    .toSorted()
    .at(-1);
  const changes = watches.reduce((sum, { changes }) => sum + changes.day, 0);
  return (
    <>
      <p class="soft">
        {watches.length} watched, {last && `last run ${timeText(last)}, `}
        {plural(changes, "change")} in the last day
      </p>
      <h1 class={`headline ${bad ? "bad" : warn ? "warn" : ""}`}>
        {watches.length === 0 ? "Nothing is watched." : states.join(", ") || "None is broken."}
      </h1>
      {details.problem && <p class="notice">No history is kept now: {details.problem}</p>}
      {details.wrong.map(({ line, text }) => (
        <p class="problem">
          Line {line} of the file: {text}
        </p>
      ))}
      <ul class="watches">
        {(["bad", "warn", "good", "none"] as const).map((tone) =>
          byTone.get(tone)?.map((watch) => (
            <li key={watch.name}>
              <strong class={tone}>{WORDS[tone]}</strong>
              <Row watch={watch} day={details.days?.[watch.name]} />
            </li>
          )),
        )}
      </ul>
      <Shell path={PATH} needsKey />
    </>
  );
}

function Row({ watch, day }: { watch: WatchRow; day: WatchDay | undefined }) {
  const { name, tool, target, verdict, last, changes } = watch;
  return (
    <>
      <p>
        <a href={watchHash({ name, hours: SPANS.Week, change: null })}>{target ?? tool}</a>
        <br />
        <span class="soft">{mannerText(watch)}</span>
      </p>
      <p>
        {verdict?.text}
        <br />
        {verdict && <span class="soft">since {timeText(verdict.since)}</span>}
      </p>
      {day && <DayLine day={day} />}
      <p class="numbers">
        <span>{last?.rtt == null ? "–" : `${formatMs(last.rtt)} ms`}</span>
        <span class={last?.loss ? "bad" : "soft"}>
          {last?.loss == null ? "" : `${formatPercent(last.loss)} lost`}
        </span>
        <span class="soft">{changes.month > 0 && plural(changes.month, "change")}</span>
      </p>
    </>
  );
}

/** Round-trip times from 0 to twice their median, loss as ticks, broken as a bar on the base line, no run as dots. */
function DayLine({ day: { rtt, loss, bad } }: { day: WatchDay }) {
  const scale = 2 * (median(rtt.filter((ms) => ms !== null)) ?? 0) || 1;
  /** A path of what is drawn for each part; 0 is above. */
  const path = <Value,>(
    name: string,
    values: readonly Value[],
    draw: (value: Value, at: number) => string,
  ) => <path class={name} d={values.map(draw).join("")} />;
  const y = (ms: number) => Math.round(300 * (1 - Math.min(1, ms / scale))) / 10;
  return (
    <svg class="day" viewBox={`0 0 ${rtt.length} 34`} preserveAspectRatio="none" aria-hidden="true">
      {path("base", [rtt.length], (length) => `M0 30h${length}`)}
      {path("line", rtt, (ms, at) =>
        ms === null ? "" : `${rtt[at - 1] == null ? "M" : "L"}${at + 0.5} ${y(ms)}h.1`,
      )}
      {path("lost", loss, (percent, at) =>
        percent ? `M${at + 0.5} 30v${-Math.max(4, 0.3 * percent)}` : "",
      )}
      {path("broken", bad, (is, at) => (is ? `M${at} 30h1` : ""))}
      {path("none", bad, (is, at) => (is === null ? `M${at + 0.3} 30h.4` : ""))}
    </svg>
  );
}
