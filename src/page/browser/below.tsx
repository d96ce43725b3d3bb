import { type Bookmark, hashOf } from "./bookmark.ts";
import { resultHash } from "./given.ts";
import { Copy } from "./pictures/parts.tsx";
import type { Run } from "./run.ts";
import { Shell, type ShellProps } from "./shell.tsx";

interface BelowProps extends ShellProps {
  bookmark: Bookmark;
  /** The result, whole or as far as a run came; null if nothing is known. */
  document: object | null;
  /** The same as text. */
  text?: () => string;
  /** The run of a result that is whole; null for one that is not. */
  run?: Run | null;
}

/** The actions below a result: copy it as text or as a link, save its JSON, and get it from a shell. */
export function Below({ bookmark, document: shown, text, run, ...shell }: BelowProps) {
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
    <footer class="below">
      {shown && (
        <p class="cluster">
          {text && <Copy text={text} label="Copy as text" />}
          <Copy text={() => linkTo(hashOf(bookmark))} label="Copy link" />
          {run && (
            <Copy text={() => resultHash(run, shown).then(linkTo)} label="Copy link with result" />
          )}
          <button type="button" onClick={save}>
            Download JSON
          </button>
        </p>
      )}
      <p class="label">The same from a shell</p>
      <Shell {...shell} />
    </footer>
  );
}
