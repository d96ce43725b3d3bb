import { useLayoutEffect, useState } from "hono/jsx/dom";
import type { PageTool } from "../caller.ts";
import type { Bookmark } from "./bookmark.ts";
import { CALLER, defaultsOf } from "./caller.ts";
import { OptionField, ProblemOf, TextField } from "./fields.tsx";
import { choicesFor, FromField } from "./from-field.tsx";
import { storeKey } from "./key.ts";
import { KeyFields } from "./key-fields.tsx";
import type { View } from "./pictures/picture.ts";
import type { Run } from "./run.ts";
import { run, stop } from "./state.ts";
import { targetIn } from "./target-text.ts";
import { viewOf } from "./views.ts";

/** Milliseconds without a key pressed, after which a tool that is asked as one types is asked. */
const PAUSE_MS = 250;

/** The name of the field for what a tool is asked about. */
const SUBJECT = "subject";

/** The name of the form as a whole, whose errors are all that no field caused. */
const FORM = "form";

const KEY = "key";

/** The name of the button for a run that goes on. */
const REPEAT = "repeat";

const FROM = CALLER.from.name;

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
  const [note, setNote] = useState("");
  const { isAskedAsTyped, needsKey } = tool;
  const { repeat } = viewOf(tool.name);
  const isRunning = current?.state === "running";
  const defaults: Bookmark["options"] = { ...defaultsOf(tool), [FROM]: "" };
  const chosenOf = (name: string) => options[name] ?? defaults[name] ?? "";
  const fields = tool.options.filter(
    ({ goesWith: other }) => !other || chosenOf(other) !== defaults[other],
  );
  const locations = tool.hasFrom ? choicesFor(bookmark) : [];
  const names = [...fields.map(({ name }) => name), ...(locations.length > 0 ? [FROM] : [])];
  const start = (repeat?: View["repeat"]) => {
    const chosen = names
      .map((name) => [name, chosenOf(name)] as const)
      .filter(([name, value]) => value !== defaults[name]);
    // White space is no part of an address, which is said while one types.
    const target = isAskedAsTyped ? subject : targetIn(subject);
    const isTaken = !isAskedAsTyped && target !== subject.trim();
    setNote(isTaken ? `“${target}” was taken out of “${subject.trim()}”.` : "");
    const options = Object.fromEntries(chosen);
    void run({ tool: tool.name, subject: target, options }, repeat);
  };
  const write = (text: string) => {
    setSubject(text);
    setNote("");
  };
  // At once, or it takes back what was typed or chosen since the form is there.
  useLayoutEffect(() => {
    setSubject(bookmark.subject);
    setOptions(bookmark.options);
  }, [bookmark]);
  // At once too, or the timer of a text that is already longer is never cleared.
  useLayoutEffect(() => {
    const isAsked = subject === bookmark.subject && current !== null;
    if (!isAskedAsTyped || subject === "" || isAsked) return;
    const timer = setTimeout(start, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [bookmark, subject]);
  const submit = (event: Event) => {
    event.preventDefault();
    const { target, submitter } = event as SubmitEvent;
    const form = new FormData(target as HTMLFormElement, submitter);
    const key = form.get(KEY);
    if (key !== null) storeKey({ key: `${key}`, onDevice: form.has("onDevice") });
    start(form.has(REPEAT) ? repeat : undefined);
  };
  const asksKey = needsKey && CALLER.needsKey;
  const problemAt = problemsBy(current, [...names, ...(asksKey ? [KEY] : [])]);
  const field = (name: string) => ({
    value: chosenOf(name),
    onValue: (value: string) => setOptions({ ...options, [name]: value }),
    problem: problemAt(name),
  });
  const main = { name: SUBJECT, value: subject, onValue: write, problem: problemAt(SUBJECT) };
  return (
    <form class="form cluster" onSubmit={submit}>
      {tool.subject && <TextField {...tool.subject} {...main} {...(note && { hint: note })} />}
      {fields.map((option) => (
        <OptionField option={option} {...field(option.name)} />
      ))}
      {locations.length > 0 && <FromField choices={locations} {...field(FROM)} />}
      {asksKey && <KeyFields problem={problemAt(KEY)} />}
      {!isAskedAsTyped && (
        <div class="buttons cluster">
          {isRunning ? (
            <button key="stop" type="button" class="main" onClick={stop}>
              Stop
            </button>
          ) : (
            <button key="run" type="submit" class="main">
              {current ? "Run again" : "Run"}
            </button>
          )}
          {repeat && (
            <button key="repeat" type="submit" name={REPEAT} disabled={isRunning}>
              {repeat.label}
            </button>
          )}
        </div>
      )}
      <ProblemOf name={FORM} problem={problemAt(FORM)} />
    </form>
  );
}

/** The codes of errors that are about what a tool is asked. */
const ABOUT_SUBJECT =
  /^(?:INVALID_(?:ADDRESS|HOSTNAME)|TARGET_NOT_|HOSTNAME_NOT_|NO_IPV6_|NETWORK_UNREACHABLE)/;

/** The message of a run's error, for the field that it is about, or for the form. */
function problemsBy(current: Run | null, fields: readonly string[]) {
  const { code = null, message = "", details } = current?.problem ?? {};
  const about = code?.startsWith("LOCATION_") ? FROM : code === "UNAUTHORIZED" ? KEY : SUBJECT;
  const named = code === "INVALID_PARAMETER" ? details?.parameter : about;
  const isSubject = ABOUT_SUBJECT.test(code ?? "");
  const cause = isSubject || (named && fields.includes(named)) ? named : FORM;
  return (field: string) => (field === cause && message ? message : null);
}
