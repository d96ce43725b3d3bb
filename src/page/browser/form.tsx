import { useEffect, useLayoutEffect, useState } from "hono/jsx/dom";
import type { PageTool } from "../caller.ts";
import { type Bookmark, HOME, hashOf } from "./bookmark.ts";
import { CALLER, defaultsOf, toolOf } from "./caller.ts";
import { OptionField, TextField } from "./fields.tsx";
import { choicesFor, FromField, fromText } from "./from-field.tsx";
import { storedKey, storeKey } from "./key.ts";
import { KeyFields } from "./key-fields.tsx";
import type { View } from "./pictures/picture.ts";
import { FROM, KEY, problemsOf, SUBJECT } from "./problems.ts";
import type { Run } from "./run.ts";
import { placeOf, run, stop } from "./state.ts";
import { targetIn } from "./target-text.ts";
import { viewOf } from "./views.ts";

/** Milliseconds without a key press after which a tool that is asked as typed is asked. */
const PAUSE_MS = 250;

/** The name of the button for a run that goes on. */
const REPEAT = "repeat";

/** A tool, its question, and its run if there was one. */
export interface ToolProps {
  tool: PageTool;
  bookmark: Bookmark;
  current: Run | null;
}

/** The field for the target, the button that starts and stops the tool, the other tools, and the options behind two buttons. */
export function Form({ tool: shown, bookmark, current }: ToolProps) {
  const isFirst = shown.name === HOME;
  const tool = isFirst ? toolOf("check") : shown;
  const [subject, setSubject] = useState(bookmark.subject);
  const [options, setOptions] = useState(bookmark.options);
  const [note, setNote] = useState("");
  const [open, setOpen] = useState<"from" | "more" | null>(null);
  const [asksKey, setAsksKey] = useState(false);
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
  const problemAt = problemsOf(current, tool);
  const isKeyWanted = needsKey && CALLER.needsKey;
  const start = (repeat?: View["repeat"]) => {
    if (tool.subject && subject.trim() === "") return;
    if (isKeyWanted && storedKey() === null) return setAsksKey(true);
    setAsksKey(false);
    const chosen = names
      .map((name) => [name, chosenOf(name)] as const)
      .filter(([name, value]) => value !== defaults[name]);
    // The tool that is asked as typed says itself that white space is not part of an address.
    const target = isAskedAsTyped ? subject : targetIn(subject);
    const isTaken = !isAskedAsTyped && target !== subject.trim();
    setNote(isTaken ? `“${target}” was taken out of “${subject.trim()}”.` : "");
    void run({ tool: tool.name, subject: target, options: Object.fromEntries(chosen) }, repeat);
  };
  const write = (text: string) => {
    setSubject(text);
    setNote("");
  };
  // Not after the paint, or it would undo what the user types or chooses first.
  useLayoutEffect(() => {
    setSubject(bookmark.subject);
    setOptions(bookmark.options);
  }, [bookmark]);
  // Not after the paint either, or the timer of an older text is never cleared.
  useLayoutEffect(() => {
    const isAsked = subject === bookmark.subject && current !== null;
    if (!isAskedAsTyped || subject === "" || isAsked) return;
    const timer = setTimeout(start, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [bookmark, subject]);
  const isKeyRefused = problemAt(KEY) !== null;
  useEffect(() => {
    if (asksKey || isKeyRefused) document.getElementById(KEY)?.focus();
  }, [asksKey, isKeyRefused]);
  const submit = (event: Event) => {
    event.preventDefault();
    const { target, submitter } = event as SubmitEvent;
    const form = new FormData(target as HTMLFormElement, submitter);
    const key = form.get(KEY);
    if (key) storeKey({ key: `${key}`, onDevice: form.has("onDevice") });
    // The pressed button goes away.
    if (key || form.has(REPEAT)) document.getElementById(SUBJECT)?.focus();
    start(form.has(REPEAT) ? repeat : undefined);
  };
  // Return in a field asks anew, also during a run.
  const press = (event: Event) => {
    const isTyping = document.activeElement?.matches("input, select");
    // The second click of a double click does not undo the first.
    const isSecond = (event as MouseEvent).detail > 1;
    if (!isSecond && (!isRunning || isTyping)) return;
    event.preventDefault();
    if (!isSecond) stop();
  };
  const field = (name: string) => ({
    value: chosenOf(name),
    onValue: (value: string) => setOptions({ ...options, [name]: value }),
    problem: problemAt(name),
  });
  const isShown = (name: string) =>
    open === "more" || chosenOf(name) !== defaults[name] || problemAt(name) !== null;
  const shownFields = isFirst ? [] : fields.filter(({ name }) => isShown(name));
  const main = { name: SUBJECT, value: subject, onValue: write, problem: problemAt(SUBJECT) };
  const opener = (name: "from" | "more", label: string) => (
    <button
      type="button"
      class="opener"
      aria-expanded={open === name ? "true" : "false"}
      onClick={() => setOpen(open === name ? null : name)}
    >
      {label}
    </button>
  );
  return (
    <search>
      <form class="ask" onSubmit={submit}>
        <div class="line">
          {tool.subject && <TextField {...tool.subject} {...main} {...(note && { note })} />}
          {!isAskedAsTyped && (
            <button type="submit" class="main" onClick={press}>
              {isRunning ? "Stop" : tool.name === "check" ? tool.label : "Run"}
            </button>
          )}
        </div>
        {(asksKey || isKeyRefused) && <KeyFields problem={problemAt(KEY)} />}
        <div class="tools">
          <Tools current={shown.name} isFirst={isFirst} typed={targetIn(subject)} />
          {!isFirst && (
            <span class="openers">
              {repeat && !isRunning && (
                <button type="submit" name={REPEAT}>
                  {repeat.label}
                </button>
              )}
              {locations.length > 0 && opener("from", `From ${fromText(chosenOf(FROM))}`)}
              {(fields.length > 0 || isKeyWanted) && opener("more", "More")}
            </span>
          )}
        </div>
        {(shownFields.length > 0 || (open === "more" && isKeyWanted)) && (
          <div class="options">
            {shownFields.map((option) => (
              <OptionField option={option} {...field(option.name)} />
            ))}
            {open === "more" && isKeyWanted && !asksKey && <KeyFields problem={null} />}
          </div>
        )}
        {locations.length > 0 && (open === "from" || problemAt(FROM) !== null) && (
          <FromField choices={locations} {...field(FROM)} />
        )}
      </form>
    </search>
  );
}

/** The links to the tools, each with the typed text, or the last subject. */
function Tools(props: { current: string; isFirst: boolean; typed: string }) {
  const { current, isFirst, typed } = props;
  // A narrow screen shows some of them.
  useLayoutEffect(() => {
    const link = document.querySelector("nav[aria-label=Tools] [aria-current]");
    link?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current]);
  const tools = CALLER.tools.filter(({ name }) => name !== HOME && !(isFirst && name === "check"));
  return (
    <nav aria-label="Tools">
      {isFirst && <span class="soft">Or</span>}
      {tools.map(({ name, label }) => (
        <a href={hashOf(placeOf(name, typed))} aria-current={name === current ? "page" : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
}
