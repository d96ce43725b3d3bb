import { useEffect } from "hono/jsx/dom";
import { HOME, hashOf } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { mount } from "./mount.ts";
import { MyIp } from "./my-ip.tsx";
import { placeOf, runOf, useAppState } from "./state.ts";
import { TEXTS } from "./texts.ts";
import { ToolPage } from "./tool-page.tsx";

function Page() {
  const { bookmark, limit, notice, wait } = useAppState();
  const tool = toolOf(bookmark.tool);
  const [label] = tool.labels;
  useEffect(() => {
    document.title = [bookmark.subject, label, TEXTS.title].filter(Boolean).join(" · ");
  }, [bookmark]);
  return (
    <>
      <header class="top">
        <a class="brand" href="#/">
          {TEXTS.title}
        </a>
        <nav aria-label={TEXTS.tools}>
          {CALLER.tools.map(({ name, labels: [long, short] }) => (
            <a href={hashOf(placeOf(name))} aria-current={name === tool.name ? "page" : undefined}>
              <span class="long">{long}</span>
              <span class="short">{short}</span>
            </a>
          ))}
        </nav>
        <a class="aside" href="docs">
          {TEXTS.docs.link}
        </a>
        <p class="limit">{limit && TEXTS.limit(limit.remaining, limit.limit)}</p>
      </header>
      <main>
        {notice !== null && (
          <p class="notice" role="status">
            {notice}
          </p>
        )}
        {notice !== null && tool.name === HOME ? null : tool.name === HOME ? (
          <MyIp tool={tool} bookmark={bookmark} />
        ) : (
          <>
            <h1 class="unseen">
              {label} {bookmark.subject}
            </h1>
            <ToolPage key={tool.name} {...{ tool, bookmark, wait }} current={runOf(bookmark)} />
          </>
        )}
      </main>
    </>
  );
}

mount(<Page />);
