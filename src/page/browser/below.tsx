import { urlOf } from "./api.ts";
import { type Bookmark, hashOf } from "./bookmark.ts";
import { resultHash } from "./given.ts";
import { Copy } from "./pictures/parts.tsx";
import type { Run } from "./run.ts";
import { TEXTS } from "./texts.ts";

interface BelowProps {
  bookmark: Bookmark;
  /** The call, below the base path of the API. */
  path: string;
  needsKey: boolean;
  /** The result, whole or as far as a run came; null if nothing is known. */
  document: object | null;
  /** The same as text. */
  text?: () => string;
  /** The run of the result; absent if the document is no result. */
  run?: Run | null;
}

/** The actions below a result: copy it as text or as a link, save its JSON, and get it from a shell. */
export function Below(props: BelowProps) {
  const { bookmark, path, needsKey, document: known, text, run } = props;
  const save = () => {
    const json = `${JSON.stringify(known, null, 2)}\n`;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([json], { type: "application/json" }));
    link.download = `${bookmark.tool}-${bookmark.subject.replace(/[^\w.-]+/g, "_")}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const linkTo = (hash: string) => new URL(hash, document.baseURI).href;
  return (
    <footer class="below">
      {known && (
        <p class="actions">
          {text && <Copy text={text} label={TEXTS.copyText} />}
          <Copy text={() => linkTo(hashOf(bookmark))} label={TEXTS.copyLink} />
          {run && (
            <Copy text={() => resultHash(run, known).then(linkTo)} label={TEXTS.copyResult} />
          )}
          <button type="button" class="plain" onClick={save}>
            {TEXTS.download}
          </button>
        </p>
      )}
      <p class="label">{TEXTS.fromShell}</p>
      <Shell path={path} needsKey={needsKey} />
    </footer>
  );
}

/** The line that calls the API from a shell. */
export function Shell({ path, needsKey }: Pick<BelowProps, "path" | "needsKey">) {
  const key = needsKey ? `-H "X-API-Key: $SIXSCOPE_KEY" ` : "";
  const command = `curl ${key}'${urlOf(path)}'`;
  return (
    <p class="shell">
      <code>{command}</code> <Copy text={() => command} what={`curl: ${path}`} />
    </p>
  );
}
