import { render, useEffect } from "hono/jsx/dom";
import { HOME, hashOf } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { MyIp } from "./my-ip.tsx";
import { placeOf, runOf, useAppState } from "./state.ts";
import { ToolPage } from "./tool-page.tsx";
import { WatchPage } from "./watch/watch-page.tsx";

/** The name of the tab of watches. */
const WATCHED = "Watched";

function Page() {
  const { bookmark, limit, notice, watchPlace } = useAppState();
  const tool = toolOf(bookmark.tool);
  const [label] = tool.labels;
  useEffect(() => {
    const about = watchPlace ? [watchPlace.name, WATCHED] : [bookmark.subject, label];
    document.title = [...about, "sixscope"].filter(Boolean).join(" · ");
  }, [bookmark, watchPlace]);
  return (
    <>
      <header class="top cluster">
        <a class="brand" href="#/">
          sixscope
        </a>
        <nav aria-label="Tools">
          {CALLER.tools.map(({ name, labels: [long, short] }) => (
            <a
              href={hashOf(placeOf(name))}
              aria-current={name === tool.name && !watchPlace ? "page" : undefined}
            >
              <span class="long">{long}</span>
              <span class="short">{short}</span>
            </a>
          ))}
          {(CALLER.hasWatches || watchPlace) && (
            <a href="#/watch" aria-current={watchPlace ? "page" : undefined}>
              {WATCHED}
            </a>
          )}
        </nav>
        <a class="aside" href="docs">
          API
        </a>
        <p class="limit">{limit && `${limit.remaining} of ${limit.limit} requests left`}</p>
      </header>
      <main>
        {notice !== null && (
          <p class="notice" role="status">
            {notice}
          </p>
        )}
        {watchPlace ? (
          <WatchPage place={watchPlace} />
        ) : tool.name !== HOME ? (
          <ToolPage key={tool.name} {...{ tool, bookmark }} current={runOf(bookmark)} />
        ) : (
          notice === null && <MyIp tool={tool} bookmark={bookmark} />
        )}
      </main>
    </>
  );
}

render(<Page />, document.body);
