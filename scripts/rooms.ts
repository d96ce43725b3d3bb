/**
 * Prints the lines of code of each room of `src` (without comments and blank lines), how many other rooms it
 * imports, and how many files some entry points load: `bun scripts/rooms.ts [FILE]...`
 */
import { dirname, join, relative } from "node:path";
import { Glob } from "bun";

const ROOT = join(import.meta.dir, "..");

/** What a caller of one tool, and one who throws an error, load. */
const ENTRIES = ["src/tools/ping/endpoint.ts", "src/api/errors.ts"];

const COMMENT = /^\s*(\/\/|\/?\*)/;

const roomOf = (file: string) => file.split("/").slice(0, 2).join("/");

const files = [...new Glob("src/**/*.{ts,tsx}").scanSync(ROOT)].sort();
const imports = new Map<string, string[]>();
const lines = new Map<string, number>();
for (const file of files) {
  const source = await Bun.file(join(ROOT, file)).text();
  // The transpiler leaves out imports of types alone, as the runtime does.
  const found = new Bun.Transpiler({ loader: file.endsWith("x") ? "tsx" : "ts" }).scanImports(
    source,
  );
  const targets = found
    .filter(({ path, kind }) => kind === "import-statement" && /^\..*\.tsx?$/.test(path))
    .map(({ path }) => relative(ROOT, join(ROOT, dirname(file), path)));
  imports.set(file, targets);
  const code = source.split("\n").filter((line) => line.trim() !== "" && !COMMENT.test(line));
  lines.set(roomOf(file), (lines.get(roomOf(file)) ?? 0) + code.length);
}

/** The files that loading one loads, itself among them. */
function closureOf(entry: string): ReadonlySet<string> {
  const loaded = new Set([entry]);
  for (const file of loaded) for (const target of imports.get(file) ?? []) loaded.add(target);
  return loaded;
}

const rooms = [...lines].sort(([, a], [, b]) => b - a);
for (const [room, count] of rooms) {
  const others = files
    .filter((file) => roomOf(file) === room)
    .flatMap((file) => (imports.get(file) ?? []).map(roomOf));
  const imported = new Set(others.filter((other) => other !== room));
  console.log(`${String(count).padStart(6)}  ${room}, imports ${imported.size} rooms`);
}
console.log(`${String(rooms.reduce((sum, [, count]) => sum + count, 0)).padStart(6)}  in all`);
for (const entry of [...ENTRIES, ...Bun.argv.slice(2)]) {
  console.log(`${entry} loads ${closureOf(entry).size} files`);
}
