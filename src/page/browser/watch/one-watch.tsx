import { plural } from "../../../util/text.ts";
import type { Watches, WatchSeries } from "../../../watch/result.ts";
import { Shell } from "../shell.tsx";
import { Unanswered, useAnswer } from "./answer.tsx";
import { ChangeView } from "./change-view.tsx";
import { SPANS, type WatchPlace, watchHash } from "./place.ts";
import { type Mark, Timeline } from "./timeline.tsx";
import { mannerText, timeText, toneOf } from "./words.ts";

/** Parts of the time that is shown: one for two or three pixels. */
const POINTS = 336;

/** A watch: how it is, what it measured over a time, and its changes, of which one may be open. */
export function OneWatch({ place }: { place: WatchPlace }) {
  const { name, hours, change: open } = place;
  const path = `watch/${encodeURIComponent(name)}?since=${hours}h&points=${POINTS}`;
  const { result, problem } = useAnswer<WatchSeries>(path);
  const row = useAnswer<Watches>("watch").result?.watches.find((watch) => watch.name === name);
  const marks = result?.changes
    .filter(({ confirmed }) => confirmed)
    .map(
      (change, at): Mark => ({
        ...change,
        number: at + 1,
        hash: watchHash({ ...place, change: change.id }),
      }),
    );
  return (
    <>
      <p class="soft">
        <a href="#/watch">Watched</a> › {row ? mannerText(row) : name}
      </p>
      <h1 class="headline">{row?.target ?? name}</h1>
      {row?.verdict && (
        <p class={`verdict ${toneOf(row)}`}>
          {row.verdict.text} Since {timeText(row.verdict.since)}.
        </p>
      )}
      <nav class="spans cluster" aria-label="Time">
        {Object.entries(SPANS).map(([label, each]) => (
          <a
            href={watchHash({ ...place, hours: each })}
            aria-current={each === hours ? "true" : undefined}
          >
            {label}
          </a>
        ))}
      </nav>
      {marks === undefined || result === undefined ? (
        <Unanswered problem={problem} />
      ) : (
        <>
          <Timeline {...{ series: result.series, marks, open }} spanMs={hours * 3_600_000} />
          <h2>{plural(marks.length, "change")}</h2>
          <ol class="changes">
            {marks.toReversed().map(({ id, at, number, text, hash }) => (
              <li key={id}>
                <a
                  href={id === open ? watchHash({ ...place, change: null }) : hash}
                  aria-expanded={id === open ? "true" : "false"}
                >
                  {number}
                </a>{" "}
                <span class="soft">{timeText(at)}</span> {text}
                {id === open && (
                  <ChangeView path={`watch/${encodeURIComponent(name)}/changes/${id}`} />
                )}
              </li>
            ))}
          </ol>
        </>
      )}
      <Shell path={path} needsKey />
    </>
  );
}
