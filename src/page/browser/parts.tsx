import { type Child, useEffect, useState } from "hono/jsx/dom";
import { urlOf } from "./api.ts";
import { hashOf, type Place } from "./place.ts";
import type { Run } from "./state.ts";
import { TEXTS } from "./texts.ts";

/** Milliseconds for which a button says that it has copied. */
const COPIED_MS = 1500;

/** A button that copies a text. */
export function Copy({ text, what, label }: { text: () => string; what?: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  const name = what === undefined ? undefined : TEXTS.copyThis(what);
  return (
    <button type="button" class={label ? "plain" : "copy"} aria-label={name} onClick={copy}>
      <span aria-live="polite">{isCopied ? TEXTS.copied : (label ?? TEXTS.copy)}</span>
    </button>
  );
}

/** Without HTTPS, browsers have no clipboard for pages but this one. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return await navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** A name or an address, which breaks behind its dots and colons rather than anywhere. */
export function Breakable({ text }: { text: string }) {
  const pieces = text.split(/(?<=[.:])/);
  return (
    <>
      {pieces.map((piece) => (
        <>
          {piece}
          <wbr />
        </>
      ))}
    </>
  );
}

/** A value with its button. */
export function Value({ text, what }: { text: string; what?: string }) {
  return (
    <span class="value">
      <span class="mono">
        <Breakable text={text} />
      </span>{" "}
      <Copy text={() => text} what={what ?? text} />
    </span>
  );
}

/** Rows of a name and what it is; those without a value are left out. */
export function Facts({ rows }: { rows: readonly (readonly [name: string, value: Child])[] }) {
  const known = rows.filter(([, value]) => value !== null && value !== undefined);
  return (
    <dl class="facts">
      {known.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface FieldProps {
  name: string;
  label: string;
  value: string;
  onValue: (value: string) => void;
  hint?: string | undefined;
  example?: string;
  problem?: string | null;
  kind?: "text" | "number" | "password";
  /** Whether it may be empty. */
  isOptional?: boolean;
}

/** The error that a field caused. */
export function ProblemOf({ name, problem }: { name: string; problem: string | null }) {
  if (problem === null) return null;
  return (
    <p class="problem" id={`${name}-problem`} role="alert">
      {problem}
    </p>
  );
}

/** A text field with its label, its hint, and the error that it caused. */
export function Field(props: FieldProps) {
  const {
    name,
    label,
    value,
    onValue,
    hint,
    example,
    problem,
    kind = "text",
    isOptional = false,
  } = props;
  const described = [hint && `${name}-hint`, problem && `${name}-problem`].filter(Boolean);
  return (
    <div class={`field ${kind}`}>
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        type={kind === "password" ? "password" : "text"}
        inputmode={kind === "number" ? "numeric" : undefined}
        value={value}
        placeholder={example}
        required={!isOptional}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-invalid={problem ? "true" : undefined}
        aria-describedby={described.length > 0 ? described.join(" ") : undefined}
        onInput={(event: Event) => onValue((event.target as HTMLInputElement).value)}
      />
      {hint && (
        <p class="hint" id={`${name}-hint`}>
          {hint}
        </p>
      )}
      <ProblemOf name={name} problem={problem ?? null} />
    </div>
  );
}

/** The seconds until a caller over its limit may call again, or null. */
export function useCountdown(run: Run | null): number | null {
  const problem = run?.problem;
  const wait =
    problem?.code === "RATE_LIMITED" || problem?.code === "TOO_MANY_PROBES"
      ? problem.details.retryAfterSeconds
      : null;
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (wait === null) return;
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, [run?.endedMs]);
  if (wait === null || run === null || run.isRunning) return null;
  return Math.max(0, Math.ceil((run.endedMs + wait * 1000 - Math.max(now, run.endedMs)) / 1000));
}

/** What counts down after a 429. */
export function Countdown({ seconds }: { seconds: number | null }) {
  if (seconds === null) return null;
  return (
    <p class="countdown" role="timer">
      {seconds > 0 ? TEXTS.retryIn(seconds) : TEXTS.retryNow}
    </p>
  );
}

/** The message of a run's error, if the field caused it; the main field of a tool has all that no other has. */
export function problemAt(run: Run | null, field: string, others: readonly string[] = []) {
  const problem = run?.problem;
  if (!problem) return null;
  const cause =
    problem.code === "INVALID_PARAMETER"
      ? problem.details.parameter
      : problem.code === "UNAUTHORIZED"
        ? "key"
        : problem.code?.startsWith("LOCATION_")
          ? "from"
          : "";
  const isMine = cause === field || (others.length > 0 && !others.includes(cause));
  return isMine ? problem.message : null;
}

/** What can be done with a result: the same call from a shell, and the result as text, link and JSON. */
export function Below(props: {
  place: Place;
  path: string;
  needsKey: boolean;
  result: object | null;
  text?: () => string;
}) {
  const { place, path, needsKey, result, text } = props;
  const key = needsKey ? `-H "X-API-Key: $SIXSCOPE_KEY" ` : "";
  const command = `curl ${key}'${urlOf(path)}'`;
  const save = () => {
    const url = URL.createObjectURL(
      new Blob([`${JSON.stringify(result, null, 2)}\n`], { type: "application/json" }),
    );
    const link = document.createElement("a");
    link.href = url;
    link.download = `${place.tool}-${place.subject.replace(/[^\w.-]+/g, "_")}.json`;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <footer class="below">
      {result && (
        <p class="actions">
          {text && <Copy text={text} label={TEXTS.copyText} />}
          <Copy text={() => new URL(hashOf(place), document.baseURI).href} label={TEXTS.copyLink} />
          <button type="button" class="plain" onClick={save}>
            {TEXTS.download}
          </button>
        </p>
      )}
      <p class="label">{TEXTS.sameFromShell}</p>
      <p class="shell">
        <code>{command}</code> <Copy text={() => command} what={TEXTS.sameFromShell} />
      </p>
    </footer>
  );
}
