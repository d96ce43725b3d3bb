import { useEffect, useState } from "hono/jsx/dom";
import { call } from "../api.ts";
import { CALLER } from "../caller.ts";
import { ProblemOf } from "../fields.tsx";
import { storedKey, storeKey } from "../key.ts";
import { KeyFields } from "../key-fields.tsx";
import type { Problem } from "../run.ts";
import { keyChanged, noteLimit } from "../state.ts";

/** How often what is shown is asked for again. */
const REFRESH_MS = 60_000;

/** The answer of the API to a path, asked for again from time to time; with a key that is new, at once. */
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
    return () => {
      clearInterval(timer);
      gone.abort();
    };
  }, [path, key]);
  return answer.path === path ? answer : { path };
}

/** Why there is no answer, and the field for the key if that is what is missing. */
export function Unanswered({ problem }: { problem: Problem | undefined }) {
  if (problem === undefined) return <p class="soft">Asking the service</p>;
  if (problem.code !== "UNAUTHORIZED" || !CALLER.needsKey) {
    return <ProblemOf name="watch" problem={problem.message} />;
  }
  const submit = (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    storeKey({ key: `${form.get("key")}`, onDevice: form.has("onDevice") });
    keyChanged();
  };
  return (
    <form class="form cluster" onSubmit={submit}>
      <KeyFields problem={problem.message} />
      <div class="buttons cluster">
        <button type="submit" class="main">
          Show
        </button>
      </div>
    </form>
  );
}
