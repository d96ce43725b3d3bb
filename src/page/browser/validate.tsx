import { useEffect, useRef, useState } from "hono/jsx/dom";
import { Below, Countdown, Field, problemAt, useCountdown } from "./parts.tsx";
import type { Place } from "./place.ts";
import { type Run, run } from "./state.ts";
import { TEXTS } from "./texts.ts";
import type { Validation } from "./types.ts";
import { ValidationResult } from "./validation.tsx";

/** Milliseconds without a key pressed, after which the text is checked. */
const PAUSE_MS = 250;

/** What an address is, as one types it. */
export function ValidateTool({ place, current }: { place: Place; current: Run | null }) {
  const [text, setText] = useState(place.subject);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const check = (subject: string) => {
    const path = `validate?address=${encodeURIComponent(subject).replaceAll("%3A", ":")}`;
    void run(
      { tool: "validate", subject, parameters: {} },
      { path, hasParts: false, replace: true },
    );
  };
  const change = (value: string) => {
    setText(value);
    clearTimeout(timer.current ?? undefined);
    if (value !== "") timer.current = setTimeout(() => check(value), PAUSE_MS);
  };
  useEffect(() => {
    setText(place.subject);
    if (place.subject !== "" && current === null) check(place.subject);
  }, [place.subject]);
  const seconds = useCountdown(current);
  const problem = problemAt(current, "", ["key"]);
  const validation = current?.result as Validation | null | undefined;
  const submit = (event: Event) => {
    event.preventDefault();
    clearTimeout(timer.current ?? undefined);
    check(text);
  };
  return (
    <>
      <form class="form" onSubmit={submit}>
        <Field
          name="address"
          label={TEXTS.validate.label}
          value={text}
          onValue={change}
          hint={TEXTS.validate.hint}
          example={TEXTS.validate.example}
          problem={problem}
        />
      </form>
      <Countdown seconds={seconds} />
      <div id="result" aria-live="polite">
        {validation ? <ValidationResult validation={validation} /> : null}
      </div>
      {current && (
        <Below place={place} path={current.path} needsKey={false} result={current.result} />
      )}
    </>
  );
}
