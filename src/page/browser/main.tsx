import { render, useEffect } from "hono/jsx/dom";
import { HOME } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { First } from "./first.tsx";
import { Form } from "./form.tsx";
import { runOf, stop, useAppState } from "./state.ts";
import { ToolPage } from "./tool-page.tsx";
import { WatchPage } from "./watch/watch-page.tsx";

/** The share of requests below which the page says how many are left. */
const FEW = 0.2;

function Page() {
  const { bookmark, limit, notice, watchPlace } = useAppState();
  const tool = toolOf(bookmark.tool);
  const isFirst = tool.name === HOME && !watchPlace;
  const current = runOf(bookmark);
  useEffect(() => {
    const about = watchPlace
      ? [watchPlace.name, "Watch"]
      : [bookmark.subject, isFirst ? "" : tool.label];
    document.title = [...about, "sixscope"].filter(Boolean).join(" · ");
  }, [bookmark, watchPlace]);
  const isLow = limit !== null && limit.remaining < limit.limit * FEW;
  return (
    <div class={isFirst ? "page first" : "page"}>
      <header>
        <a class="brand" href="#/" aria-current={isFirst ? "page" : undefined}>
          sixscope
        </a>
        <nav class="aside" aria-label="Service">
          {(CALLER.watches > 0 || watchPlace) && (
            <a href="#/watch" aria-current={watchPlace ? "page" : undefined}>
              Watch
            </a>
          )}
          <a href="docs">API</a>
        </nav>
        {isFirst && <h1 class="question">Does a name work over IPv6?</h1>}
      </header>
      {!watchPlace && <Form key="form" {...{ tool, bookmark, current }} />}
      <main>
        {isLow && (
          <p class="limit soft">
            {limit.remaining} of {limit.limit} requests left
          </p>
        )}
        {notice !== null && (
          <p class="notice" role="status">
            {notice}
          </p>
        )}
        {watchPlace ? (
          <WatchPage place={watchPlace} />
        ) : isFirst ? (
          notice === null && <First />
        ) : (
          <ToolPage key={tool.name} {...{ tool, bookmark, current }} />
        )}
      </main>
    </div>
  );
}

render(<Page />, document.body);

addEventListener("keydown", (event) => {
  const { key, ctrlKey, metaKey, altKey } = event as KeyboardEvent;
  const isTyping = document.activeElement?.matches("input, select, textarea");
  if (key === "Escape") stop();
  if (key !== "/" || isTyping || ctrlKey || metaKey || altKey) return;
  event.preventDefault();
  document.getElementById("subject")?.focus();
});
