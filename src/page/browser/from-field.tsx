import { ALL } from "./by-location.ts";
import { ProblemOf } from "./parts.tsx";
import type { Place } from "./place.ts";
import { CALLER } from "./state.ts";
import { TEXTS } from "./texts.ts";

const T = TEXTS.from;

/** The parameter that says which locations measure. */
export const FROM = { name: "from", label: T.label, default: "" };

/** The locations that can be chosen: those that the service knew when it sent the page, and those of the place. */
export function choicesFor({ parameters }: Place): string[] {
  const { locations } = CALLER;
  const { from = FROM.default } = parameters;
  const all = locations.length > 1 ? [ALL] : [];
  return [...new Set([...all, ...locations, ...from.split(",")])].filter((name) => name !== "");
}

/** A choice of any number of locations; without one, the service itself measures. */
export function FromField(props: {
  choices: readonly string[];
  value: string;
  onValue: (value: string) => void;
  problem: string | null;
}) {
  const { choices, value, onValue, problem } = props;
  const chosen = new Set(value.split(","));
  const choose = (name: string, isChosen: boolean) => {
    const next = isChosen ? chosen.union(new Set([name])) : chosen.difference(new Set([name]));
    // Every location, or some of them by name.
    const isAll = name === ALL && isChosen;
    onValue(isAll ? ALL : choices.filter((each) => each !== ALL && next.has(each)).join(","));
  };
  return (
    <fieldset
      id={FROM.name}
      class="from"
      aria-describedby={problem ? `${FROM.name}-hint ${FROM.name}-problem` : `${FROM.name}-hint`}
    >
      <legend>{T.label}</legend>
      <div class="choices">
        {choices.map((name) => (
          <label class="check">
            <input
              type="checkbox"
              name={FROM.name}
              value={name}
              checked={chosen.has(name)}
              onChange={(event: Event) => choose(name, (event.target as HTMLInputElement).checked)}
            />{" "}
            {name === ALL ? T.all : name}
          </label>
        ))}
      </div>
      <p class="hint" id={`${FROM.name}-hint`}>
        {T.hint}
      </p>
      <ProblemOf name={FROM.name} problem={problem} />
    </fieldset>
  );
}
