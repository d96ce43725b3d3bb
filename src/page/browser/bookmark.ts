import type { ToolName } from "../../tools/reports.ts";
import { attempt } from "../../util/errors.ts";
import type { PageTool } from "../caller.ts";

/** The tool that the page begins with. */
export const HOME: ToolName = "my-ip";

/** The content of a URL's hash: a tool, its subject, and the options that differ from their defaults. */
export interface Bookmark {
  readonly tool: ToolName;
  readonly subject: string;
  readonly options: Readonly<Record<string, string>>;
}

/** The bookmark that a hash means, such as `#/trace/www.example.com?maxHops=30`; an unknown one is `HOME`. */
export function parseBookmark(hash: string, tools: readonly ToolName[]): Bookmark {
  const [, path = "", query = ""] = /^#?\/?([^?]*)(?:\?(.*))?$/.exec(hash) ?? [];
  const [name, ...rest] = path.split("/");
  const tool = tools.find((tool) => tool === name) ?? HOME;
  const text = rest.join("/");
  return {
    tool,
    // A text that is not percent-encoded UTF-8 is taken as it is.
    subject: tool === HOME ? "" : (attempt(() => decodeURIComponent(text)) ?? text),
    options: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The bookmark of a tool for the subject of another tool; without a subject if it does not fit. */
export function bookmarkFor(tool: ToolName, subject: string): Bookmark {
  const isAddress = /^[0-9a-f.]*:[0-9a-f:.]*$/i.test(subject);
  const isFit = tool !== HOME && (tool !== "validate" || isAddress);
  const options: Bookmark["options"] = tool === "dns" && isAddress ? { type: "PTR" } : {};
  return { tool, subject: isFit ? subject : "", options };
}

/** The hash of a bookmark; equal bookmarks have one hash. */
export function hashOf({ tool, subject, options }: Bookmark): string {
  if (tool === HOME) return "#/";
  return `#/${tool}${subject && `/${readable(encodeURIComponent(subject))}`}${queryOf(options)}`;
}

/** A query with its question mark; empty without parameters. */
export function queryOf(parameters: Readonly<Record<string, string>>): string {
  const query = readable(new URLSearchParams(parameters).toString());
  return query && `?${query}`;
}

/** The call of the API for a bookmark of a tool, below the base path. */
export function pathOf({ path, subject, onPage }: PageTool, bookmark: Bookmark): string {
  const { name = "", in: place } = subject ?? {};
  // URLs drop a lone dot, which is the root.
  const segment = readable(encodeURIComponent(bookmark.subject)).replace(/^\.$/, "%E3%80%82");
  const asked = place === "query" && { [name]: bookmark.subject };
  const query = queryOf({ ...asked, ...bookmark.options, ...onPage });
  return `${path.slice(1).replace(`{${name}}`, segment)}${query}`;
}

/** Colons and commas, which may be in a path, a query and a fragment, are easier to read than their codes. */
function readable(encoded: string): string {
  return encoded.replaceAll("%3A", ":").replaceAll("%2C", ",");
}
