import type { IpAddress } from "../addr/ip.ts";
import { once } from "../api/schemas.ts";
import { hasAlready, type RequestInfo } from "../http/request.ts";
import { respond, respondZipped } from "../http/respond.ts";
import { bundlePage } from "./bundle.ts";
import { callerOf, type PageServices } from "./caller.ts";

/** The page loads only from this service, and no text becomes markup, a script or a style. */
const policyOf = (urls: readonly string[]) =>
  `default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src ${["'self'", ...urls].join(" ")}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'`;

/** Seconds for which browsers keep a file: its name changes with its content. */
const FILE_MAX_AGE = 31_536_000;

/** With `bun --watch`, each view shows the page as its source is now. */
const files = process.execArgv.includes("--watch") ? bundlePage : once(bundlePage);

/** The files of the pages, by path. */
const PAGES: Readonly<Record<string, string>> = { "/": "/index.html", "/docs": "/docs.html" };

/** Responds with the page or the file at the path of a request; null if there is none. */
export async function respondPage(
  info: RequestInfo,
  address: IpAddress,
  services: PageServices,
): Promise<Response | null> {
  const { pathname } = new URL(info.request.url);
  const page = PAGES[pathname];
  const file = (await files())[page ?? pathname];
  if (file === undefined) return null;
  if (page === undefined) {
    return respondZipped(info, file.text, {
      "Content-Type": file.type,
      "Cache-Control": `public, max-age=${FILE_MAX_AGE}, immutable`,
    });
  }
  const caller = callerOf(address, info.caller.needsKey, services);
  // The address is in the HTML, for browsers without JavaScript.
  const values: Readonly<Record<string, string>> = {
    address: caller.ip,
    label: `Your address (IPv${caller.family})`,
    caller: JSON.stringify(caller),
  };
  const html = file.text.replace(/\{\{(\w+)\}\}/g, (_, name) => Bun.escapeHTML(values[name] ?? ""));
  const etag = `W/"${Bun.hash(html).toString(36)}"`;
  const { familyUrls } = caller;
  const headers = {
    "Content-Type": "text/html;charset=utf-8",
    "Content-Security-Policy": policyOf(Object.values(familyUrls ?? {}).flat()),
    "Referrer-Policy": "no-referrer",
    Vary: "Accept",
    // The page contains the caller's address.
    "Cache-Control": "private, no-cache",
    ETag: etag,
  };
  const isKnown = hasAlready(info.request, etag);
  return respond(info, isKnown ? null : html, isKnown ? 304 : 200, headers);
}
