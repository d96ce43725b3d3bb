import type { Child } from "hono/jsx/dom";
import { type Bookmark, hashOf } from "./bookmark.ts";
import { resultHash } from "./given.ts";
import { Copy } from "./pictures/parts.tsx";
import type { Run } from "./run.ts";
import { Shell, type ShellProps } from "./shell.tsx";

interface BelowProps extends ShellProps {
  bookmark: Bookmark;
  /** The result, or the part that is known; null if nothing is known. */
  document: object | null;
  /** The result as text. */
  text?: () => string;
  /** Parts that open on demand. */
  more?: Child;
  /** The run of a whole result; null for another one. */
  run?: Run | null;
}

/** The actions for a result: get it from a shell, copy it as a link or as text, save its JSON. */
export function Below({ bookmark, document: shown, text, run, more, ...shell }: BelowProps) {
  const save = () => {
    const json = `${JSON.stringify(shown, null, 2)}\n`;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([json], { type: "application/json" }));
    const about = [bookmark.tool, bookmark.subject].filter(Boolean).join("-");
    link.download = `${about.replace(/[^\w.-]+/g, "_")}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  const linkTo = (hash: string) => new URL(hash, document.baseURI).href;
  return (
    <footer class="part">
      <h2 class="side soft">More</h2>{" "}
      <div class="more">
        {shown && <p class="paper-link">{linkTo(hashOf(bookmark))}</p>}
        {more}
        <details>
          <summary>The same from a shell</summary>
          <Shell {...shell} />
        </details>
        {shown && (
          <>
            <Copy text={() => linkTo(hashOf(bookmark))} label="Copy link" />
            {run && (
              <Copy
                text={() => resultHash(run, shown).then(linkTo)}
                label="Copy link with result"
              />
            )}
            {text && <Copy text={text} label="Copy as text" />}
            <button type="button" class="plain" onClick={save}>
              Download JSON
            </button>
          </>
        )}
      </div>
    </footer>
  );
}
