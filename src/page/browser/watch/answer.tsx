import { type Child, useEffect, useState } from "hono/jsx/dom";
import { Headline } from "../answer.tsx";
import { call } from "../api.ts";
import { CALLER } from "../caller.ts";
import { ProblemOf } from "../fields.tsx";
import { storedKey, storeKey } from "../key.ts";
import { KeyFields } from "../key-fields.tsx";
import type { Problem } from "../run.ts";
import { keyChanged, noteLimit } from "../state.ts";

/** Milliseconds after which the shown answer is asked for again. */
const REFRESH_MS = 60_000;

/** The answer of the API to a path, asked for again from time to time, and at once with a new key. */
export function useAnswer<Result>(path: string) {
  const [answer, setAnswer] = useState<{ path: string; result?: Result; problem?: Problem }>({
    path,
  });
  const key = storedKey()?.key;
  useEffect(() => {
    const gone = new AbortController();
    const ask = () =>
      call(path, gone.signal, noteLimit).then(
        (called) => setAnswer({ path, ...(called as object) }),
        () => {},
      );
    void ask();
    const timer = setInterval(ask, REFRESH_MS);
    gone.signal.onabort = () => clearInterval(timer);
    return () => gone.abort();
  }, [path, key]);
  return answer.path === path ? answer : { path };
}

/** Why there is no answer, and the field for the key if it is missing. */
export function Unanswered({ problem }: { problem: Problem | undefined }) {
  if (problem === undefined) return <p class="stamp">Asking the service</p>;
  if (problem.code !== "UNAUTHORIZED" || !CALLER.needsKey) {
    return (
      <div class="stamp">
        <ProblemOf name="watch" problem={problem.message} />
      </div>
    );
  }
  const submit = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    storeKey({ key: `${form.get("key")}`, onDevice: form.has("onDevice") });
    keyChanged();
  };
  return (
    <form class="stamp" onSubmit={submit}>
      <KeyFields problem={problem.message} />
      <p class="line">
        <button type="submit" class="main">
          Show
        </button>
      </p>
    </form>
  );
}

/** The answer, with its subject above. */
export const Answer = ({ above, ...answer }: Parameters<typeof Headline>[0] & { above: Child }) => (
  <div class="announce">
    <p class="cluster small soft">{above}</p>
    <Headline {...answer} />
  </div>
);
