import type { PageParameter } from "../caller.ts";

/** The properties that every field of a form has. */
export interface FieldProps {
  value: string;
  onValue: (value: string) => void;
  /** The error that it caused. */
  problem: string | null;
}

/** A text field by its name and its label. */
interface TextFieldProps extends FieldProps, Pick<PageParameter, "name" | "label" | "hint"> {
  example?: string;
  kind?: "text" | "number" | "password";
  /** True if the field may be empty. */
  isOptional?: boolean;
}

const textOf = (event: Event) => (event.target as HTMLInputElement).value;

/** True if the checkbox of an event is checked. */
export const isTicked = (event: Event) => (event.target as HTMLInputElement).checked;

/** The error that a field caused. */
export function ProblemOf({ name, problem }: { name: string; problem: string | null }) {
  if (problem === null) return null;
  return (
    <p class="problem" id={`${name}-problem`} role="alert">
      {problem}
    </p>
  );
}

/** The elements that describe an input: its hint and its error. */
export function describedBy(name: string, hint?: string, problem?: string | null) {
  const ids = [hint && `${name}-hint`, problem && `${name}-problem`].filter(Boolean);
  return ids.length > 0 ? ids.join(" ") : undefined;
}

/** A text field with its label, its hint, and the error that it caused. */
export function TextField(props: TextFieldProps) {
  const { name, label, hint, example, value, onValue, problem, kind = "text" } = props;
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
        required={!props.isOptional}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-invalid={problem ? "true" : undefined}
        aria-describedby={describedBy(name, hint, problem)}
        onInput={(event: Event) => onValue(textOf(event))}
      />
      {hint && (
        <p class="hint" id={`${name}-hint`}>
          {hint}
        </p>
      )}
      <ProblemOf name={name} problem={problem} />
    </div>
  );
}

/** An option: a number, a box for yes and no, or a list of choices. */
export function OptionField(props: FieldProps & { option: PageParameter }) {
  const { option, value, onValue, problem } = props;
  const { name, label, choices } = option;
  if (choices === undefined) {
    const shared = { name, label, value, onValue, problem };
    return <TextField {...shared} kind="number" isOptional={option.default === ""} />;
  }
  const told = {
    id: name,
    "aria-invalid": problem ? ("true" as const) : undefined,
    "aria-describedby": describedBy(name, "", problem),
  };
  // By the alphabet, no is before yes.
  const [no = "", yes = "", ...more] = choices.toSorted();
  if (more.length === 0) {
    return (
      <div class="check">
        <label class="check">
          <input
            type="checkbox"
            checked={value === yes}
            onChange={(event: Event) => onValue(isTicked(event) ? yes : no)}
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
      <select value={value} onChange={(event: Event) => onValue(textOf(event))} {...told}>
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
