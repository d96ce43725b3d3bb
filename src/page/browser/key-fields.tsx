import { ProblemOf, TextField } from "./fields.tsx";
import { forgetKey, type Key, storedKey } from "./key.ts";
import { Tick } from "./pictures/parts.tsx";
import { keyChanged } from "./state.ts";
import { TEXTS } from "./texts.ts";

const T = TEXTS.key;

/** Asks for the key once; later says where it is, and forgets it. */
export function KeyFields(props: {
  value: Key;
  onValue: (value: Key) => void;
  problem: string | null;
}) {
  const { value, onValue, problem } = props;
  const stored = storedKey();
  if (stored !== null) {
    const forget = () => {
      forgetKey(stored.key);
      keyChanged();
    };
    return (
      <div class="kept">
        {stored.onDevice ? T.onDevice : T.inTab}{" "}
        <button type="button" class="plain" onClick={forget}>
          {T.forget}
        </button>
        <ProblemOf name="key" problem={problem} />
      </div>
    );
  }
  return (
    <fieldset class="key">
      <TextField
        {...T.field}
        name="key"
        value={value.key}
        onValue={(key) => onValue({ ...value, key })}
        problem={problem}
        kind="password"
      />
      <Tick
        checked={value.onDevice}
        label={T.keep}
        onTick={(onDevice) => onValue({ ...value, onDevice })}
      />
    </fieldset>
  );
}
