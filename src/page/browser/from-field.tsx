import type { Bookmark } from "./bookmark.ts";
import { CALLER } from "./caller.ts";
import { type FieldProps, ProblemOf } from "./fields.tsx";
import { Tick } from "./pictures/parts.tsx";

const { name: FROM, all: ALL, names: NAMES, tags: TAGS } = CALLER.from;

/** The choices: the locations and tags that the service knew when it sent the page, and those of the bookmark. */
export function choicesFor({ options }: Bookmark): string[] {
  const all = NAMES.length > 1 ? [ALL] : [];
  const named = (options[FROM] ?? "").split(",");
  return [...new Set([...all, ...NAMES, ...TAGS, ...named])].filter((name) => name !== "");
}

/** Names that are listed; if there are more, the first one and their number. */
const MOST_NAMED = 4;

/** The chosen locations in words. */
export function fromText(value: string): string {
  const names = value.split(",");
  if (names.length > MOST_NAMED) return `${names[0]} and ${names.length - 1} more`;
  return value === "" ? "this server" : value === ALL ? "every location" : names.join(", ");
}

/** A choice of any number of locations; without one, the service itself measures. */
export function FromField(props: FieldProps & { choices: readonly string[] }) {
  const { choices, value, onValue, problem } = props;
  const chosen = value.split(",");
  // Every location, or some of them by name.
  const choose = (name: string, isChosen: boolean) => {
    const others = chosen.filter((each) => each !== name && each !== ALL);
    const next = isChosen ? [...(name === ALL ? [] : others), name] : others;
    onValue(choices.filter((each) => next.includes(each)).join(","));
  };
  return (
    <fieldset id={FROM} aria-describedby={`${FROM}-hint ${FROM}-problem`}>
      <legend>From</legend>
      <div class="cluster">
        {choices.map((name) => (
          <Tick
            name={FROM}
            value={name}
            checked={chosen.includes(name)}
            label={name === ALL ? "every location" : TAGS.includes(name) ? `every ${name}` : name}
            onTick={(isChosen) => choose(name, isChosen)}
          />
        ))}
      </div>
      <p class="hint" id={`${FROM}-hint`}>
        {value === "" && "Nothing chosen: measured from this server."}
      </p>
      <ProblemOf name={FROM} problem={problem} />
    </fieldset>
  );
}
