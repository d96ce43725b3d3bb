/** The tools of the page. */
export const TOOLS = ["address", "validate", "dns", "ping", "trace", "mtr", "mtu"] as const;

export type Tool = (typeof TOOLS)[number];

/** What a URL of the page shows: a tool, its main input, and its other inputs where they differ from the defaults. */
export interface Place {
  readonly tool: Tool;
  readonly subject: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** The place that a hash names, such as `#/trace/www.example.com?maxHops=30`; an unknown one is My address. */
export function parsePlace(hash: string): Place {
  const [, path = "", query = ""] = /^#?\/?([^?]*)\??(.*)$/.exec(hash) ?? [];
  const [name, ...rest] = path.split("/");
  const tool = TOOLS.find((tool) => tool === name) ?? "address";
  return {
    tool,
    subject: tool === "address" ? "" : decode(rest.join("/")),
    parameters: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** The hash of a place, in one form for each. */
export function hashOf({ tool, subject, parameters }: Place): string {
  if (tool === "address") return "#/";
  // A colon is easier to read than %3A, and may be in a fragment.
  const name = subject === "" ? "" : `/${encodeURIComponent(subject).replaceAll("%3A", ":")}`;
  return `#/${tool}${name}${queryOf(parameters)}`;
}

/** A query with its question mark; empty without parameters. */
export function queryOf(parameters: Place["parameters"]): string {
  // A comma is easier to read than %2C, and may be in a query.
  const query = new URLSearchParams(parameters).toString().replaceAll("%2C", ",");
  return query && `?${query}`;
}

/** A text that is not percent-encoded UTF-8 means itself. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
