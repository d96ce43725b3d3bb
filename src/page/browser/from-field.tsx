import type { Bookmark } from "./bookmark.ts";
import { CALLER } from "./caller.ts";
import { type FieldProps, ProblemOf } from "./fields.tsx";
import { Tick } from "./pictures/parts.tsx";
import { TEXTS } from "./texts.ts";

const T = TEXTS.from;

const { name: FROM, all: ALL, names: NAMES, tags: TAGS } = CALLER.from;

/** All that can be chosen: the locations and tags that the service knew when it sent the page, and those of the bookmark. */
export function choicesFor({ options }: Bookmark): string[] {
  const all = NAMES.length > 1 ? [ALL] : [];
  const named = (options[FROM] ?? "").split(",");
  return [...new Set([...all, ...NAMES, ...TAGS, ...named])].filter((name) => name !== "");
}

/** A choice of any number of locations; without one, the service itself measures. */
export function FromField(props: FieldProps & { choices: readonly string[] }) {
  const { choices, value, onValue, problem } = props;
  const chosen = value.split(",");
  const choose = (name: string, isChosen: boolean) => {
    const isNext = (each: string) => (each === name ? isChosen : chosen.includes(each));
    // Every location, or some of them by name.
    const isAll = name === ALL && isChosen;
    onValue(isAll ? ALL : choices.filter((each) => each !== ALL && isNext(each)).join(","));
  };
  return (
    <fieldset id={FROM} class="from" aria-describedby={`${FROM}-hint ${FROM}-problem`}>
      <legend>{T.label}</legend>
      <div class="choices">
        {choices.map((name) => (
          <Tick
            name={FROM}
            value={name}
            checked={chosen.includes(name)}
            label={name === ALL ? T.all : TAGS.includes(name) ? T.tag(name) : name}
            onTick={(isChosen) => choose(name, isChosen)}
          />
        ))}
      </div>
      <p class="hint" id={`${FROM}-hint`}>
        {T.hint}
      </p>
      <ProblemOf name={FROM} problem={problem} />
    </fieldset>
  );
}
