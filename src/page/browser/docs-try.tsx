import { useState } from "hono/jsx/dom";
import { CallError, call, urlOf } from "./api.ts";
import { storeKey } from "./key.ts";
import { KeyFields } from "./key-fields.tsx";
import { Copy, Field } from "./parts.tsx";
import { CALLER, keyChanged, noteLimit, useAppState } from "./state.ts";
import { TEXTS } from "./texts.ts";
import type { Operation } from "./types.ts";

const T = TEXTS.docs;

/** A form that calls one endpoint and shows its answer as it is. */
export function TryForm(props: { path: string; operation: Operation; needsKey: boolean }) {
  const { path, operation } = props;
  const { operationId, parameters } = operation;
  useAppState();
  const [values, setValues] = useState<Readonly<Record<string, string>>>(
    Object.fromEntries(parameters.map(({ name, example }) => [name, String(example ?? "")])),
  );
  const [key, setKey] = useState("");
  const [onDevice, setOnDevice] = useState(false);
  const [answer, setAnswer] = useState<string | null>(null);
  const needsKey = props.needsKey && CALLER.needsKey;
  const target = targetOf(path, parameters, values);
  const send = async (event: Event) => {
    event.preventDefault();
    if (key !== "") {
      storeKey(key.trim(), onDevice);
      setKey("");
      keyChanged();
    }
    setAnswer(TEXTS.running);
    setAnswer(await answerOf(target));
  };
  const command = `curl ${needsKey ? '-H "X-API-Key: $SIXSCOPE_KEY" ' : ""}'${urlOf(target)}'`;
  return (
    <>
      <form class="form" onSubmit={send}>
        {parameters.map(({ name }) => (
          <Field
            name={`${operationId}-${name}`}
            label={name}
            value={values[name] ?? ""}
            onValue={(value) => setValues({ ...values, [name]: value })}
          />
        ))}
        {needsKey && (
          <KeyFields
            value={key}
            onValue={setKey}
            onDevice={onDevice}
            onOnDevice={setOnDevice}
            problem={null}
            id={`${operationId}-key`}
          />
        )}
        <div class="buttons">
          <button type="submit" class="main">
            {T.send}
          </button>
        </div>
      </form>
      <p class="shell">
        <code>{command}</code> <Copy text={() => command} what={`curl: ${path}`} />
      </p>
      <div role="status">
        {answer !== null && (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
          <pre class="answer" tabIndex={0}>
            {answer}
          </pre>
        )}
      </div>
    </>
  );
}

function targetOf(
  path: string,
  parameters: Operation["parameters"],
  values: Readonly<Record<string, string>>,
): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(values[name] ?? ""),
  );
  const query = new URLSearchParams(
    parameters.flatMap(({ name, in: place }) =>
      place === "query" ? [[name, values[name] ?? ""]] : [],
    ),
  );
  return `${filled.slice(1)}${query.size > 0 ? `?${query}` : ""}`;
}

async function answerOf(target: string): Promise<string> {
  const startMs = performance.now();
  const signal = new AbortController().signal;
  const show = (value: object) =>
    `${JSON.stringify(value, null, 2)}\n\n${(performance.now() - startMs).toFixed(0)} ${TEXTS.ms}`;
  try {
    return show(await call(target, signal, noteLimit));
  } catch (error) {
    return error instanceof CallError ? show({ error: error.problem }) : String(error);
  }
}
