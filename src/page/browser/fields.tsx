import type { PageParameter } from "../caller.ts";
import { Tick } from "./pictures/parts.tsx";

/** The properties that every field of a form has. */
export interface FieldProps {
  value: string;
  onValue: (value: string) => void;
  /** The error that the value caused. */
  problem: string | null;
}

/** A text field with its name and its label; without a value, the browser keeps the typed text. */
interface TextFieldProps
  extends Pick<PageParameter, "name" | "label" | "hint">,
    Partial<FieldProps> {
  example?: string;
  kind?: "text" | "number" | "password";
  /** Shown in place of the hint. */
  note?: string;
  /** True if the field may be empty. */
  isOptional?: boolean;
}

const textOf = (event: Event) => (event.target as HTMLInputElement).value;

type ProblemOfProps = Pick<PageParameter, "name"> & Pick<FieldProps, "problem">;

/** The error that a field caused. */
export function ProblemOf({ name, problem }: ProblemOfProps) {
  if (problem === null) return null;
  return (
    <p class="problem" id={`${name}-problem`} role="alert">
      {problem}
    </p>
  );
}

/** The properties of the input of a field; browsers ignore the ids of describing elements that do not exist. */
const inputOf = ({ name, problem }: ProblemOfProps) => ({
  id: name,
  "aria-describedby": `${name}-hint ${name}-problem`,
  "aria-invalid": problem ? ("true" as const) : undefined,
});

/** A text field with its label and its hint; the component that has the field shows its error. */
export function TextField(props: TextFieldProps) {
  const { name, kind = "text", note, hint = note, onValue, problem = null } = props;
  return (
    <div class={`field ${kind}`}>
      <label for={name}>{props.label}</label>
      <input
        name={name}
        type={kind === "password" ? "password" : "text"}
        inputmode={kind === "number" ? "numeric" : undefined}
        value={props.value}
        placeholder={props.example}
        required={!props.isOptional}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={(event: Event) => onValue?.(textOf(event))}
        {...inputOf({ name, problem })}
      />
      {hint && (
        <p class={note ? "hint note" : "hint"} id={`${name}-hint`}>
          {note ?? hint}
        </p>
      )}
    </div>
  );
}

/** An option: a number, a box for yes and no, or a list of choices. */
export function OptionField({ option, ...field }: FieldProps & { option: PageParameter }) {
  const { value, onValue, problem } = field;
  const { name, label, choices } = option;
  if (choices === undefined) {
    const isOptional = option.default === "";
    return (
      <div>
        <TextField {...{ ...field, name, label, isOptional }} kind="number" />
        <ProblemOf name={name} problem={problem} />
      </div>
    );
  }
  const input = inputOf({ name, problem });
  // In alphabetical order, no is before yes.
  const [no = "", yes = "", ...more] = choices.toSorted();
  if (more.length === 0) {
    return (
      <div class="field">
        <Tick
          checked={value === yes}
          label={label}
          onTick={(isYes) => onValue(isYes ? yes : no)}
          {...input}
        />
        <ProblemOf name={name} problem={problem} />
      </div>
    );
  }
  return (
    <div class="field choice">
      <label for={name}>{label}</label>
      <select value={value} onChange={(event: Event) => onValue(textOf(event))} {...input}>
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
