import { useEffect, useState } from "hono/jsx/dom";
import { answerOf } from "../../../tools/answer.ts";
import { formatMs } from "../../../tools/numbers.ts";
import { toneOf } from "../../../tools/report.ts";
import { median } from "../../../util/numbers.ts";
import { capitalized, formatPercent, listText, plural } from "../../../util/text.ts";
import type { WatchDay, Watches, WatchRow } from "../../../watch/result.ts";
import { toolOf } from "../caller.ts";
import { Copy } from "../pictures/parts.tsx";
import { Answer, Unanswered, useAnswer } from "./answer.tsx";
import { SPANS, watchHash } from "./place.ts";
import { paths } from "./timeline.tsx";
import { mannerText, sentencesOf, sinceText, timeText, titleOf } from "./words.ts";

/** The last day of each watch, in parts of 20 minutes. */
const PATH = "watch?points=72";

/** Hours before now that the axis of the last day names. */
const HOURS = [24, 12] as const;

/** Watches that the headline names. */
const MAX_NAMED = 3;

/** Rows that are drawn first, more than a screen shows; the others follow. */
const FIRST_ROWS = 60;

/** Tones in the order in which people look for them; null for a watch that has not run. */
const TONES = ["bad", "warn", "good", null] as const;

type ByTone = ReadonlyMap<(typeof TONES)[number], readonly WatchRow[]>;

/** All watches: the broken ones first, then the doubtful, then the rest, each with a line of its last day. */
export function WatchList() {
  const { result, problem } = useAnswer<Watches>(PATH);
  const [rows, setRows] = useState(FIRST_ROWS);
  const isDrawn = result !== undefined;
  useEffect(() => {
    if (isDrawn) requestAnimationFrame(() => setTimeout(() => setRows(Infinity)));
  }, [isDrawn]);
  if (!result) return <Unanswered problem={problem} />;
  const { watches, details } = result;
  const byTone: ByTone = Map.groupBy(watches, ({ verdict }) => verdict && toneOf(verdict.code));
  const problems = details.wrong.map(({ line, text }) => `Line ${line} of the file: ${text}`);
  if (details.problem) problems.unshift(`No history is kept now: ${details.problem}`);
  const times = HOURS.map((ago) => new Date(Date.now() - ago * 3_600_000).toISOString());
  const axis = [...times.map((at) => at.slice(11, 16)), "now"].map((text) => <span>{text}</span>);
  const lines = watches.map(({ name, everySeconds }) => `${name} every=${everySeconds}s`);
  return (
    <>
      <Answer {...aboutAll(watches, byTone, details.flaps)} />
      {problems.map((text) => (
        <p class="stamp bad">{text}</p>
      ))}
      <table class="small watches">
        <thead>
          <tr>
            {["Works", "Target", "Now", axis, "Median", "Loss", "Changes"].map((heading) => (
              <th scope="col">{heading}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {TONES.flatMap((tone) => byTone.get(tone) ?? [])
            .slice(0, rows)
            .map((watch) => rowOf(watch, details.days?.[watch.name]))}
        </tbody>
      </table>
      <section class="part">
        <h2 class="side soft">More</h2>
        <div class="more">
          <details>
            <summary>The file of watches</summary>
            <pre>{lines.join("\n")}</pre>
          </details>
          <Copy text={() => JSON.stringify(result)} label="Copy JSON" />
        </div>
      </section>
    </>
  );
}

/** The answer about all watches: about the broken ones, or else the doubtful ones. */
function aboutAll(watches: readonly WatchRow[], byTone: ByTone, flaps: number) {
  const tone = TONES.find((each) => byTone.has(each)) ?? null;
  const rows = byTone.get(tone) ?? [];
  const names = rows.slice(0, MAX_NAMED).map(titleOf);
  if (rows.length > MAX_NAMED) names.push("others");
  const only = rows.length === 1 && rows[0]?.verdict;
  const others = tone === "bad" && byTone.get("warn");
  const last = watches.map(({ last }) => last?.at ?? "").toSorted();
  const changes = watches.reduce((sum, { changes }) => sum + changes.day, 0);
  const words = {
    bad: only ? "One is broken." : `${rows.length} are broken.`,
    warn: only ? "One needs a look." : `${rows.length} need a look.`,
    good: byTone.has(null) ? "So far, all work." : "All work.",
    none: rows.length > 0 ? "Nothing has run yet." : "Nothing is watched.",
  };
  return {
    tone,
    word: words[tone ?? "none"],
    headline:
      tone === "good" || tone === null ? "" : only ? sinceText(only) : `${listText(names)}.`,
    above: `${watches.length} watched${last.at(-1) ? `, last run ${timeText(`${last.at(-1)}`)} UTC` : ""}`,
    evidence: `${others ? `${plural(others.length, "other")} may need a look. ` : ""}${plural(changes, "confirmed change")} in the last day${flaps > 0 ? `; ${flaps} more did not come again` : ""}.`,
  };
}

function rowOf(watch: WatchRow, day: WatchDay | undefined) {
  const { name, verdict, last, changes } = watch;
  const tone = verdict ? toneOf(verdict.code) : "soft";
  // The title that the sentence begins with is in the column before.
  const now = sentencesOf(verdict?.text ?? "")[0].replace(`${titleOf(watch)} `, "");
  return (
    <tr key={name} class={tone === "good" ? "quiet" : ""}>
      <td class={tone}>
        <b>{verdict ? answerOf(verdict.code) : "No run yet"}</b>
      </td>
      <td>
        <a class="ink" href={watchHash({ name, hours: SPANS.Week, change: null })}>
          <b>{titleOf(watch)}</b>
        </a>
        <p class="soft">{mannerText(watch, toolOf(watch.tool))}</p>
      </td>
      <td>
        {capitalized(now)}
        <p class="soft">{verdict && `since ${timeText(verdict.since)}`}</p>
      </td>
      <td>{day && dayLine(day)}</td>
      <td>{last?.rtt == null ? "–" : `${formatMs(last.rtt)} ms`}</td>
      <td class={last?.loss ? "bad" : "soft"}>
        {last?.loss == null ? "–" : formatPercent(last.loss)}
      </td>
      <td class={changes.day > 0 ? "" : "soft"}>{changes.day}</td>
    </tr>
  );
}

/**
 * Round-trip times from 0 to twice their median, loss as ticks, broken as a bar on the base line, no run as dots; a
 * triangle above where a change was confirmed.
 */
function dayLine({ rtt, loss, bad, changed }: WatchDay) {
  const middle = median(rtt.filter((ms) => ms !== null)) || 1;
  // In halves of a pixel.
  const y = (ms: number) => Math.max(0, Math.round(60 - (30 * ms) / middle)) / 2;
  return (
    <svg class="day" height="32" aria-hidden="true">
      <svg
        class="lines"
        height="32"
        viewBox={`0 0 ${rtt.length} 30`}
        preserveAspectRatio="none"
        aria-hidden="true"
      >
        {paths({
          line: rtt.map((ms, at) =>
            ms === null ? "" : rtt[at - 1] == null ? `M${at} ${y(ms)}h.1` : `L${at} ${y(ms)}`,
          ),
          bad: loss.map((percent, at) =>
            percent && !bad[at] ? `M${at} 30v${-Math.max(4, 0.3 * percent)}` : "",
          ),
          "bad thick": bad.map((is, at) => (is ? `M${at} 27h1` : "")),
          soft: bad.map((is, at) => (is === null ? `M${at} 28h.5` : "")),
        })}
      </svg>
      {changed.map((at) => (
        <svg x={`${(100 * at) / rtt.length}%`} aria-hidden="true">
          <path d="M-4 0h8l-4 5z" />
        </svg>
      ))}
    </svg>
  );
}
