import type { ApiError } from "../api/errors.ts";

const STYLE =
  "body{font:1.125rem/1.6 system-ui,sans-serif;max-width:36rem;margin:12vh auto;padding:0 1.5rem;color-scheme:light dark}h1{font-size:1.5rem}code{font-size:.9em}p{overflow-wrap:anywhere}";

/** The fault, as a heading. */
const HEADINGS: Readonly<Partial<Record<ApiError["code"], string>>> = {
  HTTPS_REQUIRED: "This page needs HTTPS",
  RATE_LIMITED: "Too many requests",
  NOT_FOUND: "This page does not exist",
};

/**
 * An error as a page for people, which needs no other file.
 *
 * @param url of the request
 */
export function errorPage({ code, message }: ApiError, url: string) {
  const safe = URL.parse(url)?.href.replace(/^http:/, "https:");
  const remedy =
    code === "HTTPS_REQUIRED" && safe !== undefined
      ? `<p><a href="${Bun.escapeHTML(safe)}">${Bun.escapeHTML(safe)}</a></p>`
      : "";
  const heading = HEADINGS[code] ?? "Something went wrong";
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${heading}</title>
<style>${STYLE}</style>
<main>
<h1>${heading}</h1>
<p>${Bun.escapeHTML(message)}</p>
${remedy}
<p><code>${code}</code></p>
</main>
</html>
`;
  const hash = Bun.SHA256.hash(STYLE, "base64");
  const securityPolicy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  return { html, headers: pageHeaders(securityPolicy) };
}

/** The headers of an HTML page. */
export function pageHeaders(securityPolicy: string) {
  return {
    "Content-Type": "text/html;charset=utf-8",
    "Content-Security-Policy": securityPolicy,
    "Referrer-Policy": "no-referrer",
    Vary: "Accept",
  };
}
