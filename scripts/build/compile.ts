import { mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BunPlugin, Glob } from "bun";
import { bundlePage } from "../../src/page/bundle.ts";
import { ROOT, type Source } from "./source.ts";

/** The machines that executables are built for. */
export const TARGETS = ["linux-x64", "linux-arm64", "linux-x64-musl", "linux-arm64-musl"] as const;

export type Target = (typeof TARGETS)[number];

/** All headers of a request: enough for a browser with a few cookies, little for 16,000 unfinished requests. */
const MAX_HEADER_BYTES = 4096;

/** The target for this machine. */
export function hostTarget(): Target {
  const machine = process.arch === "arm64" ? "linux-arm64" : "linux-x64";
  const isMusl = [...new Glob("ld-musl-*").scanSync("/lib")].length > 0;
  return isMusl ? `${machine}-musl` : machine;
}

/**
 * Environment variables that would turn a compiled executable into another program: `BUN_OPTIONS` adds
 * options and code to load, `BUN_BE_BUN` makes it plain Bun, the others open a debugger.
 */
const FOREIGN_VARIABLES = [
  "BUN_OPTIONS",
  "BUN_BE_BUN",
  "BUN_INSPECT",
  "BUN_INSPECT_CONNECT_TO",
  "BUN_INSPECT_PRELOAD",
] as const;

/**
 * Compiles sixscope for one target into a file.
 *
 * The executable reads nothing from the folder it is started in, does not run code made from text, and
 * ignores the variables of Bun that would make it run something else.
 *
 * @param entryPoint the main file of the program, in this project
 * @param plugins what else changes its sources
 * @returns the names of the packages from node_modules that it contains, in alphabetical order
 * @throws AggregateError if the sources do not compile
 */
export async function compile(
  target: Target,
  source: Source,
  outfile: string,
  entryPoint = "src/main.ts",
  plugins: readonly BunPlugin[] = [],
): Promise<string[]> {
  // The executable's source map has paths relative to the working directory.
  process.chdir(ROOT);
  // The executable contains its own name, which must always be the same.
  const stage = await mkdtemp(join(dirname(outfile), ".stage-"));
  try {
    const staged = join(stage, "sixscope");
    const result = await Bun.build({
      entrypoints: [join(ROOT, entryPoint)],
      root: ROOT,
      plugins: [await pageInIt(), ...plugins],
      compile: {
        target: `bun-${target}`,
        outfile: staged,
        autoloadDotenv: false,
        autoloadBunfig: false,
        autoloadTsconfig: false,
        autoloadPackageJson: false,
        execArgv: [
          "--disallow-code-generation-from-strings=strict",
          `--max-http-header-size=${MAX_HEADER_BYTES}`,
        ],
      },
      define: {
        BUILD_VERSION: JSON.stringify(source.version),
        ...(source.commit !== null && { BUILD_COMMIT: JSON.stringify(source.commit) }),
      },
      format: "esm",
      minify: true,
      sourcemap: "linked",
      bytecode: true,
      // Modules that a command imports when it runs are not loaded when the service starts.
      splitting: true,
      metafile: true,
    });
    await ignoreVariables(staged, FOREIGN_VARIABLES);
    await rename(staged, outfile);
    return packagesOf(Object.keys(result.metafile?.inputs ?? {}));
  } finally {
    await rm(stage, { recursive: true });
  }
}

/**
 * Replaces the bundler of the page by its result: the executable has nothing to bundle the page with.
 * Not by the option `files`, which puts the path of this folder into the names of chunks.
 */
async function pageInIt(): Promise<BunPlugin> {
  const contents = `const page = ${JSON.stringify(await bundlePage())};
    export const bundlePage = async () => page;`;
  return {
    name: "page",
    setup: (build) => {
      build.onLoad({ filter: /\/src\/page\/bundle\.ts$/ }, () => ({ contents, loader: "ts" }));
    },
  };
}

/**
 * Makes the runtime ignore variables, which Bun has no switch for: replaces the first letter of each
 * name by `=`, which the name of a variable cannot contain.
 *
 * @throws Error if a name does not occur exactly once as a C string, as in another version of Bun
 */
async function ignoreVariables(path: string, names: readonly string[]): Promise<void> {
  const bytes = Buffer.from(await Bun.file(path).arrayBuffer());
  for (const name of names) {
    const at = bytes.indexOf(`\0${name}\0`);
    if (at < 0 || bytes.indexOf(`\0${name}\0`, at + 1) >= 0) {
      throw new Error(`the runtime does not have the variable ${name} exactly once`);
    }
    bytes.write("=", at + 1);
  }
  await Bun.write(path, bytes);
}

function packagesOf(inputs: readonly string[]): string[] {
  const names = inputs.flatMap(
    (path) => /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [],
  );
  return [...new Set(names)].sort();
}
