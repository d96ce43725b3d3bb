import { type FieldProps, ProblemOf, TextField } from "./fields.tsx";
import { forgetKey, storedKey } from "./key.ts";
import { Tick } from "./pictures/parts.tsx";
import { SUBJECT } from "./problems.ts";
import { keyChanged } from "./state.ts";

/** The field for the key; once there is a key, where it is kept, and the button to forget it. */
export function KeyFields({ problem }: Pick<FieldProps, "problem">) {
  const stored = storedKey();
  if (stored === null) {
    return (
      <fieldset class="key cluster">
        <TextField
          name="key"
          label="API key"
          hint="Needs an API key; ask whoever runs this server. It goes nowhere else."
          problem={problem}
          kind="password"
        />
        <Tick name="onDevice" label="Keep it on this device" />
        <ProblemOf name="key" problem={problem} />
      </fieldset>
    );
  }
  const forget = () => {
    forgetKey(stored.key);
    keyChanged();
    document.getElementById(SUBJECT)?.focus();
  };
  return (
    <div class="kept cluster">
      {stored.onDevice ? "Key kept on this device." : "Key kept until this tab closes."}
      <button type="button" onClick={forget}>
        Remove key
      </button>
      <ProblemOf name="key" problem={problem} />
    </div>
  );
}
