import { ProblemOf, TextField } from "./fields.tsx";
import { forgetKey, type Key, storedKey } from "./key.ts";
import { Tick } from "./pictures/parts.tsx";
import { keyChanged } from "./state.ts";

/** Asks for the key once; later says where it is, and forgets it. */
export function KeyFields(props: {
  value: Key;
  onValue: (value: Key) => void;
  problem: string | null;
}) {
  const { value, onValue, problem } = props;
  const stored = storedKey();
  if (stored === null) {
    return (
      <fieldset class="key cluster">
        <TextField
          name="key"
          label="API key"
          hint="This tool needs a key from the operator. It is sent to this service only."
          value={value.key}
          onValue={(key) => onValue({ ...value, key })}
          problem={problem}
          kind="password"
        />
        <Tick
          checked={value.onDevice}
          label="Keep it on this device"
          onTick={(onDevice) => onValue({ ...value, onDevice })}
        />
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
