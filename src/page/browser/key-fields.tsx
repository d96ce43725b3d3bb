import { type FieldProps, ProblemOf, TextField } from "./fields.tsx";
import { forgetKey, storedKey } from "./key.ts";
import { Tick } from "./pictures/parts.tsx";
import { keyChanged } from "./state.ts";

/** Asks for the key once; later says where it is, and forgets it. */
export function KeyFields({ problem }: Pick<FieldProps, "problem">) {
  const stored = storedKey();
  if (stored === null) {
    return (
      <fieldset class="key cluster">
        <TextField
          name="key"
          label="API key"
          hint="This tool needs a key from the operator. It is sent to this service only."
          problem={problem}
          kind="password"
        />
        <Tick name="onDevice" label="Keep it on this device" />
      </fieldset>
    );
  }
  const forget = () => {
    forgetKey(stored.key);
    keyChanged();
  };
  return (
    <div class="kept cluster">
      {stored.onDevice ? "The API key is kept on this device." : "The API key stays in this tab."}
      <button type="button" onClick={forget}>
        Forget it
      </button>
      <ProblemOf name="key" problem={problem} />
    </div>
  );
}
