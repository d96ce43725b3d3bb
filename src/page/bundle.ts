import { join } from "node:path";

/**
 * Bundles the page. Returns its files by path: `/index.html`, `/docs.html`, and others with a hash of their content in
 * their names. In the executable, `scripts/build/compile.ts` has replaced this function by its result.
 *
 * @throws AggregateError if the page does not compile
 */
export async function bundlePage() {
  const hashed = "assets/[name]-[hash].[ext]";
  const { outputs } = await Bun.build({
    entrypoints: ["index.html", "docs.html"].map((name) => join(import.meta.dir, "browser", name)),
    splitting: true,
    naming: { entry: "[name].[ext]", chunk: hashed, asset: hashed },
    minify: true,
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const files = outputs.map(async (output) => {
    const { path, type } = output;
    return [path.replace(/^\./, ""), { type, text: await output.text() }] as const;
  });
  return Object.fromEntries(await Promise.all(files));
}
