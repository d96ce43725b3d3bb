import { type Child, render } from "hono/jsx/dom";

/** Replaced in the bundle; see `bundlePage`. */
declare const FOLLOWS_SOURCE: boolean;

/** Milliseconds between two looks. */
const PAUSE_MS = 500;

/** Shows a page in place of what browsers without scripts see. */
export function mount(view: Child): void {
  const page = document.getElementById("page");
  if (page === null) return;
  page.replaceChildren();
  reloadOnChange();
  render(view, page);
}

/** With `bun run dev`, loads the page anew when its source has changed, which its ETag tells. */
function reloadOnChange(): void {
  if (!FOLLOWS_SOURCE) return;
  let shown: string | null = null;
  setInterval(async () => {
    const headers = { Accept: "text/html" };
    const response = await fetch(location.href, { headers }).catch(() => null);
    // A service that starts again, or a source that does not compile, has none.
    const tag = response?.ok ? response.headers.get("etag") : null;
    if (shown !== null && tag !== null && tag !== shown) location.reload();
    shown ??= tag;
  }, PAUSE_MS);
}
