import { forgetKey, storedKey } from "./key.ts";
import { Field } from "./parts.tsx";
import { keyChanged } from "./state.ts";
import { TEXTS } from "./texts.ts";

/** Asks for the key once; later says where it is, and forgets it. */
export function KeyFields(props: {
  value: string;
  onValue: (value: string) => void;
  onDevice: boolean;
  onOnDevice: (value: boolean) => void;
  problem: string | null;
  id?: string;
}) {
  const { value, onValue, onDevice, onOnDevice, problem } = props;
  const stored = storedKey();
  if (stored !== null) {
    const forget = () => {
      forgetKey();
      keyChanged();
    };
    return (
      <p class="kept">
        {stored.onDevice ? TEXTS.keyOnDevice : TEXTS.keyInTab}{" "}
        <button type="button" class="plain" onClick={forget}>
          {TEXTS.forgetKey}
        </button>
      </p>
    );
  }
  return (
    <fieldset class="key">
      <Field
        name={props.id ?? "key"}
        label={TEXTS.key}
        value={value}
        onValue={onValue}
        hint={TEXTS.keyHint}
        kind="password"
        problem={problem}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={onDevice}
          onChange={(event: Event) => onOnDevice((event.target as HTMLInputElement).checked)}
        />{" "}
        {TEXTS.keepKey}
      </label>
    </fieldset>
  );
}
