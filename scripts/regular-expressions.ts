/**
 * Refuses each regular expression of `src` whose search can take more than linear time, because foreign text must not
 * hold up the service: `bun run check:expressions`. A value in a template literal counts as 1, which is right for
 * the bounds of counted repetitions.
 */
import { join } from "node:path";
import { Glob } from "bun";
import { parseSync } from "oxc-parser";
import { ambiguityOf } from "./lint/ambiguity.ts";

const ROOT = join(import.meta.dir, "..");

/** Files that make expressions of values: of the patterns in schemas, which are literals of other files. */
const MAKERS = ["src/page/browser/schema-check.ts"];

/** A node of a syntax tree, with the fields of those that are looked at. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly regex?: { readonly pattern: string; readonly flags: string };
  readonly callee?: { readonly name?: string };
  readonly arguments?: readonly Node[];
  readonly quasis?: readonly { readonly value: { readonly cooked: string } }[];
  readonly value?: unknown;
}

/** The nodes below a value of a syntax tree. */
function* nodesIn(value: unknown): Generator<Node> {
  if (typeof value !== "object" || value === null) return;
  if ("type" in value) yield value as Node;
  for (const inner of Object.values(value)) yield* nodesIn(inner);
}

/** The pattern and flags of an expression; null for another node, and an empty list for one that is not constant. */
function expressionAt({ regex, callee, arguments: words = [] }: Node): readonly string[] | null {
  if (regex) return [regex.pattern, regex.flags];
  if (callee?.name !== "RegExp") return null;
  const texts = words.map(({ quasis, value }) => quasis?.map((part) => part.value.cooked) ?? value);
  const [pattern, flags = ""] = texts.map((text) => (Array.isArray(text) ? text.join("1") : text));
  return typeof pattern === "string" && typeof flags === "string" ? [pattern, flags] : [];
}

let refused = 0;
for (const path of new Glob("src/**/*.{ts,tsx}").scanSync(ROOT)) {
  const text = await Bun.file(join(ROOT, path)).text();
  for (const node of nodesIn(parseSync(path, text).program)) {
    const [pattern, flags = ""] = expressionAt(node) ?? [""];
    const isMade = pattern === undefined && !MAKERS.includes(path);
    const kind = isMade ? "not constant" : pattern && ambiguityOf(pattern, flags);
    if (!kind) continue;
    refused += 1;
    const line = text.slice(0, node.start).split("\n").length;
    const advice = isMade ? "write a literal" : "let no two repetitions take the same text";
    console.error(`${path}:${line}: /${pattern ?? ""}/${flags} is ${kind}; ${advice}`);
  }
}
if (refused > 0) process.exitCode = 1;
