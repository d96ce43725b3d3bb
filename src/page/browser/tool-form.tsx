import { useEffect, useRef, useState } from "hono/jsx/dom";
import type { PageTool } from "../caller.ts";
import type { Bookmark } from "./bookmark.ts";
import { CALLER, defaultsOf } from "./caller.ts";
import { OptionField, TextField } from "./fields.tsx";
import { choicesFor, FromField } from "./from-field.tsx";
import { type Key, storeKey } from "./key.ts";
import { KeyFields } from "./key-fields.tsx";
import type { Run } from "./run.ts";
import { keyChanged, type Manner, run, stop } from "./state.ts";
import { TEXTS } from "./texts.ts";
import { viewOf } from "./views.ts";

/** Milliseconds without a key pressed, after which a tool that is asked as one types is asked. */
const PAUSE_MS = 250;

/** The name of the field for what a tool is asked about, whose errors are all that no other field caused. */
const SUBJECT = "subject";

const KEY = "key";

const FROM = CALLER.from.name;

const NO_KEY: Key = { key: "", onDevice: false };

/** A tool, what it is asked, and its run if there was one. */
export interface ToolProps {
  tool: PageTool;
  bookmark: Bookmark;
  current: Run | null;
}

/** The fields of a tool, its key if it needs one, and what starts it. */
export function ToolForm({ tool, bookmark, current }: ToolProps) {
  const [subject, setSubject] = useState(bookmark.subject);
  const [options, setOptions] = useState(bookmark.options);
  const [typed, setTyped] = useState(NO_KEY);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const seconds = useCountdown(current);
  const mustWait = seconds !== null && seconds > 0;
  const { isAskedAsTyped, needsKey } = tool;
  const { repeat } = viewOf(tool.name);
  const isRunning = current?.state === "running";
  const defaults: Bookmark["options"] = { ...defaultsOf(tool), [FROM]: "" };
  const start = (asked: string, manner: Manner = {}) => {
    clearTimeout(timer.current);
    if (typed.key !== "") {
      storeKey(typed);
      setTyped(NO_KEY);
      keyChanged();
    }
    const chosen = Object.entries(defaults).flatMap(([name, value]) => {
      const own = options[name] ?? value;
      return own === value ? [] : [[name, own]];
    });
    // White space is no part of an address, which is said while one types.
    const subject = isAskedAsTyped ? asked : asked.trim();
    void run({ tool: tool.name, subject, options: Object.fromEntries(chosen) }, manner);
  };
  const write = (text: string) => {
    setSubject(text);
    clearTimeout(timer.current);
    if (!isAskedAsTyped || text === "") return;
    timer.current = setTimeout(() => start(text, { replaces: true }), PAUSE_MS);
  };
  useEffect(() => {
    setSubject(bookmark.subject);
    setOptions(bookmark.options);
    if (isAskedAsTyped && bookmark.subject !== "" && current === null) start(bookmark.subject);
  }, [bookmark]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!mustWait) start(subject);
  };
  const locations = tool.hasFrom ? choicesFor(bookmark) : [];
  const problemAt = problemsBy(current, [
    ...tool.options.map(({ name }) => name),
    ...(locations.length > 0 ? [FROM] : []),
    ...(needsKey && CALLER.needsKey ? [KEY] : []),
  ]);
  const field = (name: string) => ({
    value: options[name] ?? defaults[name] ?? "",
    onValue: (value: string) => setOptions({ ...options, [name]: value }),
    problem: problemAt(name),
  });
  const main = { name: SUBJECT, value: subject, onValue: write, problem: problemAt(SUBJECT) };
  return (
    <form class="form" onSubmit={submit}>
      {tool.subject && <TextField {...tool.subject} {...main} />}
      {tool.options.map((option) => (
        <OptionField option={option} {...field(option.name)} />
      ))}
      {locations.length > 0 && <FromField choices={locations} {...field(FROM)} />}
      {needsKey && CALLER.needsKey && (
        <KeyFields value={typed} onValue={setTyped} problem={problemAt(KEY)} />
      )}
      {!isAskedAsTyped && (
        <div class="buttons">
          {isRunning ? (
            <button key="stop" type="button" class="main" onClick={stop}>
              {TEXTS.stop}
            </button>
          ) : (
            <button key="run" type="submit" class="main" disabled={mustWait}>
              {current ? TEXTS.runAgain : TEXTS.run}
            </button>
          )}
          {!isRunning && repeat && (
            <button
              key="repeat"
              type="button"
              class="second"
              disabled={mustWait}
              onClick={() => start(subject, { repeat })}
            >
              {repeat.label}
            </button>
          )}
        </div>
      )}
      {seconds !== null && (
        <p class="countdown" role="timer">
          {seconds > 0 ? TEXTS.retryIn(seconds) : TEXTS.retryNow}
        </p>
      )}
    </form>
  );
}

/** The message of a run's error, for the field that caused it. */
function problemsBy(current: Run | null, fields: readonly string[]) {
  const { code = null, message = "", details } = current?.problem ?? {};
  const named =
    code === "INVALID_PARAMETER"
      ? details?.parameter
      : code === "UNAUTHORIZED"
        ? KEY
        : code?.startsWith("LOCATION_")
          ? FROM
          : undefined;
  const cause = named !== undefined && fields.includes(named) ? named : SUBJECT;
  return (field: string) => (message !== "" && field === cause ? message : null);
}

/** The seconds until a caller over its limit may call again, or null. */
function useCountdown(current: Run | null): number | null {
  const wait = current?.problem?.details?.retryAfterSeconds ?? null;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (wait === null) return;
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, [current?.endedMs]);
  if (wait === null || current === null || current.state === "running") return null;
  const { endedMs } = current;
  return Math.max(0, Math.ceil((endedMs + wait * 1000 - Math.max(now, endedMs)) / 1000));
}
