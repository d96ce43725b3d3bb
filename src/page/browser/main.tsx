import { render, useEffect } from "hono/jsx/dom";
import { HOME, hashOf } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { MyIp } from "./my-ip.tsx";
import { placeOf, runOf, useAppState } from "./state.ts";
import { ToolPage } from "./tool-page.tsx";

function Page() {
  const { bookmark, limit, notice } = useAppState();
  const tool = toolOf(bookmark.tool);
  const [label] = tool.labels;
  useEffect(() => {
    document.title = [bookmark.subject, label, "sixscope"].filter(Boolean).join(" · ");
  }, [bookmark]);
  return (
    <>
      <header class="top cluster">
        <a class="brand" href="#/">
          sixscope
        </a>
        <nav aria-label="Tools">
          {CALLER.tools.map(({ name, labels: [long, short] }) => (
            <a href={hashOf(placeOf(name))} aria-current={name === tool.name ? "page" : undefined}>
              <span class="long">{long}</span>
              <span class="short">{short}</span>
            </a>
          ))}
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
        {tool.name !== HOME ? (
          <ToolPage key={tool.name} {...{ tool, bookmark }} current={runOf(bookmark)} />
        ) : (
          notice === null && <MyIp tool={tool} bookmark={bookmark} />
        )}
      </main>
    </>
  );
}

render(<Page />, document.body);
