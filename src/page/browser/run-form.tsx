import { type Child, useEffect, useState } from "hono/jsx/dom";
import { choicesFor, FROM, FromField } from "./from-field.tsx";
import { storeKey } from "./key.ts";
import { KeyFields } from "./key-fields.tsx";
import { Countdown, Field, ProblemOf, problemAt, useCountdown } from "./parts.tsx";
import type { Place } from "./place.ts";
import { CALLER, keyChanged, type Run, run, stop, type Work } from "./state.ts";
import { TEXTS } from "./texts.ts";

/** An input beside the main one. */
export interface Option {
  readonly name: string;
  readonly label: string;
  readonly default: string;
  /** Its choices; a number if there are none. */
  readonly choices?: readonly string[];
}

/** Further buttons, which get what runs a changed work at the place that the inputs mean. */
export type StartButtons = (start: (change: (work: Work) => Work) => void) => Child;

interface RunFormProps {
  place: Place;
  current: Run | null;
  needsKey: boolean;
  label: string;
  hint: string;
  example: string;
  options: readonly Option[];
  workOf: (place: Place) => Work;
  more?: StartButtons;
}

/** The inputs of a tool that runs when it is told to, and its key if it needs one. */
export function RunForm(props: RunFormProps) {
  const { place, current, label, hint, example, workOf, more } = props;
  const [subject, setSubject] = useState(place.subject);
  const [chosen, setChosen] = useState(place.parameters);
  const [key, setKey] = useState("");
  const [onDevice, setOnDevice] = useState(false);
  useEffect(() => {
    setSubject(place.subject);
    setChosen(place.parameters);
  }, [place]);
  const locations = choicesFor(place);
  const options = locations.length > 0 ? [...props.options, FROM] : props.options;
  const needsKey = props.needsKey && CALLER.needsKey;
  const seconds = useCountdown(current);
  const isRunning = current?.isRunning ?? false;
  const start = (change: (work: Work) => Work = (work) => work) => {
    if (key !== "") {
      storeKey(key.trim(), onDevice);
      setKey("");
      keyChanged();
    }
    const known = options.filter(
      (option) => (chosen[option.name] ?? option.default) !== option.default,
    );
    const parameters = Object.fromEntries(
      known.map(({ name }) => [name, chosen[name] ?? ""] as const),
    );
    const next = { tool: place.tool, subject: subject.trim(), parameters };
    void run(next, change(workOf(next)));
  };
  const submit = (event: Event) => {
    event.preventDefault();
    start();
  };
  const names = [...options.map(({ name }) => name), ...(needsKey ? ["key"] : [])];
  return (
    <form class="form" onSubmit={submit}>
      <Field
        name="subject"
        label={label}
        value={subject}
        onValue={setSubject}
        hint={hint}
        example={example}
        problem={problemAt(current, "", names)}
      />
      {props.options.map((option) => (
        <OptionField
          option={option}
          value={chosen[option.name] ?? option.default}
          onValue={(value) => setChosen({ ...chosen, [option.name]: value })}
          problem={problemAt(current, option.name)}
        />
      ))}
      {locations.length > 0 && (
        <FromField
          choices={locations}
          value={chosen[FROM.name] ?? FROM.default}
          onValue={(value) => setChosen({ ...chosen, [FROM.name]: value })}
          problem={problemAt(current, FROM.name)}
        />
      )}
      {needsKey && (
        <KeyFields
          value={key}
          onValue={setKey}
          onDevice={onDevice}
          onOnDevice={setOnDevice}
          problem={problemAt(current, "key")}
        />
      )}
      <div class="buttons">
        {isRunning ? (
          <button type="button" class="main" onClick={stop}>
            {TEXTS.stop}
          </button>
        ) : (
          <button type="submit" class="main" disabled={seconds !== null && seconds > 0}>
            {current ? TEXTS.runAgain : TEXTS.run}
          </button>
        )}
        {!isRunning && more?.(start)}
      </div>
      <Countdown seconds={seconds} />
    </form>
  );
}

function OptionField(props: {
  option: Option;
  value: string;
  onValue: (value: string) => void;
  problem: string | null;
}) {
  const { option, value, onValue, problem } = props;
  const { name, label, choices } = option;
  const told = {
    "aria-invalid": problem ? ("true" as const) : undefined,
    "aria-describedby": problem ? `${name}-problem` : undefined,
  };
  if (choices === undefined) {
    const shared = { name, label, value, onValue, problem, isOptional: option.default === "" };
    return <Field {...shared} kind="number" />;
  }
  if (choices.length === 2) {
    const [off = "", on = ""] = choices;
    return (
      <div class="check">
        <label class="check">
          <input
            id={name}
            type="checkbox"
            checked={value === on}
            onChange={(event: Event) =>
              onValue((event.target as HTMLInputElement).checked ? on : off)
            }
            {...told}
          />{" "}
          {label}
        </label>
        <ProblemOf name={name} problem={problem} />
      </div>
    );
  }
  return (
    <div class="field choice">
      <label for={name}>{label}</label>
      <select
        id={name}
        value={value}
        onChange={(event: Event) => onValue((event.target as HTMLSelectElement).value)}
        {...told}
      >
        {choices.map((choice) => (
          <option value={choice} selected={choice === value}>
            {choice}
          </option>
        ))}
      </select>
      <ProblemOf name={name} problem={problem} />
    </div>
  );
}
