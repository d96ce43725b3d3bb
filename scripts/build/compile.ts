import { mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { ROOT, type Source } from "./source.ts";

/** The machines that executables are built for. */
export const TARGETS = ["linux-x64", "linux-arm64", "linux-x64-musl", "linux-arm64-musl"] as const;

export type Target = (typeof TARGETS)[number];

/** The target that this machine is. */
export function hostTarget(): Target {
  const machine = process.arch === "arm64" ? "linux-arm64" : "linux-x64";
  const isMusl = [...new Glob("ld-musl-*").scanSync("/lib")].length > 0;
  return isMusl ? `${machine}-musl` : machine;
}

/** What an executable contains. */
export interface Compiled {
  /** Names of the packages from node_modules that are inside, in alphabetical order. */
  readonly packages: readonly string[];
}

/**
 * Environment variables that turn a compiled executable into another program: `BUN_OPTIONS` gives Bun
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
 * The executable reads nothing from the folder it is started in, runs no code made from text, and
 * obeys no variable of Bun's that would make it run something else.
 *
 * @param entryPoint a file of the project; another one compiles another program the same way
 * @throws AggregateError if the sources do not compile
 */
export async function compile(
  target: Target,
  source: Source,
  outfile: string,
  entryPoint = "src/main.ts",
): Promise<Compiled> {
  // The executable's source map names sources relative to the working directory.
  process.chdir(ROOT);
  // The executable contains the output's name, which must not differ between builds.
  const stage = await mkdtemp(join(dirname(outfile), ".stage-"));
  try {
    const staged = join(stage, "sixscope");
    const result = await Bun.build({
      entrypoints: [join(ROOT, entryPoint)],
      root: ROOT,
      compile: {
        target: `bun-${target}`,
        outfile: staged,
        autoloadDotenv: false,
        autoloadBunfig: false,
        autoloadTsconfig: false,
        autoloadPackageJson: false,
        execArgv: ["--disallow-code-generation-from-strings=strict"],
      },
      define: source.commit === null ? {} : { BUILD_COMMIT: JSON.stringify(source.commit) },
      format: "esm",
      minify: true,
      sourcemap: "linked",
      bytecode: true,
      metafile: true,
    });
    await ignoreVariables(staged, FOREIGN_VARIABLES);
    await rename(staged, outfile);
    return { packages: packagesOf(Object.keys(result.metafile?.inputs ?? {})) };
  } finally {
    await rm(stage, { recursive: true });
  }
}

/**
 * Makes the runtime ignore environment variables, for which Bun has no option. The runtime contains each
 * name once as a C string; its first letter becomes `=`, which the name of a variable cannot contain.
 *
 * @throws Error if a name does not occur exactly once, as may be in another version of Bun
 */
async function ignoreVariables(path: string, names: readonly string[]): Promise<void> {
  const bytes = Buffer.from(await Bun.file(path).arrayBuffer());
  for (const name of names) {
    const at = bytes.indexOf(`\0${name}\0`);
    if (at < 0 || bytes.indexOf(`\0${name}\0`, at + 1) >= 0) {
      throw new Error(`the runtime does not contain the variable ${name} exactly once`);
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
