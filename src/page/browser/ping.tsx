import { formatMs, formatPercent } from "./numbers.ts";
import { Facts } from "./parts.tsx";
import { PingChart } from "./ping-chart.tsx";
import { type Place, queryOf } from "./place.ts";
import { pingText } from "./reports.ts";
import { noteOf, samplesOf, statsOf } from "./samples.ts";
import type { Run, Work } from "./state.ts";
import { Route, TargetTool } from "./target-tool.tsx";
import { TEXTS } from "./texts.ts";
import type { PingResult, Sample } from "./types.ts";
import type { View } from "./views.tsx";

const T = TEXTS.ping;

const OPTIONS = [{ name: "count", label: T.count, default: "4" }];

/** Milliseconds between two pings of a run that goes on. */
const REPEAT_MS = 1000;

/** Samples that a run that goes on shows. */
const SHOWN = 60;

function onAndOn({ path }: Work): Work {
  const [base, query] = path.split("?");
  const parameters = Object.fromEntries(new URLSearchParams(query));
  const once = `${base}${queryOf({ ...parameters, count: "1" })}`;
  return { path: once, hasParts: true, repeatMs: REPEAT_MS };
}

/** Round-trip times as they come. */
export function PingTool(props: { place: Place; current: Run | null }) {
  return (
    <TargetTool
      {...props}
      endpoint="ping"
      options={OPTIONS}
      more={(start) => (
        <button type="button" class="second" onClick={() => start(onAndOn)}>
          {TEXTS.runOn}
        </button>
      )}
      viewOf={(run) => viewOf(props.place, run)}
    />
  );
}

function viewOf(place: Place, current: Run | null): View {
  const samples = samplesOf(current);
  const result = current?.result as PingResult | null;
  const timeoutMs = result?.details.timeout ?? null;
  const stats = statsOf(samples);
  return {
    status: (
      <>
        {current && !current.isRunning && samples.length > 0 && T.done(stats.received, stats.sent)}
        {current?.isRunning && samples.length === 0 && T.waiting}
      </>
    ),
    body: (
      <>
        {result && <Route ip={result.ip} details={result.details} />}
        {samples.length > 0 && (
          <>
            <Stats stats={stats} duplicates={result?.details.duplicates ?? 0} />
            {stats.received > 0 && (
              <PingChart samples={samples.slice(-SHOWN)} count={columnsOf(place, samples)} />
            )}
            <Samples samples={samples.slice(-SHOWN)} timeoutMs={timeoutMs} />
          </>
        )}
      </>
    ),
    text: result && (() => pingText(result, samples)),
  };
}

function columnsOf({ parameters }: Place, samples: readonly Sample[]): number {
  const asked = Number(parameters["count"] ?? 4);
  return Math.min(SHOWN, Math.max(asked, samples.length));
}

function Stats({ stats, duplicates }: { stats: ReturnType<typeof statsOf>; duplicates: number }) {
  const time = (ms: number | null) => (ms === null ? TEXTS.none : `${formatMs(ms)} ${TEXTS.ms}`);
  const loss = formatPercent(stats.lossPercent);
  return (
    <div class="stats">
      <Facts
        rows={[
          [T.min, time(stats.min)],
          [T.mean, time(stats.mean)],
          [T.max, time(stats.max)],
          [T.received, `${stats.received}/${stats.sent}`],
          [T.loss, <span class={stats.lossPercent > 0 ? "bad" : ""}>{loss}</span>],
        ]}
      />
      {duplicates > 0 && <p class="problem">{T.duplicates(duplicates)}</p>}
    </div>
  );
}

function Samples({ samples, timeoutMs }: { samples: readonly Sample[]; timeoutMs: number | null }) {
  const notes = samples.map((sample) => noteOf(sample, timeoutMs));
  return (
    <table class="samples">
      <thead>
        <tr>
          <th scope="col">{T.seq}</th>
          <th scope="col">{T.rtt}</th>
          <th scope="col">{T.hopLimit}</th>
          {notes.some(Boolean) && <th scope="col">{T.note}</th>}
        </tr>
      </thead>
      <tbody>
        {samples.map((sample, index) => (
          <tr class={"reason" in sample ? "lost" : ""}>
            <td>{sample.seq}</td>
            <td>{"reason" in sample ? "–" : `${sample.rtt.toFixed(3)} ${TEXTS.ms}`}</td>
            <td>{"reason" in sample ? "–" : sample.ttl}</td>
            {notes.some(Boolean) && <td class="note">{notes[index]}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
