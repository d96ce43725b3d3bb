import { render, useEffect } from "hono/jsx/dom";
import { AddressTool } from "./address.tsx";
import { DnsTool } from "./dns.tsx";
import { MtrTool } from "./mtr.tsx";
import { MtuTool } from "./mtu.tsx";
import { PingTool } from "./ping.tsx";
import { type Place, TOOLS, type Tool } from "./place.ts";
import { reloadOnChange } from "./reload.ts";
import { runAt, useAppState } from "./state.ts";
import { TEXTS } from "./texts.ts";
import { TraceTool } from "./trace.tsx";
import { ValidateTool } from "./validate.tsx";

function Page() {
  const { place, limit } = useAppState();
  useEffect(() => {
    document.title = [place.subject, TEXTS.tools[place.tool], TEXTS.title]
      .filter(Boolean)
      .join(" · ");
  }, [place]);
  return (
    <>
      <header class="top">
        <a class="brand" href="#/">
          {TEXTS.title}
        </a>
        <nav aria-label={TEXTS.toolsLabel}>
          {TOOLS.map((tool) => (
            <NavLink tool={tool} isCurrent={tool === place.tool} />
          ))}
        </nav>
        <a class="aside" href="docs">
          {TEXTS.docs.link}
        </a>
        <p class="limit">{limit && TEXTS.limit(limit.remaining, limit.limit)}</p>
      </header>
      <main>
        {place.tool !== "address" && (
          <h1 class="unseen">
            {TEXTS.tools[place.tool]} {place.subject}
          </h1>
        )}
        <ToolAt place={place} />
      </main>
    </>
  );
}

function NavLink({ tool, isCurrent }: { tool: Tool; isCurrent: boolean }) {
  return (
    <a href={tool === "address" ? "#/" : `#/${tool}`} aria-current={isCurrent ? "page" : undefined}>
      <span class="long">{TEXTS.tools[tool]}</span>
      <span class="short">{TEXTS.shortTools[tool]}</span>
    </a>
  );
}

function ToolAt({ place }: { place: Place }) {
  const current = runAt(place);
  switch (place.tool) {
    case "address":
      return <AddressTool place={place} />;
    case "validate":
      return <ValidateTool place={place} current={current} />;
    case "dns":
      return <DnsTool place={place} current={current} />;
    case "ping":
      return <PingTool place={place} current={current} />;
    case "trace":
      return <TraceTool place={place} current={current} />;
    case "mtr":
      return <MtrTool place={place} current={current} />;
    case "mtu":
      return <MtuTool place={place} current={current} />;
  }
}

const page = document.getElementById("page");
if (page !== null) {
  page.replaceChildren();
  reloadOnChange();
  render(<Page />, page);
}
