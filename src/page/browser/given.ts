import { parseForeign } from "../../api/foreign.ts";
import type { ToolName } from "../../tools/reports.ts";
import { printable } from "../../util/text.ts";
import { askInterface } from "./api.ts";
import { type Bookmark, HOME, pathOf } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { packed, unpacked } from "./packed.ts";
import { NEW_RUN, type Run } from "./run.ts";
import { matches } from "./schema-check.ts";

/** The note on a result by its origin. */
export const GIVEN = {
  link: "This result came with the link. The service did not check it: whoever made the link could change it.",
  file: "This result came from a file. The service did not check it: whoever has the file could change it.",
} as const;

const DAMAGED = "This result is damaged; ask for the link or the file again.";

/** The beginning of the hash of a link with a result. */
export const LINK_PREFIX = "#/result/";

/** Characters of a result in a link: browsers take more, but mail and chats do not. */
const MAX_LINK = 30_000;

/** Bytes of a result from outside: an mtr from 32 places has less. */
const MAX_BYTES = 4 * 2 ** 20;

/** The tools whose results can be given; the page of the API has none. */
const tools = () => CALLER.tools.map(({ name }) => name).filter((name) => name !== HOME);

/** Characters of a subject, and of an option: those of the longest name in a URL. */
const MAX_TEXT = 3000;

/**
 * The hash of a link that contains a result, so that no service needs to keep it.
 *
 * @throws Error if the result is too long
 */
export async function resultHash({ bookmark }: Run, document: object): Promise<string> {
  const { tool, subject, options } = bookmark;
  const text = await packed(JSON.stringify({ tool, subject, options, document }));
  if (text.length > MAX_LINK) {
    const size = `${Math.ceil(text.length / 1000)} of ${MAX_LINK / 1000} kB`;
    throw new Error(`Too large for a link (${size}); download it instead`);
  }
  return `${LINK_PREFIX}${text}`;
}

/**
 * The run that came with a link.
 *
 * @throws Error for people, if it is damaged or does not match the schema
 */
export async function readLink(hash: string): Promise<Run> {
  const text = await unpacked(hash.slice(LINK_PREFIX.length), MAX_BYTES).catch(() => "");
  const { tool, subject, options, document } = objectIn(text);
  const name = tools().find((each) => each === tool);
  if (name === undefined || !isText(subject)) throw new Error(DAMAGED);
  if (!(await checker())(name, document)) {
    throw new Error("This result is not one of this version of sixscope, so it is not shown.");
  }
  const texts = Object.entries(Object(options)).filter((option): option is [string, string] =>
    isText(option[1]),
  );
  const bookmark = { tool: name, subject, options: Object.fromEntries(texts) };
  return runWith(bookmark, Object(document), "link");
}

/**
 * The run that a saved document shows; its options are not known.
 *
 * @throws Error for people, if no tool has such documents
 */
export async function readFile(file: Blob): Promise<Run> {
  const document = objectIn(file.size > MAX_BYTES ? "" : await file.text());
  const check = await checker();
  const tool = tools().find((name) => check(name, document));
  if (tool === undefined) {
    throw new Error(
      "This file is not the whole result of a run of this version of sixscope; drop one that “Download JSON” has saved.",
    );
  }
  const { target, hostname = target, name = hostname, compressed = name } = document;
  const bookmark = { tool, subject: `${compressed ?? ""}`, options: {} };
  return runWith(bookmark, document, "file");
}

const isText = (value: unknown): value is string =>
  typeof value === "string" && value.length <= MAX_TEXT;

/** The object in a JSON text; its own texts are made safe to print. */
function objectIn(text: string): Record<string, unknown> {
  const safe = (_: string, value: unknown) =>
    typeof value === "string" ? printable(value) : value;
  const value = parseForeign(text, MAX_BYTES, safe);
  if (value === undefined) throw new Error(DAMAGED);
  return Object(value);
}

function runWith(
  { options, ...asked }: Bookmark,
  result: Readonly<Record<string, unknown>>,
  given: keyof typeof GIVEN,
): Run {
  const { name: FROM, all } = CALLER.from;
  const { locations } = result as { readonly locations?: readonly { location: string }[] };
  const names = locations?.map(({ location }) => location) ?? [];
  const isSeveral = names.length > 1 && !options[FROM]?.includes(",");
  // A result of several locations is shown with the names that were asked.
  const from = locations && { [FROM]: isSeveral ? names.join(",") : (options[FROM] ?? all) };
  const bookmark = { ...asked, options: { ...options, ...from } };
  const path = pathOf(toolOf(bookmark.tool), bookmark);
  return { ...NEW_RUN, bookmark, path, state: "done", result, startedMs: null, given };
}

/**
 * Makes the function that checks documents by the schemas of the interface document.
 *
 * @throws Error if the service does not answer
 */
async function checker(): Promise<(tool: ToolName, document: unknown) => boolean> {
  const { paths, components } = await askInterface();
  return (tool, document) => {
    const content = Object.entries(paths[toolOf(tool).path]?.get.responses[200]?.content ?? {});
    const documents = content.filter(([type]) => type.startsWith("application/json"));
    return documents.some(([, { schema }]) => matches(schema, document, components.schemas));
  };
}
